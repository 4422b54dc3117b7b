"""A square space with subscriptions (boxes) and events (points), read along the Z-order curve (Ogawa's experiment).

Who wants a point is a bit for each subscription, so whom a stretch of the curve concerns is one `or` over it.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

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
