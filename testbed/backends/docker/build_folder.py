"""Where a lab builds its image: a temporary folder that `down` can find, since the lab's folder says where it is.

Not within the lab's folder: that is often on a small file system which allows neither programs nor devices.
The builder holds a lock on it; a folder whose lock is free was left by a builder that is dead.
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

LINK = "image-build"  # in the lab's folder, before there is what it points to
PREFIX = "testbed-image-"
JUST_MADE_S = 60.0  # so young, its builder may not hold the lock yet


@contextmanager
def build_folder(lab: LabPlace | None) -> Iterator[Path]:
    """An empty folder; it goes at the end, or with `remove_build_folder` if the end was a sudden one."""
    folder = Path(tempfile.gettempdir(), f"{PREFIX}{secrets.token_hex(8)}")
    if lab is not None:
        lab.folder.mkdir(parents=True, exist_ok=True)
        remove_build_folder(lab)
        (lab.folder / LINK).symlink_to(folder)
    try:
        folder.mkdir()
        folder.chmod(0o755)  # the package manager gives up its rights while it fetches
        with _held(folder):
            yield folder
    finally:
        if lab is not None:
            remove_build_folder(lab)
        shutil.rmtree(folder, ignore_errors=True)


def remove_build_folder(lab: LabPlace) -> list[str]:
    """Take away what a build left; what was removed, as sentences."""
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
    """Remove a folder that `abandoned_build_folders` named; why not, if it cannot be removed."""
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
    """Whether it is a folder of ours, not quite new, whose lock nobody holds."""
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
