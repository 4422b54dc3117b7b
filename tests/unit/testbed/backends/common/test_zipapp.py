"""nodes.pyz: the same sources give the same bytes, and nothing in it is tied to a processor."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from testbed.backends.common import zipapp


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = zipapp.build(tmp_path / "a.pyz").read_bytes()
    assert zipapp.build(tmp_path / "b.pyz").read_bytes() == first
    program = "import sys, pathlib, testbed.backends.common.zipapp as z; z.build(pathlib.Path(sys.argv[1]))"
    other = tmp_path / "c.pyz"
    subprocess.run(
        [sys.executable, "-c", program, str(other)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert other.read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pyz", "b.pyz", "c.pyz"]


def test_the_archive_holds_nodes_library_and_licence_and_no_machine_code(tmp_path: Path) -> None:
    with zipfile.ZipFile(zipapp.build(tmp_path / "nodes.pyz")) as archive:
        names = archive.namelist()
        assert "Redistribution and use" in archive.read("licenses/websockets/LICENSE").decode()
        assert {entry.date_time for entry in archive.infolist()} == {zipapp.LONG_AGO}
    assert {"__main__.py", "nodes/protocol/wire.py", "websockets/frames.py"} <= set(names)
    assert not [name for name in names if not name.endswith((".py", ".pyc", "LICENSE"))]
    assert len(names) == len(set(names))


def test_another_version_of_python_takes_the_sources(tmp_path: Path) -> None:
    pyz, foreign = zipapp.build(tmp_path / "nodes.pyz"), tmp_path / "foreign.pyz"
    with zipfile.ZipFile(pyz) as archive, zipfile.ZipFile(foreign, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith(".pyc"):  # the magic number of no Python at all
                content = b"\0\0\r\n" + content[4:]
            changed.writestr(name, content)
    ended = subprocess.run(
        [sys.executable, "-I", "-S", str(foreign)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (2, "usage: python3 nodes.pyz node.json\n")
