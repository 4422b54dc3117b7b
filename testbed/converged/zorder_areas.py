"""Who owns which stretch of the Z-order curve, and how a node leaves its area and takes half of another's.

Sorted by where they begin, nodes own the points up to the next one's first, and the last one those before the first.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from testbed.converged.zorder_space import Masks, Numbers, Space


class Give(StrEnum):
    """To whom a node that leaves gives its area."""

    BOTH = "both"  # half to each of its two neighbours, as the text has it
    LEFT = "left"  # all to the one before it: nobody else's first point changes


@dataclass(slots=True)
class Areas:
    """Nodes in the order of their areas. Index i is a place in that order, `names` says who is there."""

    space: Space
    starts: Numbers
    names: Numbers = field(init=False)
    events: Numbers = field(init=False)
    held: Masks = field(init=False)  # [place, word]: the subscriptions that a node has

    def __post_init__(self) -> None:
        if len(self.starts) < 2 or (np.diff(self.starts) <= 0).any():
            raise ValueError(
                "areas need at least two nodes that begin at different points, in order"
            )
        self.names = np.arange(len(self.starts))
        self.events = np.zeros(len(self.starts), dtype=np.int64)
        self.held = np.zeros((len(self.starts), self.space.wanted.shape[1]), dtype=np.uint64)
        for place in range(len(self.starts)):
            self._look(place)

    @classmethod
    def equal(cls, space: Space, nodes: int) -> "Areas":
        """Areas of one size, as far as the points can be divided."""
        return cls(space, np.arange(nodes) * space.points // nodes)

    @property
    def subscriptions(self) -> Numbers:
        """How many each node has."""
        counts: Numbers = np.bitwise_count(self.held).sum(axis=1, dtype=np.int64)
        return counts

    @property
    def loads(self) -> Numbers:
        """Events x subscriptions."""
        return self.events * self.subscriptions

    def owner(self, number: int) -> int:
        """The place of the node that owns a point."""
        place = int(np.searchsorted(self.starts, number, "right")) - 1
        return place % len(self.starts)

    def size(self, place: int) -> int:
        """How many points its area has; who is alone has all."""
        return (
            self._behind(place) - int(self.starts[place])
        ) % self.space.points or self.space.points

    def place_of(self, name: int) -> int:
        """Where a node stands now."""
        return int(np.flatnonzero(self.names == name)[0])

    def move(self, light: int, heavy: int, give: Give) -> bool:
        """One node gives its area away and takes the upper half of another's; both by name.

        Nothing is done (False) if they are one, or if the heavy one's area is a single point.
        """
        if light == heavy or self.size(self.place_of(heavy)) < 2:
            return False
        self._leave(self.place_of(light), give)
        self._join(light, self.place_of(heavy))
        return True

    def _leave(self, place: int, give: Give) -> None:
        """Its neighbours have its area."""
        count = len(self.starts)
        left, right = (place - 1) % count, (place + 1) % count
        middle = (self.starts[place] + self.size(place) // 2) % self.space.points
        if give is Give.BOTH:
            self.starts[right] = middle
        self._drop(place)
        left, right = (each - (each > place) for each in (left, right))
        self._look(left)
        if give is Give.BOTH:
            self._look(right)
            self._sort()

    def _join(self, name: int, heavy: int) -> None:
        """It takes the upper half of the heavy one's area."""
        size = self.size(heavy)
        middle = (self.starts[heavy] + (size + 1) // 2) % self.space.points
        place = int(np.searchsorted(self.starts, middle))
        self.starts = np.insert(self.starts, place, middle)
        self.names = np.insert(self.names, place, name)
        self.events = np.insert(self.events, place, 0)
        self.held = np.insert(self.held, place, 0, axis=0)
        self._look(place)
        self._look((place - 1) % len(self.starts))

    def _drop(self, place: int) -> None:
        self.starts, self.names, self.events = (
            np.delete(each, place) for each in (self.starts, self.names, self.events)
        )
        self.held = np.delete(self.held, place, axis=0)

    def _sort(self) -> None:
        """The first node may begin behind the last one now: then it is the last."""
        order = np.argsort(self.starts)
        self.starts, self.names, self.events = (
            each[order] for each in (self.starts, self.names, self.events)
        )
        self.held = self.held[order]

    def _behind(self, place: int) -> int:
        return int(self.starts[(place + 1) % len(self.starts)])

    def _look(self, place: int) -> None:
        """What lies in its area now."""
        first, behind = int(self.starts[place]), self._behind(place)
        points = self.space.points
        stretches = [(first, behind)] if first < behind else [(first, points), (0, behind)]
        firsts, behinds = (np.array(each) for each in zip(*stretches, strict=True))
        self.events[place] = self.space.events_between(firsts, behinds).sum()
        held = [self.space.wanted_between(*stretch) for stretch in stretches]
        self.held[place] = np.bitwise_or.reduce(held, axis=0)
