"""The messages: large routine ones at a fixed pace, and small urgent ones at random times (Lee 2016, chapter 5)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

URGENT_BYTES, ROUTINE_BYTES = 1_000, 100_000
ROUTINE_EVERY_S = 10.0
URGENT_CHANCE = 0.4  # in each second; the thesis has 0.1, and runs four times as long
URGENT_WITHIN = 0.5  # of the second: two urgent messages are never closer than half a second


@dataclass(frozen=True, slots=True)
class Due:
    """One message and when it is to be sent."""

    at_ns: int  # after the start
    urgent: bool
    size: int  # bytes of payload


def timeline(
    seconds: float,
    seed: int,
    scale: float = 1.0,
    routine_every_s: float = ROUTINE_EVERY_S,
    chance: float = URGENT_CHANCE,
) -> tuple[Due, ...]:
    """The messages in the order of time. `scale` makes all of it this much faster; links need this much more rate."""
    chances = Random(seed)
    found = []
    for number in range(round(seconds / routine_every_s)):
        found.append(_due(number * routine_every_s, scale, urgent=False))
    for second in range(int(seconds)):
        within = chances.random() * URGENT_WITHIN
        if chances.random() < chance:
            found.append(_due(second + within, scale, urgent=True))
    return tuple(sorted(found, key=lambda due: due.at_ns))


def _due(at_s: float, scale: float, *, urgent: bool) -> Due:
    size = URGENT_BYTES if urgent else ROUTINE_BYTES
    return Due(round(at_s / scale * 1e9), urgent, size)


# From arrivals to the row of each contestant. Pure.


@dataclass(frozen=True, slots=True)
class Row:
    """One contestant on one link. Delays in seconds; those of urgent messages that never arrived are infinite."""

    name: str
    urgent_sent: int
    urgent_arrived: int
    p50_s: float
    p95_s: float
    largest_s: float
    routine_in_time: (
        float  # share of the routine bytes that had arrived when the last message was due
    )
    routine_arrived: float  # ... and in the end
    wire_per_payload: float  # bytes on the link, both ways, for each byte of payload that arrived
    processor_ms: float  # of the sender, for each message that arrived


def row(
    name: str,
    timeline: Sequence[Due],
    start_ns: int,
    arrivals: Mapping[int, int],
    wire_bytes: int,
    processor_s: float,
) -> Row:
    """The row for these arrivals: number in the timeline -> ns since 1970."""
    delays = sorted(
        (arrivals[number] - start_ns - due.at_ns) / 1e9 if number in arrivals else math.inf
        for number, due in enumerate(timeline)
        if due.urgent
    )
    last_due_ns = start_ns + timeline[-1].at_ns
    routine = sum(due.size for due in timeline if not due.urgent)
    in_time = arrived = payload = 0
    for number, at_ns in arrivals.items():
        due = timeline[number]
        payload += due.size
        if not due.urgent:
            arrived += due.size
            in_time += due.size if at_ns <= last_due_ns else 0
    return Row(
        name=name,
        urgent_sent=len(delays),
        urgent_arrived=sum(math.isfinite(delay) for delay in delays),
        p50_s=at_rank(delays, 0.5),
        p95_s=at_rank(delays, 0.95),
        largest_s=at_rank(delays, 1.0),
        routine_in_time=in_time / routine if routine else math.nan,
        routine_arrived=arrived / routine if routine else math.nan,
        wire_per_payload=wire_bytes / payload if payload else math.inf,
        processor_ms=1000 * processor_s / len(arrivals) if arrivals else math.inf,
    )


def at_rank(ordered: Sequence[float], share: float) -> float:
    """The smallest value that this share of the values does not exceed."""
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
