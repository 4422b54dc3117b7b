"""Which broker a node at the edge calls next, and when.

It stays with a broker until the link breaks. Then it calls the same one once more, then the next of its list, round and
round, with growing waits. Where that one would hardly answer, the next one is called at once, but not again and again
if it is so with all brokers: a broker that is about to stop sends its guests away, and one that was silent for too long
is not waited for a second time. When the node starts it is more patient with the nearest broker, which may be starting
as well.
"""

from collections.abc import Sequence
from random import Random

from nodes.runtime.config import BrokerAddress

# How long to wait before connecting again.


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


STARTING_S = 5.0  # so long a node that has had no link yet calls the nearest broker only


class BrokerSelection:
    """The brokers of one node, the nearest first."""

    def __init__(self, brokers: Sequence[BrokerAddress], backoff: Backoff) -> None:
        self._brokers = brokers
        self._backoff = backoff
        self._place = 0
        self._left = 0  # times in a row that it did not call the same one again
        self._patience_s = STARTING_S

    @property
    def next(self) -> BrokerAddress:
        """The broker to call."""
        return self._brokers[self._place]

    def on_unreachable(self, took_s: float = 0.0) -> float:
        """It could not be reached, which took so long to find out; seconds until the next call."""
        wait = self._backoff.next_wait()
        self._patience_s -= took_s + wait
        if self._patience_s <= 0:
            self._move()
        return wait

    def on_link_lost(self, lived_s: float, *, leave: bool) -> float:
        """There was a link to it, for so long; seconds until the next call. `leave`: to another one."""
        self._backoff.on_link_lost(lived_s)
        self._patience_s = 0.0
        if lived_s > CAP_S:
            self._left = 0
        if leave:
            self._move()
            self._left += 1
            if self._left < len(self._brokers):
                return 0.0
        return self._backoff.next_wait()

    def _move(self) -> None:
        self._place = (self._place + 1) % len(self._brokers)
