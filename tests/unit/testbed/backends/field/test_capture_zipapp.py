"""capture.pyz: the same bytes each time, all that is needed and not more, for any Python from 3.11 on."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from testbed.backends.field import capture_zipapp

NOWHERE = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}
LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
import testbed.capture.board
for module in list(sys.modules.values()):
    if (getattr(module, "__file__", None) or "").startswith(sys.argv[1]):
        print(module.__file__[len(sys.argv[1]) + 1:])
"""


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return capture_zipapp.build(tmp_path_factory.mktemp("pyz") / "capture.pyz")


def test_the_same_sources_give_the_same_bytes(pyz: Path, tmp_path: Path) -> None:
    program = "import sys, pathlib, testbed.backends.field.capture_zipapp as z; z.build(pathlib.Path(sys.argv[1]))"
    other = tmp_path / "other.pyz"
    subprocess.run(
        [sys.executable, "-c", program, str(other)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert other.read_bytes() == pyz.read_bytes()


def test_the_archive_holds_the_licence_and_no_protocols(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as archive:
        names = archive.namelist()
        assert "GNU GENERAL PUBLIC LICENSE" in archive.read("licenses/scapy/LICENSE").decode()
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith(("scapy/layers", "scapy/contrib"))]
    assert not [name for name in names if not name.endswith((".py", ".pyc", "LICENSE"))]
    assert pyz.stat().st_size < 4 << 20


def test_all_modules_of_the_archive_are_loaded_from_it(pyz: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADED, str(pyz)],
        capture_output=True,
        text=True,
        check=True,
        env=NOWHERE,
    )
    loaded = {name.removesuffix("c") for name in done.stdout.split()}
    held = {name for name, _ in capture_zipapp.sources()}
    seldom = {
        "__main__.py",
        "scapy/libs/ethertypes.py",
        "scapy/libs/manuf.py",
    }  # or from /etc, /usr
    assert loaded - held == set()
    assert held - loaded <= seldom


@pytest.fixture(scope="module")
def foreign(pyz: Path) -> Path:
    """As another version of Python sees it: the byte code is of no use."""
    path = pyz.with_name("foreign.pyz")
    with zipfile.ZipFile(pyz) as archive, zipfile.ZipFile(path, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            changed.writestr(name, b"\0\0\r\n" + content[4:] if name.endswith("c") else content)
    return path


@pytest.mark.parametrize("which", ["pyz", "foreign"])
def test_the_archive_starts_with_nothing_but_python(
    request: pytest.FixtureRequest, tmp_path: Path, which: str
) -> None:
    program: Path = request.getfixturevalue(which)
    arguments = [
        "--interface",
        "none0",
        "--file",
        tmp_path / "a.pcap",
        "--statistics",
        tmp_path / "a",
    ]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=NOWHERE,
    )
    assert done.returncode == 1
    assert done.stderr in (
        "cannot listen on none0: No such device\n",
        "cannot listen on none0: Operation not permitted\n",
    )
    assert '"ended": true' in (tmp_path / "a").read_text()


@pytest.mark.parametrize(
    "wrong", [["--snaplen", "0"], ["--without-port", "0"], ["--without-port", "ssh"], ["--what"]]
)
def test_wrong_arguments_are_reported(pyz: Path, tmp_path: Path, wrong: list[str]) -> None:
    needed = [
        "--interface",
        "lo",
        "--file",
        str(tmp_path / "a"),
        "--statistics",
        str(tmp_path / "b"),
    ]
    done = subprocess.run(
        [sys.executable, pyz, *needed, *wrong], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usage: capture.pyz")
    assert not list(tmp_path.iterdir())
