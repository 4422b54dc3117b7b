"""A part of a box, and how the Z-order curve passes through it.

The curve leaves a box and comes back. Cut the box at the highest bit in which the numbers of its corners differ: the
curve passes through the lower half first, from its low corner to its high corner, then through the upper half. So what
lies between the lower half's last number and the upper half's first is a gap; all others lie within a half.
"""

from functools import cache
from typing import NamedTuple

from nodes.overlay.zorder_map.curve import Point, interleave


class Cell(NamedTuple):
    """All numbers with the same leading bits: those that are `prefix` without their last `shift` bits."""

    shift: int
    prefix: int
    inside: bool  # whether all of it lies in the box that it was made for


class Part(NamedTuple):
    """A part of a box: its corners, and their numbers on the curve."""

    low: Point
    high: Point
    first: int
    last: int

    @classmethod
    def of(cls, low: Point, high: Point, bits: int) -> "Part":
        """The whole between two corners."""
        return cls(low, high, interleave(low, bits), interleave(high, bits))

    def halves(self) -> "tuple[Part, Part]":
        """The lower and the upper half, cut at the highest bit that changes; only of a part of several points."""
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
        """How many points it has."""
        points = 1
        for low, high in zip(self.low, self.high, strict=True):
            points *= high - low + 1
        return points

    @property
    def foreign(self) -> int:
        """How many points of the smallest cell around it are not its own."""
        return (1 << (self.first ^ self.last).bit_length()) - self.size

    @property
    def largest_gap(self) -> int:
        """No gap within it is larger: it would have to be made of numbers that are not of this part, and, as parts
        only get closer to the ends of their cells, of no more than are left before and behind it in its own cell.
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
