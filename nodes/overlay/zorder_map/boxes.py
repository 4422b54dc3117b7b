"""Boxes of a space, and where on the Z-order curve one lies: as stretches of it, or as cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from math import prod
from operator import le

from nodes.overlay.zorder_map.curve import Point
from nodes.overlay.zorder_map.parts import Cell, Part

Interval = tuple[int, int]  # the first and the last number


@dataclass(frozen=True, slots=True)
class Box:
    """All points between two corners, the corners included."""

    low: Point
    high: Point

    def __post_init__(self) -> None:
        if not self.low or len(self.low) != len(self.high):
            raise ValueError(f"{self.low} and {self.high} are no corners of one box")
        for low, high in zip(self.low, self.high, strict=True):
            if low > high:
                raise ValueError(f"a box from {self.low} to {self.high} holds no point")

    def contains(self, point: Point) -> bool:
        """Whether a point of the same space lies in it."""
        return all(map(le, self.low, point)) and all(map(le, point, self.high))

    @property
    def size(self) -> int:
        """How many points it holds."""
        return prod(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    def meets(self, other: "Box") -> bool:
        """Whether some point lies in both."""
        return all(map(le, self.low, other.high)) and all(map(le, other.low, self.high))


def intervals(box: Box, bits: int, most: int | None = None) -> list[Interval]:
    """The stretches of the curve on which the box lies: sorted, none touching the next.

    With `most`, those with the smallest gaps between them are joined until no more are left: they hold the box, and
    some that is not in it. What that costs depends on `most`, hardly on the box.
    """
    _at_least_one(most)
    whole = Part.of(box.low, box.high, bits)
    cuts = sorted(islice(_gaps_largest_first(whole), None if most is None else most - 1))
    firsts = [whole.first, *(end + 1 for _, end in cuts)]
    lasts = [*(begin - 1 for begin, _ in cuts), whole.last]
    return list(zip(firsts, lasts, strict=True))


def cells(box: Box, bits: int, most: int | None = None, spare: int = 0) -> list[Cell]:
    """Cells that hold the box, each point of it once, in no order; exactly the box, or a little more.

    The cell that holds most of what is foreign is cut first, until there are `most` or none holds more than `spare`.
    """
    _at_least_one(most)
    whole = Part.of(box.low, box.high, bits)
    cut = [(-whole.foreign, whole.first, whole)]
    while -cut[0][0] > spare and (most is None or len(cut) < most):
        _, _, part = heappop(cut)
        for half in part.halves():
            heappush(cut, (-half.foreign, half.first, half))
    return [part.cell for _, _, part in cut]


def next_within(box: Box, z: int, bits: int) -> int | None:
    """The first number from `z` on that lies in the box, if there is one: a stretch of the curve meets a box if the
    next number from its first on is not behind its last.
    """
    part = Part.of(box.low, box.high, bits)
    while part.first < z <= part.last:
        lower, upper = part.halves()
        part = lower if z <= lower.last else upper
    return part.first if z <= part.first else None


def _gaps_largest_first(whole: Part) -> Iterator[Interval]:
    """What the curve leaves out, the largest first; a part is cut only when one of its gaps may be the next."""
    parts: list[tuple[int, int, Part]] = []  # at most how large a gap, where, in which part
    gaps: list[tuple[int, int, int]] = []  # minus its size, first, last

    def look_into(part: Part) -> None:
        if largest := part.largest_gap:
            heappush(parts, (-largest, part.first, part))

    look_into(whole)
    while parts or gaps:
        if gaps and (not parts or gaps[0][0] <= parts[0][0]):
            _, begin, end = heappop(gaps)
            yield begin, end
            continue
        _, _, part = heappop(parts)
        lower, upper = part.halves()
        if size := upper.first - lower.last - 1:
            heappush(gaps, (-size, lower.last + 1, upper.first - 1))
        look_into(lower)
        look_into(upper)


def _at_least_one(most: int | None) -> None:
    if most is not None and most < 1:
        raise ValueError(f"a box lies in at least one piece of the curve, not in {most}")
