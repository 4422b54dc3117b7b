"""Finds where the records of a capture begin: each leads to the next; after damaged bytes the next one is searched.

A record is accepted if its length fits. A record that was searched must be plausible in every field, and so must the
records it leads to. Packets may contain a capture, too (a download of one): the search takes the candidate that
leads furthest, because records inside a packet end with it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Data = bytes | bytearray
MAX_CAPTURED = 262_144  # libpcap's own limit; a record that claims more is not a record
SPAN = 1 << 16  # candidates within so many bytes are compared
REACH = 1 << 17  # a chain of this length needs no comparison: no packet is that long
LEAST_CHAIN = 2  # records in a row, unless one leads exactly to the end
CUT_OFF = "cut off by the end of the file"


class Problem(NamedTuple):
    """A part of a file that could not be read."""

    offset: int
    size: int
    reason: str


class RecordRun(NamedTuple):
    """The records up to `at`; `reason`: why no record begins there, or None if more bytes may be needed."""

    starts: list[int]
    at: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Records:
    """The record headers of a window's packets. Positions are in the window."""

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
    optional: bool = False  # options may follow packets

    def chosen(self, which: Array) -> "Records":
        """Some of them."""
        columns: dict[str, Any] = {
            column.name: value[which]
            for column in fields(self)
            if isinstance(value := getattr(self, column.name), np.ndarray)
        }
        return replace(self, **columns)


class Layout(Protocol):
    """A capture format: follows, searches and reads records. It may keep state of what it has read."""

    structure: int  # bytes of headers and descriptions, which are no packets

    def move(self, base: int) -> None:
        """The next data begins at this offset of the file."""
        ...

    def follow(self, data: Data, at: int, size: int, final: bool) -> RecordRun:
        """The records from this offset on."""
        ...

    def likely(self, data: Data, begin: int, end: int) -> Iterable[int]:
        """Offsets between these two at which a record might begin, in order."""
        ...

    def read(self, raw: Array, starts: Array) -> tuple[list[Records], list[Problem]]:
        """The fields of the records at these offsets, in order, and those that contradict themselves."""
        ...

    def claim(self, data: Data, at: int, size: int) -> int:
        """The length of the record at this offset; 0 if it is implausible. The record may end beyond `size`."""
        ...


class _NeedMore(Exception):
    """The result depends on bytes that are not there yet."""


class _Chain(NamedTuple):
    """Where a chain of records ends, and whether that is exactly the end of the file."""

    end: int
    records: int
    exact: bool


class RecordScanner:
    """A pass over a file, window by window. `at` is the current offset; everything before it is processed."""

    def __init__(self, layout: Layout, at: int, *, lost: bool = False) -> None:
        self.layout = layout
        self.at = at
        self._lost: tuple[int, str] | None = (at, "") if lost else None

    @property
    def is_searching(self) -> bool:
        """Whether the next record is being searched."""
        return self._lost is not None

    @property
    def whole(self) -> int:
        """The offset after the last complete record; damaged bytes or an incomplete record may follow."""
        return self.at if self._lost is None else self._lost[0]

    def advance(
        self, data: Data, base: int, size: int, final: bool
    ) -> tuple[list[int], list[Problem]]:
        """Process the `size` bytes at `base` of the file; returns the offsets of packets in them, and problems."""
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
    """The offset of the next record, or `size`; `exact`: only a chain that leads exactly to the end counts."""
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
    """Follow plausible records as far as it matters; each offset is visited once."""
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
    """The bytes at each start, read as one structure each. Bytes beyond the data read as zero."""
    width = layout.itemsize
    inside = starts + width <= len(raw)
    if len(raw) >= width and inside.all():
        taken = np.lib.stride_tricks.sliding_window_view(raw, width)[starts]
    else:
        taken = np.zeros((len(starts), width), np.uint8)
        if inside.any():
            taken[inside] = np.lib.stride_tricks.sliding_window_view(raw, width)[starts[inside]]
        for row in np.flatnonzero(~inside):  # few: those in the last bytes
            rest = raw[starts[row] :]
            taken[row, : len(rest)] = rest
    return np.ascontiguousarray(taken).view(layout)[:, 0]
