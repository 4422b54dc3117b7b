"""A few numbers in memory that the keeper's processes share: the relay and the capture write, the monitor reads.

No process waits for another: a relay that had to answer a request each second would be late because of the monitor.
Each cell has one writer and is 8 aligned bytes, which the processor writes at once. The one exception is the relay's
peak, which the monitor sets back; the worst of that race is a peak reported a second later.
"""

import mmap
import os
from collections.abc import Mapping
from contextlib import suppress

LATE_BUCKETS = 64  # of the relay's lateness in microseconds, each twice as wide as the one before
VARIABLE = (
    "TESTBED_COUNTERS"  # path of the shared memory, in the environment of the keeper's processes
)
_CELL = 8
_CELLS = 2 + LATE_BUCKETS


class SharedCounters:
    """The cells, in memory that is shared or, if there is none, in this process only."""

    def __init__(self, cells: memoryview) -> None:
        self._capture_dropped = cells[0:1]
        self.relay_peak_ns = cells[1:2]  # the largest lateness since the monitor's last sample
        self.relay_late = cells[2 : 2 + LATE_BUCKETS]  # packets by lateness, since the relay began

    @property
    def capture_dropped(self) -> int:
        """Packets that the capture has lost so far."""
        return self._capture_dropped[0]

    @capture_dropped.setter
    def capture_dropped(self, count: int) -> None:
        self._capture_dropped[0] = count

    def begin_relay(self) -> None:
        """A new relay counts from zero."""
        self.relay_peak_ns[0] = 0
        for bucket in range(LATE_BUCKETS):
            self.relay_late[bucket] = 0

    def take_relay_peak_ns(self) -> int:
        """The relay's peak, which begins anew."""
        peak, self.relay_peak_ns[0] = self.relay_peak_ns[0], 0
        return peak


def private_counters() -> SharedCounters:
    """Counters of this process only."""
    return SharedCounters(memoryview(bytearray(_CELLS * _CELL)).cast("q"))


def open_shared_counters(environment: Mapping[str, str] = os.environ) -> SharedCounters:
    """The one of this process's keeper; without a keeper, a private one."""
    path = environment.get(VARIABLE)
    if path:
        with suppress(OSError, ValueError):  # the keeper is just ending
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                return SharedCounters(memoryview(mmap.mmap(descriptor, _CELLS * _CELL)).cast("q"))
            finally:
                os.close(descriptor)
    return private_counters()


def make_shared_memory() -> int:
    """Memory for the counters, as a descriptor: it goes with the last process that uses it."""
    descriptor = os.memfd_create("testbed-board")
    os.ftruncate(descriptor, _CELLS * _CELL)
    return descriptor
