"""The commands `python3 nodes.pyz board ...`, which the orchestrator calls on a board."""

import json
import os
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from nodes.board.errors import WRONG_INPUT, BoardError

_PIECE = 1 << 16  # bytes that are read at a time
USAGE = """\
usage: python3 nodes.pyz board shape [--show] links.json
       python3 nodes.pyz board unshape links.json
       python3 nodes.pyz board clock
       python3 nodes.pyz board sums FOLDER
       python3 nodes.pyz board read FILE OFFSET
"""


def main(arguments: Sequence[str]) -> int:
    """Run a command; the exit code (1: it failed, 2: the file or the arguments are wrong)."""
    try:
        return _do(arguments)
    except BoardError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except BrokenPipeError:
        # The caller has disconnected. Python must not try to write the rest of the buffer again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _do(arguments: Sequence[str]) -> int:
    match list(arguments):
        case ["shape", path]:
            from nodes.board.shaping import shape

            _print({"changed": shape(_file(path))})
        case ["shape", "--show", path] | ["shape", path, "--show"]:
            from nodes.board.shaping import show

            _print(show(_file(path)))
        case ["unshape", path]:
            from nodes.board.shaping import unshape

            _print({"changed": unshape(_file(path))})
        case ["clock"]:
            answer_clock(sys.stdin.buffer, sys.stdout.buffer)
        case ["sums", folder]:
            _print(list_files(Path(folder)))
        case ["read", path, offset] if offset.isdecimal():
            copy_from(Path(path), int(offset), sys.stdout.buffer)
        case _:
            sys.stderr.write(USAGE)
            return WRONG_INPUT
    return 0


def _file(path: str) -> Path:
    return Path(path).absolute()


def _print(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


# `python3 nodes.pyz board clock`: the orchestrator asks for the time over SSH, to measure the board's clock offset.


def answer_clock(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer each line with the time in nanoseconds since 1970, until there are no more."""
    while questions.readline():
        answers.write(b"%d\n" % time.time_ns())
        answers.flush()


# `board sums` and `board read`: the orchestrator collects what the board has captured and logged.


def list_files(folder: Path) -> list[dict[str, Any]]:
    """Name, size and checksum of each regular file in the folder, as it is while it is read; links do not count."""
    try:
        found = [_describe_file(path) for path in sorted(folder.iterdir())]
    except OSError as error:
        raise BoardError(f"{error.filename} cannot be read: {error.strerror}") from error
    return [one for one in found if one is not None]


def _describe_file(path: Path) -> dict[str, Any] | None:
    from hashlib import sha256  # takes a board a while to load, and only this command needs it

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


def copy_from(path: Path, offset: int, out: BinaryIO) -> None:
    """Write the bytes from the offset to the file's present end: a growing file must not keep the command running."""
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
