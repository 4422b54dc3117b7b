"""What is sent: large routine messages at a fixed pace, and small urgent ones at random times (Lee 2016, chapter 5)."""

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
    """In the order of time. `scale` makes all of it so much faster; lines must then have so much more rate."""
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
