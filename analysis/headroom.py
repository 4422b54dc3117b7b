"""Whether the machine had room left while it was measured. Reasons for doubt are sentences: number, limit, when.

Why these limits: docs/analysis.md, "Was the machine fast enough?".
"""

from collections.abc import Callable

from analysis.machine import Row, Watch, facts

LEAST_IDLE = 0.10  # of the processors' time, in a second
MOST_BUSY_SECONDS = 0.05  # so many of the seconds may have less
LATE_WAKEUP_S = (
    0.020  # 99 % of the wake-ups came within this, or sooner if the delays measured are short:
)
WAKEUP_OF_DELAY = 0.1  # of the smallest 99th percentile of the delays ...
LEAST_WAKEUP_LIMIT_S = 0.001  # ... but Linux promises no less than this to anybody
LATE_RELAY_S = 0.020  # no packet left a user-space link later than this
LEAST_FREE_BYTES = 256 << 20
MOST_SWAPPED_BYTES = 1 << 20  # read back in a second
LEAST_WATCHED = 0.9  # of the time that counts


def wakeup_limit_s(least_delay_p99_s: float | None) -> float:
    """How late processes may be woken for delays of this size to be believed."""
    if least_delay_p99_s is None:
        return LATE_WAKEUP_S
    return min(LATE_WAKEUP_S, max(LEAST_WAKEUP_LIMIT_S, WAKEUP_OF_DELAY * least_delay_p99_s))


def doubts(watch: Watch, least_delay_p99_s: float | None) -> list[str]:
    """What the rows that count say against the numbers of the run; without any row, that there is none."""
    if watch.wanted_s <= 0:
        return []
    return [
        *_gaps(watch),
        *_processors(watch),
        *_wakeups(watch, wakeup_limit_s(least_delay_p99_s)),
        *_memory(watch),
    ]


def relay_doubts(watch: Watch) -> list[str]:
    """Whether the user-space links kept their times."""
    worst = _worst(watch, lambda row: row.relay_late_max_s)
    if worst is None or (late := worst.relay_late_max_s or 0.0) <= LATE_RELAY_S:
        return []
    return [
        f"The link emulator was up to {_ms(late)} late with a packet, {watch.when(worst)} "
        f"(more than {_ms(LATE_RELAY_S)})."
    ]


def _gaps(watch: Watch) -> list[str]:
    if watch.watched_s >= LEAST_WATCHED * watch.wanted_s:
        return []
    return [
        f"The machine was watched for only {watch.watched_s:.0f} of the {watch.wanted_s:.0f} seconds that count."
    ]


def _processors(watch: Watch) -> list[str]:
    known = [row for row in watch.counting if row.cpu_idle is not None]
    busy = [row for row in known if (row.cpu_idle or 0.0) < LEAST_IDLE]
    if len(busy) <= MOST_BUSY_SECONDS * len(known):
        return []
    return [
        f"The processors had hardly any time left: less than {_percent(LEAST_IDLE)} was idle in {len(busy)} of "
        f"{len(known)} seconds (more than {_percent(MOST_BUSY_SECONDS)} of them), first {watch.when(busy[0])}."
    ]


def _wakeups(watch: Watch, limit_s: float) -> list[str]:
    p99 = facts(watch)["wakeup_p99_s"]
    worst = _worst(watch, lambda row: row.wakeup_max_s)
    if worst is None or p99 is None or p99 <= limit_s:
        return []
    why = "" if limit_s == LATE_WAKEUP_S else ", a tenth of the shortest delays measured"
    return [
        f"Processes were woken late: the 99th percentile is {_ms(p99)} (more than {_ms(limit_s)}{why}), "
        f"the worst {_ms(worst.wakeup_max_s or 0.0)}, {watch.when(worst)}."
    ]


def _memory(watch: Watch) -> list[str]:
    reasons = []
    least = _worst(watch, lambda row: _negative(row.memory_free_bytes))
    free = None if least is None else least.memory_free_bytes
    if least is not None and free is not None and free < LEAST_FREE_BYTES:
        reasons.append(
            f"Memory was short: {_mib(free)} were left, {watch.when(least)} (less than {_mib(LEAST_FREE_BYTES)})."
        )
    most = _worst(watch, lambda row: row.swapped_in_bytes)
    swapped = 0 if most is None else most.swapped_in_bytes or 0
    if most is not None and swapped > MOST_SWAPPED_BYTES:
        reasons.append(
            f"The machine swapped: {_mib(swapped)} came back from disk within a second, {watch.when(most)} "
            f"(more than {_mib(MOST_SWAPPED_BYTES)})."
        )
    return reasons


def _worst(watch: Watch, value: Callable[[Row], float | None]) -> Row | None:
    """The row with the greatest value."""
    known = [(told, row) for row in watch.counting if (told := value(row)) is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def _negative(value: int | None) -> int | None:
    return None if value is None else -value


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"
