"""How long to wait before connecting again."""

from collections.abc import Iterator
from random import Random

FIRST_S = 0.1
CAP_S = 5.0


def delays(random: Random) -> Iterator[float]:
    """Twice as long each time up to the cap, each shortened at random: a hundred nodes must not all come at once."""
    longest = FIRST_S
    while True:
        yield longest * random.uniform(0.5, 1.0)
        longest = min(2 * longest, CAP_S)
