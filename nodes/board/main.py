"""The commands `python3 nodes.pyz board ...`, which the orchestrator calls on a board."""

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from nodes.board.errors import WRONG_INPUT, BoardError

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
            answer(sys.stdin.buffer, sys.stdout.buffer)
        case ["sums", folder]:
            from nodes.board.files import sums

            _print(sums(Path(folder)))
        case ["read", path, offset] if offset.isdecimal():
            from nodes.board.files import copy

            copy(Path(path), int(offset), sys.stdout.buffer)
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


def answer(questions: BinaryIO, answers: BinaryIO) -> None:
    """For each line the time in nanoseconds since 1970, until there are no more."""
    while questions.readline():
        answers.write(b"%d\n" % time.time_ns())
        answers.flush()
