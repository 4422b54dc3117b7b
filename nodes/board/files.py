"""Lists a board's files with checksums, and sends their bytes from an offset on."""

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from nodes.board.errors import BoardError

_PIECE = 1 << 16


def sums(folder: Path) -> list[dict[str, Any]]:
    """Name, size and checksum of each regular file in the folder, as it is while it is read; links do not count."""
    try:
        found = [_sum(path) for path in sorted(folder.iterdir())]
    except OSError as error:
        raise BoardError(f"{error.filename} cannot be read: {error.strerror}") from error
    return [one for one in found if one is not None]


def _sum(path: Path) -> dict[str, Any] | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            left = size = os.fstat(file.fileno()).st_size
            digest = sha256()
            while left and (piece := file.read(min(left, _PIECE))):
                digest.update(piece)
                left -= len(piece)
    except FileNotFoundError:
        return None  # it was removed meanwhile
    return {"file": path.name, "size": size - left, "sha256": digest.hexdigest()}


def copy(path: Path, offset: int, out: BinaryIO) -> None:
    """The bytes from the offset to the file's present end: a growing file must not keep the command running."""
    try:
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size - offset
            file.seek(offset)
            while left > 0 and (piece := file.read(min(left, _PIECE))):
                out.write(piece)
                left -= len(piece)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BoardError(f"{path} cannot be read: {error.strerror}") from error
    out.flush()
