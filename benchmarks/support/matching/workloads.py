"""Boxes and points to be matched, drawn in several ways; everything follows from the seed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodes.overlay.zorder_map.boxes import Box
from nodes.overlay.zorder_map.curve import Point

BITS = 16  # of a coordinate
SIDE = 2**BITS
Corners = NDArray[np.int64]  # [box, dimension]


@dataclass(frozen=True, slots=True)
class Distribution:
    """How boxes and points lie. Lengths are shares of the space's side."""

    dimensions: int
    reach: float  # from a box's middle to its sides, in the mean; exponentially distributed
    around: (
        float | None
    )  # mean distance from the space's centre in a dimension, exponentially; None: anywhere


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "exponential": Distribution(2, 1 / 100, 1 / 8),
    "uniform": Distribution(2, 1 / 100, None),
    "large": Distribution(2, 1 / 8, None),
    "four dimensions": Distribution(4, 1 / 10, None),
}


@dataclass(frozen=True, slots=True)
class Workload:
    """Subscriptions, numbered, and events."""

    low: Corners
    high: Corners
    points: list[Point]

    def boxes(self) -> list[Box]:
        """The subscriptions as the index takes them."""
        corners = zip(self.low.tolist(), self.high.tolist(), strict=True)
        return [Box(tuple(low), tuple(high)) for low, high in corners]


def draw(name: str, subscriptions: int, events: int, seed: int) -> Workload:
    """Boxes that reach over the edge of the space end there."""
    how = DISTRIBUTIONS[name]
    random = np.random.default_rng([seed, *name.encode()])

    def places(count: int) -> NDArray[np.float64]:
        if how.around is None:
            return random.uniform(0, SIDE, (count, how.dimensions))
        return random.laplace(SIDE / 2, how.around * SIDE, (count, how.dimensions))

    middles = _within(places(subscriptions))
    reach = random.exponential(how.reach * SIDE, middles.shape)
    points = _within(places(events)).astype(np.int64)
    return Workload(
        _within(middles - reach).astype(np.int64),
        _within(middles + reach).astype(np.int64),
        [tuple(point) for point in points.tolist()],
    )


def _within(places: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(places, 0, SIDE - 1)
