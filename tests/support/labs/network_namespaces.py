"""Which network namespaces of a test are still in use.

The kernel reuses a namespace's number as soon as the namespace is gone, and other tests run in parallel. A process that
began under a number after our last process was seen there is not ours.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_START = 19  # of the fields of /proc/PID/stat behind the name: ticks since the machine began


class SeenNamespaces:
    """Numbers of namespaces, and when a process of ours was last seen in each."""

    def __init__(self, pids: Iterable[int] = ()) -> None:
        self._last_seen: dict[str, float] = {}
        self.note(pids)

    def note(self, pids: Iterable[int]) -> None:
        """Record that these processes are ours."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._last_seen |= {name: now for pid in pids if (name := _namespace(pid)) is not None}

    def __len__(self) -> int:
        return len(self._last_seen)

    def still_held(self) -> set[str]:
        """Namespaces with a running process that was there together with ours, except the namespace of this process."""
        own = _namespace(os.getpid())
        pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return {name for pid in pids if (name := self._held_by(pid)) is not None and name != own}

    def _held_by(self, pid: int) -> str | None:
        name = _namespace(pid)
        last_seen = self._last_seen.get(name or "")
        started = _started_at(pid)
        if last_seen is None or started is None or started > last_seen:
            return None
        return name


def _namespace(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    except OSError:
        return None


def _started_at(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[_START]) / _TICKS_PER_S
