"""Boxes of a space, and the stretches of the Z-order curve on which one lies.

The curve leaves a box and comes back. Cut the box where the highest bit differs in which its corners' numbers differ:
the curve passes through the lower half first, from its low corner to its high corner, then through the upper half. So
what lies between the lower half's last number and the upper half's first is a gap; all others lie within a half.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod
from operator import le

from nodes.overlay.zorder_map.curve import interleave

Point = tuple[int, ...]
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

    def meets(self, other: "Box") -> bool:
        """Whether some point lies in both."""
        return all(map(le, self.low, other.high)) and all(map(le, other.low, self.high))


def intervals(box: Box, bits: int, most: int | None = None) -> list[Interval]:
    """The stretches of the curve on which the box lies: sorted, none touching the next.

    With `most`, those with the smallest gaps between them are joined until no more are left: they hold the box, and
    some that is not in it. What that costs depends on `most`, hardly on the box.
    """
    if most is not None and most < 1:
        raise ValueError("a box lies on at least one stretch of the curve")
    whole = _Part.of(box.low, box.high, bits)
    cuts: list[Interval] = []
    for gap in _gaps_largest_first(whole, bits):
        if most is not None and len(cuts) == most - 1:
            break
        cuts.append(gap)
    cuts.sort()
    firsts = [whole.first, *(end + 1 for _, end in cuts)]
    lasts = [*(begin - 1 for begin, _ in cuts), whole.last]
    return list(zip(firsts, lasts, strict=True))


def next_within(box: Box, z: int, bits: int) -> int | None:
    """The first number from `z` on that lies in the box, if there is one: a stretch of the curve meets a box if the
    next number from its first on is not behind its last.
    """
    part = _Part.of(box.low, box.high, bits)
    while part.first < z <= part.last:
        lower, upper = part.halves(bits)
        part = lower if z <= lower.last else upper
    return part.first if z <= part.first else None


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a box, from its first to its last number on the curve."""

    low: Point
    high: Point
    first: int
    last: int

    @classmethod
    def of(cls, low: Point, high: Point, bits: int) -> "_Part":
        return cls(low, high, interleave(low, bits), interleave(high, bits))

    @property
    def largest_gap(self) -> int:
        """No gap within it is larger: it would have to be made of numbers that are not of this part, and, as parts
        only get closer to the ends of their cells, of no more than are left before and behind it in its own cell.
        """
        length = self.last - self.first + 1
        cell = 1 << (self.first ^ self.last).bit_length()
        sides = (high - low + 1 for low, high in zip(self.low, self.high, strict=True))
        return min(length - prod(sides), cell - length)

    def halves(self, bits: int) -> tuple["_Part", "_Part"]:
        """The lower and the upper half, cut where the highest bit changes."""
        place = (self.first ^ self.last).bit_length() - 1
        dimensions = len(self.low)
        across = dimensions - 1 - place % dimensions
        middle = self.high[across] >> place // dimensions << place // dimensions
        return (
            _Part.of(self.low, _with(self.high, across, middle - 1), bits),
            _Part.of(_with(self.low, across, middle), self.high, bits),
        )


def _gaps_largest_first(whole: _Part, bits: int) -> Iterator[Interval]:
    """What the curve leaves out, the largest first; a part is cut only when one of its gaps may be the next."""
    parts: list[tuple[int, int, _Part]] = []  # at most how large a gap, where, in which part
    gaps: list[tuple[int, int, int]] = []  # minus its size, first, last

    def look_into(part: _Part) -> None:
        if largest := part.largest_gap:
            heappush(parts, (-largest, part.first, part))

    look_into(whole)
    while parts or gaps:
        if gaps and (not parts or gaps[0][0] <= parts[0][0]):
            _, begin, end = heappop(gaps)
            yield begin, end
            continue
        _, _, part = heappop(parts)
        lower, upper = part.halves(bits)
        if size := upper.first - lower.last - 1:
            heappush(gaps, (-size, lower.last + 1, upper.first - 1))
        look_into(lower)
        look_into(upper)


def _with(point: Point, dimension: int, coordinate: int) -> Point:
    return (*point[:dimension], coordinate, *point[dimension + 1 :])
