"""A forked process gets a command line and a mark of its own, as if it had been started by itself.

What `ps` shows and what /proc/<pid>/environ holds is memory of the process, laid out by the kernel when the program was
started; a fork copies it. It can be overwritten, but not grow: whoever forks is started with some room.
"""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

PADDING_VARIABLE = "TESTBED_ROOM"  # a variable that only takes up space
PADDING = "-" * 64
_ARGUMENTS, _ENVIRONMENT = (
    45,
    47,
)  # their places in /proc/self/stat, counted from after the command's name


def padding_for(words: Sequence[str]) -> str:
    """An argument that makes a command line long enough for these words."""
    return "-" * sum(len(word.encode()) + 1 for word in words)


class ProcessTitle:
    """How this process and what it forks look from outside. Made before forking: it is looked up once."""

    def __init__(self) -> None:
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        self._arguments = int(stat[_ARGUMENTS]), int(stat[_ARGUMENTS + 1])
        self._environment = int(stat[_ENVIRONMENT]), int(stat[_ENVIRONMENT + 1])
        self._variables = Path("/proc/self/environ").read_bytes()

    def change(self, argv: Sequence[str], marks: Mapping[str, str]) -> None:
        """From now on this process looks as if it had been started with these arguments and marks."""
        _overwrite(self._arguments, b"".join(word.encode() + b"\0" for word in argv))
        _overwrite(self._environment, marked(self._variables, marks))


def marked(environment: bytes, marks: Mapping[str, str]) -> bytes:
    """The environment with these variables changed, the room given up."""
    lines = []
    for line in environment.split(b"\0"):
        name = line.partition(b"=")[0].decode(errors="replace")
        if name in marks:
            lines.append(f"{name}={marks[name]}".encode())
        elif line and name != PADDING_VARIABLE:
            lines.append(line)
    return b"".join(line + b"\0" for line in lines)


def _overwrite(place: tuple[int, int], data: bytes) -> None:
    """Put the data where the kernel looks, cut or filled up to the length that there is."""
    start, end = place
    size = end - start
    ctypes.memmove(start, data[: size - 1].ljust(size, b"\0"), size)
