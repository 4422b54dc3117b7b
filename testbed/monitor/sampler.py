"""Samples of the machine: /proc, the container's limit and the shared counters; two give a row of machine.jsonl.

Files are opened once and read again.
"""

import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.monitor import proc
from testbed.monitor.proc import Limit, Ticks, Used
from testbed.monitor.shared_counters import SharedCounters

# Many durations in a few numbers that can be added up: how many were at most so long.


FINEST_US = 64  # shorter delays need not be distinguished
_SIGNIFICANT_BITS = 6


def upper_us(duration_ns: int) -> int:
    """The duration in microseconds, rounded up to 6 significant bits (at most 3 % too much) and to whole 64."""
    us = -(-duration_ns // 1000)
    shift = max(FINEST_US.bit_length() - 1, us.bit_length() - _SIGNIFICANT_BITS)
    return -(-us >> shift) << shift


def histogram(durations_ns: Iterable[int]) -> list[list[int]]:
    """[upper bound in microseconds, how many], in order."""
    counts = Counter(upper_us(duration) for duration in durations_ns)
    return [[upper, counts[upper]] for upper in sorted(counts)]


def power_of_two_histogram(counts: Iterable[int]) -> list[list[int]]:
    """The same from counts by the bit length of the microseconds, as the relay keeps them."""
    return [[1 << bits, count] for bits, count in enumerate(counts) if count]


# A second of the machine as one row of machine.jsonl: two samples in, plain JSON values out.


PRESSURES = ("cpu", "memory", "io")


@dataclass(frozen=True, slots=True)
class Sample:
    """The machine at one moment; None where it does not report a value."""

    time_ns: int  # since 1970
    monotonic_ns: int
    ticks: Ticks | None
    running: int | None
    stalled_us: dict[str, int | None]  # by PRESSURES
    memory_bytes: int | None
    memory_free_bytes: int | None
    swapped_in_bytes: int | None
    swapped_out_bytes: int | None
    used: Used | None  # of a container's limit
    capture_dropped: int
    relay_late: tuple[int, ...]  # packets by the bit length of their lateness in microseconds
    relay_peak_ns: int


def row(
    before: Sample, after: Sample, delays_ns: Sequence[int], limit_cores: float | None = None
) -> dict[str, Any]:
    """The time between two samples; `delays_ns` are the wake-up delays in it."""
    span_ns = max(1, after.monotonic_ns - before.monotonic_ns)
    idle, stolen = _processor(before.ticks, after.ticks)
    throttled = None
    if limit_cores and before.used and after.used:
        used = (after.used.processor_ns - before.used.processor_ns) / (limit_cores * span_ns)
        left = min(1.0, max(0.0, 1.0 - used))
        idle = left if idle is None else min(idle, left)
        throttled = (after.used.throttled_ns - before.used.throttled_ns) / 1e9
    ordered = sorted(delays_ns)
    late = _since(before.relay_late, after.relay_late)
    return {
        "t": after.time_ns,
        "span_s": round(span_ns / 1e9, 6),
        "cpu_idle": _rounded(idle),
        "cpu_stolen": _rounded(stolen),
        "throttled_s": _rounded(throttled),
        "running": after.running,
        **{
            f"pressure_{name}": _share(before.stalled_us[name], after.stalled_us[name], span_ns)
            for name in PRESSURES
        },
        "wakeup_p50_s": ordered[(len(ordered) - 1) // 2] / 1e9 if ordered else None,
        "wakeup_max_s": ordered[-1] / 1e9 if ordered else None,
        "wakeups_us": histogram(ordered),
        "memory_bytes": after.memory_bytes,
        "memory_free_bytes": after.memory_free_bytes,
        "swapped_in_bytes": _difference(before.swapped_in_bytes, after.swapped_in_bytes),
        "swapped_out_bytes": _difference(before.swapped_out_bytes, after.swapped_out_bytes),
        "capture_dropped": after.capture_dropped,
        "relay_forwarded": sum(late),
        "relay_late_max_s": after.relay_peak_ns / 1e9 if any(late) else None,
        "relay_late_us": power_of_two_histogram(late),
    }


def _processor(before: Ticks | None, after: Ticks | None) -> tuple[float | None, float | None]:
    """Shares of the time that were idle and stolen."""
    if before is None or after is None or after.total <= before.total:
        return None, None
    total = after.total - before.total
    idle, stolen = after.idle - before.idle, after.stolen - before.stolen
    return min(1.0, max(0.0, idle / total)), min(1.0, max(0.0, stolen / total))


def _since(before: tuple[int, ...], after: tuple[int, ...]) -> list[int]:
    """What was counted meanwhile; a relay that began anew has counted from zero."""
    if any(now < then for then, now in zip(before, after, strict=True)):
        return list(after)
    return [now - then for then, now in zip(before, after, strict=True)]


def _share(before_us: int | None, after_us: int | None, span_ns: int) -> float | None:
    if before_us is None or after_us is None:
        return None
    return round(min(1.0, max(0.0, (after_us - before_us) * 1000 / span_ns)), 4)


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


_READ_BYTES = 1 << 16  # bytes; the values are in the first ones
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Sampler:
    """Samples the machine that it runs on."""

    def __init__(
        self, counters: SharedCounters, limit: Limit | None, root: Path = Path("/proc")
    ) -> None:
        self._counters = counters
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

    def sample(self) -> Sample:
        """Now."""
        memory, swap = self._read("meminfo"), self._read("vmstat")
        running = proc.running(self._read("loadavg"))
        return Sample(
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
            capture_dropped=self._counters.capture_dropped,
            relay_late=tuple(self._counters.relay_late),
            relay_peak_ns=self._counters.take_relay_peak_ns(),
        )

    def _read(self, name: str) -> bytes:
        descriptor = self._files.get(name)
        if descriptor is None:
            return b""
        try:
            return os.pread(descriptor, _READ_BYTES, 0)
        except OSError:  # the kernel may have a pressure file and yet not let it be read
            return b""


def _bytes(pages: int | None) -> int | None:
    return None if pages is None else pages * _PAGE
