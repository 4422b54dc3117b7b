"""Completing the unpacked packages of an image."""

import sys
from pathlib import Path

import pytest

from testbed.backends.docker import image_root
from testbed.backends.docker.image_root import main, python_of

HERE = sys.version_info[1]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with busybox, as mmdebstrap unpacks it."""
    for folder in ("usr/bin", "usr/sbin", "etc/apt", "var/lib/apt/lists"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("bin", "sbin"):
        (tmp_path / name).symlink_to(f"usr/{name}")
    (tmp_path / "usr/bin/busybox").write_text("")
    (tmp_path / "etc/apt/sources.list").write_text("deb somewhere\n")
    return tmp_path


def with_python(root: Path, minor: int) -> Path:
    modules = root / f"usr/lib/python3.{minor}"
    modules.mkdir(parents=True)
    (modules / "thing.py").write_text("answer = 42\n")
    return modules


def test_there_is_a_shell_and_nothing_of_the_packages_is_replaced(root: Path) -> None:
    (root / "usr/bin/tar").write_text("the real one")
    assert main(root, needs_python=False) == ""
    assert str((root / "usr/bin/sh").readlink()) == "/usr/bin/busybox"
    assert str((root / "usr/local/bin/ls").readlink()) == "/usr/bin/busybox"
    assert not (root / "usr/local/bin/tar").is_symlink()
    assert (root / "etc/passwd").read_text().startswith("root:x:0:0:")
    assert (root / "proc").is_dir()


def test_users_that_packages_bring_stay(root: Path) -> None:
    (root / "etc/passwd").write_text("somebody\n")
    main(root, needs_python=False)
    assert (root / "etc/passwd").read_text() == "somebody\n"


def test_the_image_does_not_contain_the_sources_of_its_packages(root: Path) -> None:
    main(root, needs_python=False)
    assert not (root / "etc/apt/sources.list").exists()
    assert not (root / "var/lib/apt/lists").exists()


def test_modules_are_compiled_with_the_paths_they_will_have(root: Path) -> None:
    modules = with_python(root, HERE)
    assert main(root, needs_python=True) == ""
    (compiled,) = (modules / "__pycache__").iterdir()
    assert compiled.name == f"thing.cpython-3{HERE}.pyc"
    assert f"/usr/lib/python3.{HERE}/thing.py".encode() in compiled.read_bytes()
    assert str(root).encode() not in compiled.read_bytes()


def test_without_a_python_of_that_version_modules_stay_as_they_are(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = with_python(root, HERE + 40)
    monkeypatch.setattr(image_root.shutil, "which", lambda _: None)
    assert main(root, needs_python=True) == ""
    assert not (modules / "__pycache__").exists()


def test_a_node_needs_a_python_that_is_new_enough(root: Path) -> None:
    assert "no Python" in main(root, needs_python=True)
    with_python(root, 9)
    assert "Python 3.9; nodes need 3.11 or later" in main(root, needs_python=True)
    with_python(root, 12)
    assert python_of(root) == 12
