"""How long to wait before connecting again."""

from random import Random

FIRST_S = 0.1
CAP_S = 5.0


class Backoff:
    """Twice as long each time up to the cap, each wait shortened at random: a hundred nodes must not all come at once.

    A link that lived for longer than the cap begins a new row. One that broke sooner does not: a broker that takes
    every guest and loses it again is not asked ten times a second.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._longest = FIRST_S

    def next_wait(self) -> float:
        """Seconds until the next try."""
        wait = self._longest * self._random.uniform(0.5, 1.0)
        self._longest = min(2 * self._longest, CAP_S)
        return wait

    def on_link_lost(self, lived_s: float) -> None:
        """There was a link, for so long."""
        if lived_s > CAP_S:
            self._longest = FIRST_S
