"""The Z-order curve: the bits of a point's coordinates interleaved, so that many dimensions become one number.

With two dimensions x and y the number is x1 y1 x2 y2 ... with the most significant bits in front. Points that are close
together mostly stay close. The number never falls when a coordinate grows: of a box, the low corner comes first on the
curve and the high corner last.
"""

from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush
from itertools import islice
from typing import NamedTuple

from nodes.protocol.regions import Box, Interval, Point


def interleave(point: Point, bits: int) -> int:
    """The number of a point on the curve; each of its coordinates has `bits` bits."""
    dimensions = len(point)
    spread = _spread_bytes(dimensions)
    a_byte = 8 * dimensions
    z = 0
    for coordinate in point:
        if coordinate >> bits:
            raise ValueError(f"{point} has a coordinate that does not fit into {bits} bits")
        spread_out = spread[coordinate & 0xFF]
        rest, at = coordinate >> 8, a_byte
        while rest:
            spread_out |= spread[rest & 0xFF] << at
            rest >>= 8
            at += a_byte
        z = z << 1 | spread_out
    return z


def deinterleave(z: int, dimensions: int, bits: int) -> Point:
    """The point with this number on the curve."""
    if dimensions < 1:
        raise ValueError("a point has at least one dimension")
    if z >> dimensions * bits:
        raise ValueError(f"{z} is not on the curve of {dimensions} dimensions of {bits} bits")
    digits = f"{z:0{dimensions * bits}b}"
    return tuple([int(digits[each::dimensions], 2) for each in range(dimensions)])


@cache
def _spread_bytes(dimensions: int) -> tuple[int, ...]:
    """Each byte with its bits `dimensions` apart."""
    if dimensions < 1:
        raise ValueError("a point has at least one dimension")
    return tuple(
        sum((byte >> bit & 1) << bit * dimensions for bit in range(8)) for byte in range(256)
    )


# A part of a box, and how the Z-order curve passes through it.
#
# The curve leaves a box and comes back. Cut the box at the highest bit in which the numbers of its corners differ. The
# curve passes through the lower half first, from its low corner to its high corner, then through the upper half. So the
# numbers between the lower half's last number and the upper half's first are a gap; all other gaps lie within a half.


class Cell(NamedTuple):
    """All numbers with the same leading bits: those that are `prefix` without their last `shift` bits."""

    shift: int
    prefix: int
    inside: bool  # whether the whole cell lies in the box that it was made for


class Part(NamedTuple):
    """A part of a box: its corners, and their numbers on the curve."""

    low: Point
    high: Point
    first: int
    last: int

    @classmethod
    def of(cls, low: Point, high: Point, bits: int) -> "Part":
        """The part between two corners."""
        return cls(low, high, interleave(low, bits), interleave(high, bits))

    def halves(self) -> "tuple[Part, Part]":
        """The lower and the upper half, cut at the highest bit that changes; only for a part of several points."""
        low, high, first, last = self
        place = (first ^ last).bit_length() - 1
        depth, turn = divmod(place, len(low))
        across = len(low) - 1 - turn
        middle = high[across] >> depth << depth
        here, below = 1 << place, _below(place, len(low))
        lower_high = (*high[:across], middle - 1, *high[across + 1 :])
        upper_low = (*low[:across], middle, *low[across + 1 :])
        return (
            Part(low, lower_high, first, (last ^ here) | below),
            Part(upper_low, high, (first | here) & ~below, last),
        )

    @property
    def size(self) -> int:
        """The number of its points."""
        points = 1
        for low, high in zip(self.low, self.high, strict=True):
            points *= high - low + 1
        return points

    @property
    def foreign(self) -> int:
        """The number of points of the smallest cell around it that are not its own."""
        return (1 << (self.first ^ self.last).bit_length()) - self.size

    @property
    def largest_gap(self) -> int:
        """An upper bound for the size of any gap within the part.

        A gap consists of numbers outside this part. As parts only get closer to the ends of their cells, a gap has at
        most as many numbers as are left before and behind the part in its own cell.
        """
        length = self.last - self.first + 1
        cell = 1 << (self.first ^ self.last).bit_length()
        return min(length - self.size, cell - length)

    @property
    def cell(self) -> Cell:
        """The smallest cell around it."""
        shift = (self.first ^ self.last).bit_length()
        return Cell(shift, self.first >> shift, self.foreign == 0)


@cache
def _below(place: int, dimensions: int) -> int:
    """The less significant bits of the dimension to which the bit at this place belongs."""
    return sum(1 << bit for bit in range(place - dimensions, -1, -dimensions))


# Boxes on the Z-order curve, as intervals or as cells.


def intervals(box: Box, bits: int, most: int | None = None) -> list[Interval]:
    """The intervals of the curve that cover the box: sorted, none touching the next.

    With `most`, join intervals with the smallest gaps between them until at most so many are left: together they
    contain the box and some other points. The cost depends on `most`, hardly on the box.
    """
    _at_least_one(most)
    whole = Part.of(box.low, box.high, bits)
    cuts = sorted(islice(_gaps_largest_first(whole), None if most is None else most - 1))
    firsts = [whole.first, *(end + 1 for _, end in cuts)]
    lasts = [*(begin - 1 for begin, _ in cuts), whole.last]
    return list(zip(firsts, lasts, strict=True))


def cells(box: Box, bits: int, most: int | None = None, spare: int = 0) -> list[Cell]:
    """Cells that contain the box, each point of it once, in no order; exactly the box, or a little more.

    Cut the cell with the most foreign points first, until there are `most` cells or none has more than `spare`.
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
    """The first number from `z` on that lies in the box, if there is one.

    An interval of the curve meets a box if the next number from its first on is not behind its last.
    """
    part = Part.of(box.low, box.high, bits)
    while part.first < z <= part.last:
        lower, upper = part.halves()
        part = lower if z <= lower.last else upper
    return part.first if z <= part.first else None


def _gaps_largest_first(whole: Part) -> Iterator[Interval]:
    """The gaps of the curve, the largest first; a part is cut only when one of its gaps may be the next."""
    parts: list[tuple[int, int, Part]] = []  # upper bound for a gap, place, part
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
