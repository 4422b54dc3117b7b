"""To whom a node passes data on its way to the subscriber: one rule for each method (Kawakami 2016).

    server   to the subscriber itself
    chain    to the nearest one on the way, so that everybody is passed
    push     to the one that a link reaches furthest on the way, not beyond the subscriber (highest level first)

Pure functions of keys: a node asks with the links that it has now, an experiment with those that it should have. Every
step goes on in the direction of the one before or straight to the subscriber, so no data comes back to where it was.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Method(StrEnum):
    """How data gets to the subscriber."""

    SERVER = "server"
    CHAIN = "chain"
    PUSH = "push"


class Lists(StrEnum):
    """What the lists of the Skip Graph are."""

    LINE = "line"  # who stands left of the subscriber goes right, and the other way round
    RING = "ring"  # the ends of a list are neighbours; data may go round the end


@dataclass(frozen=True, slots=True)
class Rule:
    """How everybody of one collection passes data on; it only works if all have the same."""

    method: Method
    lists: Lists = Lists.LINE
    turn: bytes | None = (
        None  # in a ring: who comes before it, going right from the subscriber, goes left
    )

    def next_stop(self, me: bytes, goal: bytes, links: Iterable[bytes]) -> bytes | None:
        """The key to which `me` passes what is for `goal`; None: it is there, or no link leads on.

        `links`: the keys of its neighbours in any order, own topic only: nobody else can join data of this topic.
        """
        if me == goal or self.method is Method.SERVER:
            return None if me == goal else goal
        known = set(links)
        if goal in known and self.method is Method.PUSH:
            return goal
        rightwards = self.goes_right(me, goal)
        here = _round_from(goal, me)
        onward = [
            key for key in known - {me, goal} if (_round_from(goal, key) > here) is rightwards
        ]
        if not onward:
            return goal if goal in known else None
        to_the_last = rightwards is (self.method is Method.PUSH)
        choose = max if to_the_last else min
        return choose(onward, key=lambda key: _round_from(goal, key))

    def goes_right(self, me: bytes, goal: bytes) -> bool:
        """Whether data goes from here to larger keys; in a ring also across its end."""
        if self.lists is Lists.LINE:
            return me < goal
        return self.turn is None or _round_from(goal, me) >= _round_from(goal, self.turn)


def _round_from(goal: bytes, key: bytes) -> tuple[bool, bytes]:
    """Where a key comes when one goes right from the goal, across the end of the ring."""
    return key < goal, key
