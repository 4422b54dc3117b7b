"""TCP reassembly: the segments of one direction of one connection, in capture order, to the stream's bytes.

A byte counts as seen when a segment with it first passed the capture point. Retransmissions, overlaps and reordering
change when a byte was seen, never what it is. Bytes that no segment brought are holes: they read as zero and are not
covered.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FARTHEST_JUMP = 1 << 26  # a segment further ahead than any window allows belongs to something else
REORDERED_WITHIN_NS = (
    3_000_000  # a late segment within this time was overtaken; later, it was sent again
)


@dataclass(frozen=True)
class Stream:
    """The bytes of one direction, and for each piece of it when it was seen."""

    data: bytes
    starts: Array  # where each piece begins; pieces do not overlap and are in order
    lengths: Array
    seen_ns: Array  # when each piece was first seen
    unknown: tuple[
        tuple[int, int], ...
    ]  # ranges whose content is not known: holes, and bytes the capture cut
    from_start: bool  # the connection's opening was captured
    retransmitted: int  # packets that brought bytes again, or late
    retransmitted_payload: int  # all payload bytes of those packets
    reordered: int
    stray: int  # payload bytes of segments that cannot belong to this stream
    repeated_ns: Array  # how long after each piece the last repetition of it was seen; 0: never

    @property
    def covered_bytes(self) -> int:
        """How many bytes were seen, each counted once."""
        return int(self.lengths.sum())

    @cached_property
    def _covered_before(self) -> Array:
        return np.concatenate(([0], np.cumsum(self.lengths)))

    @cached_property
    def complete_ns(self) -> Array:
        """When each piece and all before it had been seen: then the receiver's TCP could hand them over."""
        return np.maximum.accumulate(self.seen_ns)

    @cached_property
    def stalled_ns(self) -> Array:
        """How long each piece and all before it would have been complete before, had none come late by a repetition.

        Bytes leave in their order, so each should have been seen when the first byte beyond it was. What was only
        overtaken did not stall.
        """
        prompt = np.minimum.accumulate(self.seen_ns[::-1])[::-1]
        stalled = self.complete_ns - prompt
        return np.where(stalled > REORDERED_WITHIN_NS, stalled, 0)

    def covered(self, begin: Array, end: Array) -> Array:
        """How many bytes of each range [begin, end) were seen."""
        return self._covered_up_to(end) - self._covered_up_to(begin)

    def _covered_up_to(self, at: Array) -> Array:
        piece = np.searchsorted(self.starts, at, "right") - 1
        inside = np.clip(at - self.starts[piece], 0, self.lengths[piece])
        return np.where(piece < 0, 0, self._covered_before[piece] + inside)

    def segment(self, at: Array) -> Array:
        """Which piece brought the byte at each position (in a hole: the piece before it)."""
        return np.searchsorted(self.starts, at, "right") - 1


NOTHING = np.zeros(0, np.int64)
EMPTY = Stream(b"", NOTHING, NOTHING, NOTHING, (), False, 0, 0, 0, 0, NOTHING)


def unwrap(seq: Array) -> Array:
    """32-bit sequence numbers to numbers that do not wrap, relative to the first."""
    steps = np.diff(seq, prepend=seq[:1]) & 0xFFFFFFFF
    return np.cumsum(np.where(steps >= 1 << 31, steps - (1 << 32), steps))


def reassemble(
    data: bytes,
    seq: Array,
    length: Array,
    kept: Array,
    at: Array,
    ts_ns: Array,
    opening: int | None,
) -> Stream:
    """The stream of the segments that carry payload.

    `length` as sent, `kept` of it in `data` from `at` on. `opening`: sequence number of the first byte, if the SYN was
    seen.
    """
    if not len(seq):
        return EMPTY
    start = unwrap(seq if opening is None else np.concatenate(([opening], seq)))
    start = start if opening is None else start[1:]
    if opening is None:
        start = start - start.min()
    possible = _possible(start, length)
    stray = int(length.sum() - length[possible].sum())
    if not possible.all():
        start, length, kept, at, ts_ns = (c[possible] for c in (start, length, kept, at, ts_ns))
        if not len(start):
            return EMPTY
    ahead = np.concatenate(([0], np.maximum.accumulate(start + length)[:-1]))
    if (start <= ahead).all():
        pieces, again, late = _in_order(start, length, ahead)
    else:
        pieces, again, late = _out_of_order(start, length, ts_ns)
    begin, end, which = pieces
    source = at[which] + begin - start[which]
    have = np.clip(kept[which] - (begin - start[which]), 0, end - begin)
    content, unknown = _join(data, begin, end, source, have)
    return Stream(
        content,
        begin,
        end - begin,
        ts_ns[which],
        unknown,
        opening is not None,
        len(again),
        sum(again),
        late,
        stray,
        _repeated(start, length, ts_ns, pieces),
    )


