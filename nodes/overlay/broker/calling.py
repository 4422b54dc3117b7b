"""When to call brokers that could not be reached, and which: one at a time, ever more seldom.

A line that was cut says nothing when it is whole again. So whoever has lost others tries them in turn; as soon as one
of them answers, the graph grows together again.
"""

from collections.abc import Sequence
from math import inf
from random import Random

from nodes.overlay.base import Peer

FIRST_S, LONGEST_S = 2.0, 16.0  # between two calls; each pause is twice as long as the one before
SELDOM_S = 64.0  # the longest pause, if there is little hope left


class Calling:
    """Of one broker."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pause = FIRST_S
        self._at: float | None = None
        self._called: dict[Peer, float] = {}

    def begin(self, now: float) -> None:
        """Another one was lost: begin with short pauses."""
        self._pause = FIRST_S
        moment = self._after(now)
        self._at = moment if self._at is None else min(self._at, moment)

    def _after(self, now: float) -> float:
        """Not at the same moment as others that have lost the same."""
        return now + self._pause * (0.75 + 0.5 * self._random.random())

    def is_due(self, now: float) -> bool:
        return self._at is not None and now >= self._at

    def next_deadline(self) -> float | None:
        return self._at

    def next_call(
        self, peers: Sequence[Peer], now: float, longest_s: float = LONGEST_S
    ) -> Peer | None:
        """Of these, the one that was not called for longest; None: there is nobody to call any more."""
        self._at = None
        if not peers:
            return None
        peer = min(peers, key=lambda each: self._called.get(each, -inf))
        self._called[peer] = now
        self._pause = min(2 * self._pause, longest_s)
        self._at = self._after(now)
        return peer
