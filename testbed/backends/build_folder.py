"""Where a lab builds its image: a temporary folder that `down` can find, since the lab's folder says where it is.

Not within the lab's folder: that is often on a small file system which allows neither programs nor devices.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.places import LabPlace

LINK = "image-build"  # in the lab's folder, before there is what it points to


@contextmanager
def build_folder(lab: LabPlace) -> Iterator[Path]:
    """An empty folder; it goes at the end, or with `remove_build_folder` if the end was a sudden one."""
    lab.folder.mkdir(parents=True, exist_ok=True)
    remove_build_folder(lab)
    folder = Path(tempfile.gettempdir(), f"testbed-image-{secrets.token_hex(8)}")
    (lab.folder / LINK).symlink_to(folder)
    try:
        folder.mkdir()
        folder.chmod(0o755)  # the package manager gives up its rights while it fetches
        yield folder
    finally:
        remove_build_folder(lab)


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
