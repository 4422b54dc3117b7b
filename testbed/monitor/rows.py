"""A second of the machine as one row of machine.jsonl: two looks in, plain JSON values out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from testbed.monitor.histogram import histogram, power_of_two_histogram
from testbed.monitor.limits import Used
from testbed.monitor.proc import Ticks

PRESSURES = ("cpu", "memory", "io")


@dataclass(frozen=True, slots=True)
class Look:
    """What is to be seen at one moment; None where this machine does not tell."""

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
    before: Look, after: Look, delays_ns: Sequence[int], limit_cores: float | None = None
) -> dict[str, Any]:
    """The time between two looks; `delays_ns` are those of the sleeper in it."""
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
