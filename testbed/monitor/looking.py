"""Looks at the machine: reads /proc, the container's limit and the board. Files are opened once and read again."""

import os
import time
from contextlib import suppress
from pathlib import Path

from testbed.monitor import proc
from testbed.monitor.board import Board
from testbed.monitor.limits import Limit
from testbed.monitor.rows import PRESSURES, Look

_MOST = 1 << 16  # bytes; what is looked for stands in the first ones
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Eye:
    """Sees the machine that it runs on."""

    def __init__(self, board: Board, limit: Limit | None, root: Path = Path("/proc")) -> None:
        self._board = board
        self._limit = limit
        names = (
            "stat",
            "loadavg",
            "meminfo",
            "vmstat",
            *(f"pressure/{name}" for name in PRESSURES),
        )
        self._files: dict[str, int] = {}
        for name in names:
            with suppress(OSError):  # pressure is not in every kernel
                self._files[name] = os.open(root / name, os.O_RDONLY | os.O_CLOEXEC)

    def look(self) -> Look:
        """Now."""
        memory, swap = self._read("meminfo"), self._read("vmstat")
        running = proc.running(self._read("loadavg"))
        return Look(
            time_ns=time.time_ns(),
            monotonic_ns=time.monotonic_ns(),
            ticks=proc.ticks(self._read("stat")),
            running=None if running is None else max(0, running - 1),  # without ourselves
            stalled_us={
                name: proc.stalled_us(self._read(f"pressure/{name}")) for name in PRESSURES
            },
            memory_bytes=proc.memory_bytes(memory, b"MemTotal"),
            memory_free_bytes=proc.memory_bytes(memory, b"MemAvailable"),
            swapped_in_bytes=_bytes(proc.named(swap, b"pswpin")),
            swapped_out_bytes=_bytes(proc.named(swap, b"pswpout")),
            used=self._limit.used() if self._limit else None,
            capture_dropped=self._board.capture_dropped,
            relay_late=tuple(self._board.relay_late),
            relay_peak_ns=self._board.take_relay_peak_ns(),
        )

    def _read(self, name: str) -> bytes:
        descriptor = self._files.get(name)
        if descriptor is None:
            return b""
        try:
            return os.pread(descriptor, _MOST, 0)
        except OSError:  # the kernel may know a pressure and yet not tell it
            return b""


def _bytes(pages: int | None) -> int | None:
    return None if pages is None else pages * _PAGE
