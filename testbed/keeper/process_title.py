"""Gives a forked process its own command line and mark, as if it had been started by itself.

`ps` and /proc/<pid>/environ show memory of the process, which the kernel laid out when the program was started; a fork
copies it. It can be overwritten, but cannot grow, so the forking process is started with some padding.
"""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

PADDING_VARIABLE = "TESTBED_TITLE_PADDING"  # an environment variable that only takes up space
PADDING = "-" * 64
# Positions of their addresses in /proc/self/stat, counted from after the command's name.
_ARGUMENTS, _ENVIRONMENT = 45, 47


def padding_for(words: Sequence[str]) -> str:
    """An argument that makes a command line long enough for these words."""
    return "-" * sum(len(word.encode()) + 1 for word in words)


class ProcessTitle:
    """The command line and environment that other processes see. Made before forking, as it reads /proc only once."""

    def __init__(self) -> None:
        stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        self._arguments = int(stat[_ARGUMENTS]), int(stat[_ARGUMENTS + 1])
        self._environment = int(stat[_ENVIRONMENT]), int(stat[_ENVIRONMENT + 1])
        self._variables = Path("/proc/self/environ").read_bytes()

    def change(self, argv: Sequence[str], marks: Mapping[str, str]) -> None:
        """Show these arguments and marks from now on."""
        _overwrite(self._arguments, b"".join(word.encode() + b"\0" for word in argv))
        _overwrite(self._environment, marked(self._variables, marks))


def marked(environment: bytes, marks: Mapping[str, str]) -> bytes:
    """The environment with these variables changed, and without the padding."""
    lines = []
    for line in environment.split(b"\0"):
        name = line.partition(b"=")[0].decode(errors="replace")
        if name in marks:
            lines.append(f"{name}={marks[name]}".encode())
        elif line and name != PADDING_VARIABLE:
            lines.append(line)
    return b"".join(line + b"\0" for line in lines)


def _overwrite(place: tuple[int, int], data: bytes) -> None:
    """Write the data to the memory that the kernel shows, cut or filled to its length."""
    start, end = place
    size = end - start
    ctypes.memmove(start, data[: size - 1].ljust(size, b"\0"), size)
