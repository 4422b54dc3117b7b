"""Which broker a client connects to next, and when.

A client stays with a broker until the link breaks. Then it tries the same broker once more, then the next of its list,
round and round, with growing waits. If the broker is about to stop, or was silent for too long, the client tries the
next one at once; but not again and again, if all brokers are like that. When a client starts, it tries the nearest
broker for a longer time, because that broker may be starting as well.
"""

from collections.abc import Sequence
from random import Random

from nodes.runtime.config import BrokerAddress

FIRST_S = 0.1
CAP_S = 5.0


class Backoff:
    """How long to wait before the next attempt: twice as long each time up to the cap, shortened at random, so that a
    hundred nodes do not all connect at once.

    A link that lived longer than the cap resets the wait. A shorter one does not, so that clients do not connect ten
    times a second to a broker that accepts each link and loses it.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._longest = FIRST_S

    def next_wait(self) -> float:
        """Seconds until the next attempt."""
        wait = self._longest * self._random.uniform(0.5, 1.0)
        self._longest = min(2 * self._longest, CAP_S)
        return wait

    def on_link_lost(self, lived_s: float) -> None:
        """A link ended that lived for so long."""
        if lived_s > CAP_S:
            self._longest = FIRST_S


STARTING_S = 5.0  # a node that has had no link yet tries only the nearest broker for so long


class BrokerSelection:
    """The brokers of one client, the nearest first."""

    def __init__(self, brokers: Sequence[BrokerAddress], backoff: Backoff) -> None:
        self._brokers = brokers
        self._backoff = backoff
        self._place = 0
        self._left = 0  # times in a row that it went on to another broker at once
        self._patience_s = STARTING_S

    @property
    def next(self) -> BrokerAddress:
        """The broker to connect to."""
        return self._brokers[self._place]

    def on_unreachable(self, took_s: float = 0.0) -> float:
        """An attempt failed after so many seconds; seconds until the next one."""
        wait = self._backoff.next_wait()
        self._patience_s -= took_s + wait
        if self._patience_s <= 0:
            self._move()
        return wait

    def on_link_lost(self, lived_s: float, *, leave: bool) -> float:
        """A link ended that lived for so long; seconds until the next attempt. `leave`: with another broker."""
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
