"""Where the records of a capture begin: each leads to the next, and behind garbage the next one has to be found.

A record is followed on trust: its length fits. One that is looked for has to look like a record in every respect, and
so have those it leads to. What lies inside packets may look so, too (somebody downloads a capture): the one that leads
furthest is taken, for records inside a packet do not go on beyond it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Data = bytes | bytearray
MAX_CAPTURED = 262_144  # libpcap's own limit; a record that claims more is not a record
SPAN = 1 << 16  # records that begin within so many bytes are weighed against each other
REACH = 1 << 17  # what leads so far needs no comparison: no packet is that long
LEAST_CHAIN = 2  # records in a row, unless one leads exactly to the end
CUT_OFF = "cut off by the end of the file"


class Problem(NamedTuple):
    """A part of a file that could not be read."""

    offset: int
    size: int
    reason: str


class RecordRun(NamedTuple):
    """The packets up to `at`; `reason` says why what is there is no record, None if it only may need more bytes."""

    starts: list[int]
    at: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Records:
    """The packets of a window, as their records tell of them. Positions are in the window."""

    record_at: Array
    record_bytes: Array
    packet_at: Array
    caplen: Array
    wirelen: Array
    ts_ns: Array
    timed: Array  # whether there is a time
    interface: Array
    link_type: Array
    order: str = "<"
    names: tuple[str | None, ...] = (None,)  # of the interfaces
    optional: bool = False  # there may be options behind packets

    def chosen(self, which: Array) -> "Records":
        """Some of them."""
        columns: dict[str, Any] = {
            column.name: value[which]
            for column in fields(self)
            if isinstance(value := getattr(self, column.name), np.ndarray)
        }
        return replace(self, **columns)


class Layout(Protocol):
    """A format: how its records are followed, looked for and read. It may remember what it has passed."""

    structure: int  # bytes of what it has followed that are no packets: headers, descriptions

    def move(self, base: int) -> None:
        """What it is given next begins at this place of the file."""
        ...

    def follow(self, data: Data, at: int, size: int, final: bool) -> RecordRun:
        """The packets from here on."""
        ...

    def likely(self, data: Data, begin: int, end: int) -> Iterable[int]:
        """Where between these two a record might begin, in order."""
        ...

    def read(self, raw: Array, starts: Array) -> tuple[list[Records], list[Problem]]:
        """What the records say that begin at these places; in their order, and those that contradict themselves."""
        ...

    def claim(self, data: Data, at: int, size: int) -> int:
        """How long the record is that begins here; 0 if it does not look like one. It may go on beyond `size`."""
        ...


class _NeedMore(Exception):
    """It depends on bytes that are not there yet."""


class _Chain(NamedTuple):
    """Where records lead, and whether exactly to the end of the file."""

    end: int
    records: int
    exact: bool


class Walk:
    """One way through a file, window by window. `at` is where it stands; all before it is dealt with."""

    def __init__(self, layout: Layout, at: int, *, lost: bool = False) -> None:
        self.layout = layout
        self.at = at
        self._lost: tuple[int, str] | None = (at, "") if lost else None

    @property
    def is_lost(self) -> bool:
        """Whether it is looking for the next record."""
        return self._lost is not None

    @property
    def whole(self) -> int:
        """Behind the last whole record: what is there is garbage, or a record whose end is not there yet."""
        return self.at if self._lost is None else self._lost[0]

    def advance(
        self, data: Data, base: int, size: int, final: bool
    ) -> tuple[list[int], list[Problem]]:
        """Go on in the `size` bytes that begin at `base` of the file; where among them packets begin, and problems."""
        starts: list[int] = []
        problems: list[Problem] = []
        self.layout.move(base)
        at = self.at - base
        while True:
            if self._lost is None:
                found, at, reason = self.layout.follow(data, at, size, final)
                starts += found
                if reason is None:
                    break
                self._lost = (base + at, reason)
                at += 1
            lost_at, reason = self._lost
            try:
                at = next_record(self.layout, data, at, size, final, reason == CUT_OFF)
            except _NeedMore as searched:
                at = searched.args[0]
                break
            problems.append(Problem(lost_at, base + at - lost_at, reason))
            self._lost = None
        self.at = base + at
        return starts, problems


def next_record(
    layout: Layout, data: Data, at: int, size: int, final: bool, exact: bool = False
) -> int:
    """Where the next record begins, or `size`; `exact`: only if it leads exactly to the end."""
    while at < size:
        end = min(at + SPAN, size)
        if not final and end + REACH + 2 * MAX_CAPTURED > size:
            raise _NeedMore(at)
        best, furthest = None, 0
        known: dict[int, _Chain] = {}
        for candidate in layout.likely(data, at, end):
            chain = known.get(candidate) or _chain(layout, data, candidate, size, final, known)
            if not (chain.exact or (chain.records >= LEAST_CHAIN and not exact)):
                continue
            if chain.end - candidate > furthest:
                best, furthest = candidate, chain.end - candidate
            if furthest >= REACH:
                break
        if best is not None:
            return best
        at = end
    return size


def _chain(
    layout: Layout, data: Data, at: int, size: int, final: bool, known: dict[int, _Chain]
) -> _Chain:
    """Follow what looks like records as far as it matters; each place is passed once."""
    passed: list[int] = []
    begin = at
    while at not in known and at - begin < REACH:
        length = layout.claim(data, at, size) if at < size else 0
        if not length or at + length > size:
            break
        passed.append(at)
        at += length
    rest = known.get(at, _Chain(at, 0, final and at == size))
    for number, place in enumerate(passed):
        known[place] = _Chain(rest.end, rest.records + len(passed) - number, rest.exact)
    return known.get(begin, rest)


def rows(raw: Array, starts: Array, layout: np.dtype[Any]) -> Array:
    """The bytes at each start, read as one structure each. Rows that reach beyond the data are zero there."""
    width = layout.itemsize
    inside = starts + width <= len(raw)
    if len(raw) >= width and inside.all():
        taken = np.lib.stride_tricks.sliding_window_view(raw, width)[starts]
    else:
        taken = np.zeros((len(starts), width), np.uint8)
        if inside.any():
            taken[inside] = np.lib.stride_tricks.sliding_window_view(raw, width)[starts[inside]]
        for row in np.flatnonzero(~inside):  # few: what is in the last bytes
            rest = raw[starts[row] :]
            taken[row, : len(rest)] = rest
    return np.ascontiguousarray(taken).view(layout)[:, 0]
