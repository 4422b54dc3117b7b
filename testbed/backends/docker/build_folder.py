"""The temporary folder in which a lab builds its image. A link in the lab's folder leads `down` to it.

It is not within the lab's folder: that is often on a small file system that allows neither programs nor devices.
The builder holds a lock on it; a folder with a free lock was left by a dead builder.
"""

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.places import LabPlace

LINK = "image-build"  # in the lab's folder; made before its target
PREFIX = "testbed-image-"
JUST_MADE_S = 60.0  # the builder of a younger folder may not hold the lock yet


@contextmanager
def build_folder(lab: LabPlace | None) -> Iterator[Path]:
    """An empty folder, removed at the end; after a crash, `remove_build_folder` removes it."""
    folder = Path(tempfile.gettempdir(), f"{PREFIX}{secrets.token_hex(8)}")
    if lab is not None:
        lab.folder.mkdir(parents=True, exist_ok=True)
        remove_build_folder(lab)
        (lab.folder / LINK).symlink_to(folder)
    try:
        folder.mkdir()
        folder.chmod(0o755)  # the package manager drops its rights while it downloads
        with _held(folder):
            yield folder
    finally:
        if lab is not None:
            remove_build_folder(lab)
        shutil.rmtree(folder, ignore_errors=True)


def remove_build_folder(lab: LabPlace) -> list[str]:
    """Remove the folder of a build; return sentences on what was removed."""
    link = lab.folder / LINK
    try:
        folder = link.readlink()
    except OSError:
        return []
    left = folder.exists()
    shutil.rmtree(folder, ignore_errors=True)
    link.unlink(missing_ok=True)
    return [f"folder {folder}"] if left else []


def abandoned_build_folders() -> list[Path]:
    """Folders of this user's builds whose builder is dead."""
    return [
        folder for folder in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")) if _dead(folder)
    ]


def remove_abandoned(folder: Path) -> str:
    """Remove a folder of `abandoned_build_folders`; return the reason if that fails."""
    if any(Path(mount).is_relative_to(folder) for mount in _mounts()):
        return f"something is mounted in {folder}: `umount` it first"
    if not _dead(folder):
        return f"{folder} is in use again"
    shutil.rmtree(folder, ignore_errors=True)
    return f"{folder} could not be removed" if folder.exists() else ""


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _dead(folder: Path) -> bool:
    """Whether this user owns the folder, it is not new, and its lock is free."""
    try:
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            return False
        if time.time() - about.st_mtime < JUST_MADE_S:
            return False
        with _held(folder):
            return True
    except OSError:  # held, or gone meanwhile
        return False


def _mounts() -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line.split()[1] for line in lines]
