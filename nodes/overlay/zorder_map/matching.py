"""Whose boxes hold a point: subscriptions kept by the Z-order cells that they cover.

A box is held by a few cells, none overlapping another. A point lies in one cell of each size; so it takes one look into
a table for each size, and no box is found twice. Boxes that fill such a cell hold the point. Those that only reach into
it are looked at one by one, in all dimensions with one addition: it subtracts the low corner from the point and the
point from the high corner, where each coordinate has a bit to spare, which stays set if nothing had to borrow it.
"""

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from nodes.overlay.zorder_map.boxes import Box, cells
from nodes.overlay.zorder_map.curve import Point, interleave
from nodes.overlay.zorder_map.parts import Cell

# More cells of a box take memory, fewer let it be looked at in vain. It is cut into at most so many,
MOST_CELLS = 32
# and only as long as a cell holds more that is foreign than the box has points, or than this share of the space.
FOREIGN_SHARE = 2**-11

Who = TypeVar("Who", bound=Hashable)


class _Table(NamedTuple, Generic[Who]):
    """The cells of one size, by prefix: who fills one, and who only reaches into it, with the corners of its box."""

    filling: dict[int, dict[Who, None]]
    reaching: dict[int, dict[Who, int]]


class Matching(Generic[Who]):
    """Who has subscribed to which box of a space; each has one."""

    def __init__(self, dimensions: int, bits: int, most_cells: int = MOST_CELLS) -> None:
        self._dimensions = dimensions
        self._bits = bits
        self._most_cells = most_cells
        self._spare = int(FOREIGN_SHARE * 2 ** (dimensions * bits))
        self._width = (bits + 1) * dimensions
        self._spares = sum(1 << (bits + 1) * each + bits for each in range(dimensions))
        self._boxes: dict[Who, Box] = {}
        self._tables: dict[int, _Table[Who]] = {}  # shift ->

    @property
    def boxes(self) -> Mapping[Who, Box]:
        """All subscriptions."""
        return MappingProxyType(self._boxes)

    @property
    def cells(self) -> int:
        """How many cells somebody has: what the index takes of memory goes with them."""
        return sum(len(table) for tables in self._tables.values() for table in tables)

    def add(self, who: Who, box: Box) -> None:
        """Subscribe to a box, instead of the one subscribed to before."""
        corners = (self._packed(box.high) | self._spares) - (self._packed(box.low) << self._width)
        covered = self._covered(box)
        if who in self._boxes:
            self.remove(who)
        self._boxes[who] = box
        for shift, prefix, inside in covered:
            table = self._tables.get(shift) or self._tables.setdefault(shift, _Table({}, {}))
            if inside:
                table.filling.setdefault(prefix, {})[who] = None
            else:
                table.reaching.setdefault(prefix, {})[who] = corners

    def remove(self, who: Who) -> None:
        """Subscribe no longer; KeyError if there is no subscription."""
        for shift, prefix, inside in self._covered(self._boxes.pop(who)):
            table = self._tables[shift]
            by_prefix = table.filling if inside else table.reaching
            del by_prefix[prefix][who]
            if not by_prefix[prefix]:
                del by_prefix[prefix]
            if not (table.filling or table.reaching):
                del self._tables[shift]

    def match(self, point: Point) -> list[Who]:
        """Whose boxes hold the point: each once, in no order."""
        z = interleave(point, self._bits)
        here = self._packed(point)
        around = ((here | self._spares) << self._width) - here
        spares = self._spares << self._width | self._spares
        found: list[Who] = []
        for shift, (filling, reaching) in self._tables.items():
            prefix = z >> shift
            if prefix in filling:
                found += filling[prefix]
            if prefix in reaching:
                near = reaching[prefix].items()
                found += [who for who, corners in near if (around + corners) & spares == spares]
        return found

    def _covered(self, box: Box) -> list[Cell]:
        return cells(box, self._bits, self._most_cells, min(self._spare, box.size))

    def _packed(self, point: Point) -> int:
        """The coordinates side by side, a bit to spare in front of each."""
        if len(point) != self._dimensions:
            raise ValueError(
                f"{point} is of another space: this one has {self._dimensions} dimensions"
            )
        packed = 0
        for coordinate in point:
            packed = packed << self._bits + 1 | coordinate
        return packed
