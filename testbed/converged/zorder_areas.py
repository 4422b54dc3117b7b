"""Which node owns which stretch of the Z-order curve, and how a node leaves its area and takes half of another's.

Sorted by where they begin, nodes own the points up to the next one's first, and the last one those before the first.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

# A square space with subscriptions (boxes) and events (points), read along the Z-order curve (Ogawa's experiment).
#
# The subscriptions to a point are a bit each, so the subscriptions to a stretch of the curve are one `or` over it.


Numbers = NDArray[np.int64]
Masks = NDArray[np.uint64]  # [..., word]: a bit for each subscription
WORD = 64


class EventsAt(StrEnum):
    """Where a sensor's events lie."""

    ANYWHERE = "anywhere"  # each drawn for itself: the values that a sensor measures differ
    SENSOR = "sensor"  # all at the sensor's own point


@dataclass(frozen=True, slots=True)
class Workload:
    """What the experiment draws. The text gives the counts; scale, side and the events of a sensor are ours.

    Scale and side are shares of the space's side.
    """

    bits: int = 10
    subscriptions: int = 100
    sensors: int = 100
    events_per_sensor: int = 40
    scale: float = 0.2  # mean distance from the centre in each dimension
    side: float = 0.2  # mean side of a subscription's box
    events_at: str = EventsAt.ANYWHERE


@dataclass(frozen=True, slots=True)
class Space:
    """Subscriptions and events, by number on the curve."""

    points: int
    wanted: Masks  # [number, word]
    events: Numbers  # sorted

    def events_between(self, firsts: Numbers, behinds: Numbers) -> Numbers:
        """How many events lie in each stretch, its end excluded."""
        return np.searchsorted(self.events, behinds) - np.searchsorted(self.events, firsts)

    def wanted_between(self, first: int, behind: int) -> Masks:
        """Which subscriptions meet the stretch, its end excluded."""
        masks: Masks = np.bitwise_or.reduce(self.wanted[first:behind], axis=0)
        return masks


def draw(workload: Workload, random: np.random.Generator) -> Space:
    """Boxes and events around the centre: in each dimension, the distance from it is exponentially distributed."""
    side = 2**workload.bits
    middles = _around(workload.subscriptions, workload, random)
    reach = random.exponential(workload.side * side / 2, middles.shape)
    low = np.clip(middles - reach, 0, side - 1).astype(np.int64)
    high = np.clip(middles + reach, 0, side - 1).astype(np.int64)
    if EventsAt(workload.events_at) is EventsAt.SENSOR:
        sensors = _around(workload.sensors, workload, random)
        events = np.repeat(sensors, workload.events_per_sensor, axis=0)
    else:
        events = _around(workload.sensors * workload.events_per_sensor, workload, random)
    return space(workload.bits, low, high, events.astype(np.int64))


def space(bits: int, low: Numbers, high: Numbers, events: Numbers) -> Space:
    """Of boxes with these corners (inclusive), and points: rows of x and y."""
    side = 2**bits
    words = -(-max(1, len(low)) // WORD)
    grid = np.zeros((side, side, words), dtype=np.uint64)
    for box, ((left, bottom), (right, top)) in enumerate(zip(low, high, strict=True)):
        bit = np.uint64(1 << box % WORD)
        grid[left : right + 1, bottom : top + 1, box // WORD] |= bit
    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    wanted = np.empty((side * side, words), dtype=np.uint64)
    wanted[interleaved(x.ravel(), y.ravel(), bits)] = grid.reshape(-1, words)
    return Space(side * side, wanted, np.sort(interleaved(events[:, 0], events[:, 1], bits)))


def interleaved(x: Numbers, y: Numbers, bits: int) -> Numbers:
    """The numbers of points on the curve: x1 y1 x2 y2 ..., the most significant bits first."""
    numbers = np.zeros_like(x)
    for bit in range(bits):
        numbers |= (x >> bit & 1) << 2 * bit + 1 | (y >> bit & 1) << 2 * bit
    return numbers


def _around(count: int, workload: Workload, random: np.random.Generator) -> NDArray[np.float64]:
    """Points around the centre; what falls outside is drawn again."""
    side = 2**workload.bits
    found = np.empty((0, 2))
    while len(found) < count:
        drawn = random.laplace(side / 2, workload.scale * side, (2 * count, 2))
        found = np.concatenate([found, drawn[((drawn >= 0) & (drawn < side)).all(axis=1)]])
    return found[:count]


class Give(StrEnum):
    """The node that gets the area of a node that leaves."""

    BOTH = "both"  # half to each of its two neighbours, as the text has it
    LEFT = "left"  # all to the one before it: no other node's first point changes


@dataclass(slots=True)
class Areas:
    """Nodes in the order of their areas. Index i is a place in that order, `names` has the node there."""

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
        """How many points its area has; a single node has all."""
        return (
            self._behind(place) - int(self.starts[place])
        ) % self.space.points or self.space.points

    def place_of(self, name: int) -> int:
        """The place of a node now."""
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
