"""The load of the machine: the rows of machine.jsonl, and which of them count.

The rows during the scenario count; before it, nodes start, which may use the whole machine. In a lab without a
scenario, the rows from the first publication on count.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from analysis.inputs.run_folder import Run

SHORTEST_S = 0.5  # the processor's clock ticks are too coarse to judge a shorter row


@dataclass(frozen=True, slots=True)
class Row:
    """About one second of the machine; None for values that were not recorded."""

    begin_ns: int
    end_ns: int
    cpu_idle: float | None
    wakeup_max_s: float | None
    wakeups_us: tuple[tuple[int, int], ...]  # upper bound, how many
    memory_free_bytes: int | None
    swapped_in_bytes: int | None
    capture_dropped: int  # so far
    relay_forwarded: int
    relay_late_max_s: float | None
    relay_late_us: tuple[tuple[int, int], ...]

    @property
    def span_s(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9

    def within_s(self, begin_ns: int, end_ns: int) -> float:
        """The overlap of the row with this time, in seconds."""
        return max(0, min(self.end_ns, end_ns) - max(self.begin_ns, begin_ns)) / 1e9


@dataclass(frozen=True, slots=True)
class Watch:
    """All rows of a run, and the time in which they count."""

    rows: tuple[Row, ...]
    begin_ns: int
    end_ns: int
    played: bool

    @property
    def counting(self) -> tuple[Row, ...]:
        """The rows with more than half of their span in the time that counts."""
        return tuple(
            row
            for row in self.rows
            if row.span_s >= SHORTEST_S
            and 2 * row.within_s(self.begin_ns, self.end_ns) > row.span_s
        )

    @property
    def watched_s(self) -> float:
        """Seconds of that time that the rows cover."""
        return sum(row.within_s(self.begin_ns, self.end_ns) for row in self.rows)

    @property
    def wanted_s(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9

    def when(self, row: Row) -> str:
        """`14 s into the scenario`."""
        at = max(0.0, (row.begin_ns - self.begin_ns) / 1e9)
        return f"{at:.0f} s {'into the scenario' if self.played else 'after the first publication'}"


def read_watch(run: Run, first_published_ns: int | None) -> Watch | None:
    """The rows of a run's machine; None if it was not recorded."""
    rows = read_rows(run)
    if rows is None:
        return None
    play = run.manifest.get("play")
    if play:
        return Watch(rows, int(play["start_ns"]), int(play["end_ns"]), True)
    end_ns = rows[-1].end_ns if rows else 0
    begin_ns = end_ns if first_published_ns is None else min(first_published_ns, end_ns)
    return Watch(rows, begin_ns, end_ns, False)


def read_rows(run: Run) -> tuple[Row, ...] | None:
    """The rows in the order of time. Lines that a full disk or a crash truncated are skipped."""
    try:
        lines = run.machine.read_bytes().splitlines()
    except FileNotFoundError:
        return None
    rows = [row for line in lines if (row := _row(line)) is not None]
    return tuple(sorted(rows, key=lambda row: row.end_ns))


def _row(line: bytes) -> Row | None:
    try:
        record = json.loads(line)
        end_ns = int(record["t"])
        return Row(
            begin_ns=end_ns - round(float(record["span_s"]) * 1e9),
            end_ns=end_ns,
            cpu_idle=_float(record["cpu_idle"]),
            wakeup_max_s=_float(record["wakeup_max_s"]),
            wakeups_us=_counts(record["wakeups_us"]),
            memory_free_bytes=_int(record["memory_free_bytes"]),
            swapped_in_bytes=_int(record["swapped_in_bytes"]),
            capture_dropped=int(record["capture_dropped"]),
            relay_forwarded=int(record["relay_forwarded"]),
            relay_late_max_s=_float(record["relay_late_max_s"]),
            relay_late_us=_counts(record["relay_late_us"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _int(value: Any) -> int | None:
    return None if value is None else int(value)


def _counts(pairs: Iterable[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(upper), int(count)) for upper, count in pairs)


def machine_summary(watch: Watch) -> dict[str, Any]:
    """Statistics over the time that counts; null where nothing is known."""
    rows = watch.counting
    idle = [row.cpu_idle for row in rows if row.cpu_idle is not None]
    woken = [row.wakeup_max_s for row in rows if row.wakeup_max_s is not None]
    late = [row.relay_late_max_s for row in rows if row.relay_late_max_s is not None]
    free = [row.memory_free_bytes for row in rows if row.memory_free_bytes is not None]
    return {
        "seconds": round(watch.watched_s, 1),
        "cpu_idle_min": min(idle, default=None),
        "cpu_idle_median": round(median(idle), 4) if idle else None,
        "wakeup_p99_s": quantile_s((row.wakeups_us for row in rows), 0.99, woken),
        "wakeup_max_s": max(woken, default=None),
        "relay_late_p99_s": quantile_s((row.relay_late_us for row in rows), 0.99, late),
        "relay_late_max_s": max(late, default=None),
        "capture_dropped": sum(dropped for _, dropped in drops(watch)),
        "memory_free_min_bytes": min(free, default=None),
        "swapped_in_bytes": sum(row.swapped_in_bytes or 0 for row in rows),
    }


def quantile_s(
    histograms: Iterable[tuple[tuple[int, int], ...]], share: float, maxima: Sequence[float]
) -> float | None:
    """A quantile from histograms: an upper bound, and never more than the maximum."""
    counts: Counter[int] = Counter()
    for histogram in histograms:
        counts.update(dict(histogram))
    wanted = share * counts.total()
    seen = 0
    for upper in sorted(counts):
        seen += counts[upper]
        if seen >= wanted:
            return min([upper / 1e6, *([max(maxima)] if maxima else [])])
    return None


def drops(watch: Watch) -> list[tuple[Row, int]]:
    """The counting rows in which the capture dropped packets, and how many. A new capture process counts from zero."""
    found, before = [], 0
    counting = set(watch.counting)
    for row in watch.rows:
        lost = row.capture_dropped - before
        before = row.capture_dropped
        if lost > 0 and row in counting:
            found.append((row, lost))
    return found