def _possible(start: Array, length: Array) -> Array:
    """Segments that begin at or after the stream's start and not absurdly far ahead."""
    ahead = np.concatenate(([0], np.maximum.accumulate(start + length)[:-1]))
    jumps = start > ahead + FARTHEST_JUMP
    if not jumps.any():
        return start >= 0
    fits, furthest = [], 0
    for begin, size in zip(start.tolist(), length.tolist(), strict=True):
        fits.append(0 <= begin <= furthest + FARTHEST_JUMP)
        if fits[-1]:
            furthest = max(furthest, begin + size)
    return np.array(fits)


def _in_order(
    start: Array, length: Array, ahead: Array
) -> tuple[tuple[Array, Array, Array], list[int], int]:
    """No segment leaves a gap: each brings what lies beyond all before it."""
    begin, end = np.maximum(start, ahead), start + length
    new = end > begin
    again = length[start < ahead].tolist()
    return (begin[new], end[new], np.flatnonzero(new)), again, 0


def _out_of_order(
    start: Array, length: Array, ts_ns: Array
) -> tuple[tuple[Array, Array, Array], list[int], int]:
    """Segments with gaps between them that later ones may fill; `begins` and `ends` hold disjoint ranges."""
    begins: list[int] = []  # of what has been seen so far
    ends: list[int] = []
    pieces: list[tuple[int, int, int]] = []
    edges: list[int] = []  # where each gap ended when it appeared, in order,
    opened: list[int] = []  # and when that was
    again: list[int] = []  # sizes of the segments that were sent again
    late = 0
    for which, (low, size, now) in enumerate(
        zip(start.tolist(), length.tolist(), ts_ns.tolist(), strict=True)
    ):
        high = low + size
        furthest = ends[-1] if ends else 0
        if low > furthest:
            edges.append(low)
            opened.append(now)
        first = bisect_left(ends, low)  # ranges [first, last) touch or overlap this segment
        last = bisect_right(begins, high)
        fresh, at = [], low
        for other in range(first, last):
            if begins[other] > at:
                fresh.append((at, begins[other], which))
            at = max(at, ends[other])
        if at < high:
            fresh.append((at, high, which))
        pieces.extend(fresh)
        if first < last:
            low_all, high_all = min(low, begins[first]), max(high, ends[last - 1])
        else:
            low_all, high_all = low, high
        begins[first:last], ends[first:last] = [low_all], [high_all]
        if low < furthest:
            brought = sum(b - a for a, b, _ in fresh)
            if brought == size and now - opened[bisect_left(edges, high)] <= REORDERED_WITHIN_NS:
                late += 1
            else:
                again.append(size)
    columns = np.array(sorted(pieces), np.int64).reshape(-1, 3)
    return (columns[:, 0], columns[:, 1], columns[:, 2]), again, late


def _repeated(
    start: Array, length: Array, ts_ns: Array, pieces: tuple[Array, Array, Array]
) -> Array:
    """For each piece, how long after it the last segment with bytes of it passed; 0 if there was no other."""
    begin, end, which = pieces
    seen_ns = ts_ns[which]
    after: Array = np.zeros(len(begin), np.int64)
    brought = np.bincount(which, end - begin, len(start))
    again = np.flatnonzero(brought < length)
    first = np.searchsorted(end, start[again], "right")  # pieces [first, last) lie in the segment
    last = np.searchsorted(begin, (start + length)[again], "left")
    single = last - first == 1
    where = first[single]
    np.maximum.at(after, where, ts_ns[again[single]] - seen_ns[where])
    for segment, low, high in zip(again[~single], first[~single], last[~single], strict=True):
        after[low:high] = np.maximum(after[low:high], ts_ns[segment] - seen_ns[low:high])
    return after


def _join(
    data: bytes, begin: Array, end: Array, source: Array, have: Array
) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """The pieces' bytes with zeros where nothing is known, and the ranges of those."""
    parts: list[bytes] = []
    unknown: list[tuple[int, int]] = []
    at = 0
    for low, high, where, kept in zip(
        begin.tolist(), end.tolist(), source.tolist(), have.tolist(), strict=True
    ):
        if low > at:
            parts.append(bytes(low - at))
            unknown.append((at, low))
        parts.append(data[where : where + kept])
        if low + kept < high:
            parts.append(bytes(high - low - kept))
            unknown.append((low + kept, high))
        at = high
    return b"".join(parts), tuple(unknown)
