"""TCP reassembly: from the segments of one direction of a connection, in capture order, to the stream's bytes.

Segments are added window by window. Bytes that a reader has processed are released, so that memory holds only what is
still needed. Whether a segment is new, retransmitted, reordered or stray depends only on the segments before it, so
the result does not depend on where windows end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.streams.range_set import RangeSet
from analysis.streams.stream import EMPTY, NEVER, REORDERED_WITHIN_NS, Stream

Array = npt.NDArray[Any]

# Runs of a stream's bytes, as columns: position, time, and the bytes themselves.


class Pieces(NamedTuple):
    """Runs of new bytes: begin, end, time seen, and how many bytes were captured, from `at` of `data` on."""

    begin: Array
    end: Array
    ts_ns: Array
    repeated_ns: Array
    kept: Array
    at: Array
    data: bytes

    def chosen(self, which: Array) -> "Pieces":
        """A selection, or all in another order."""
        columns = {name: getattr(self, name)[which] for name in _COLUMNS}
        return self._replace(**columns)

    def copied(self) -> "Pieces":
        """A copy that holds only the data it needs."""
        places = zip(self.at.tolist(), self.kept.tolist(), strict=True)
        data = b"".join([self.data[at : at + kept] for at, kept in places])
        return self._replace(at=np.cumsum(self.kept) - self.kept, data=data)

    def up_to(self, end: int) -> "Pieces":
        """The runs before this place; the last is truncated."""
        some = self.chosen(self.begin < end)
        last = np.minimum(some.end, end)
        return some._replace(end=last, kept=np.minimum(some.kept, last - some.begin))

    def behind(self, place: int) -> "Pieces":
        """The runs after this place; the first is truncated.

        If no run goes across the place, the last one before it stays as an empty run: if bytes are missing from here
        on, they have its time.
        """
        first = int(np.searchsorted(self.end, place, "right"))
        if first and not (first < len(self.begin) and self.begin[first] <= place):
            first -= 1
        some = self.chosen(np.arange(first, len(self.begin)))
        cut = np.maximum(place - some.begin, 0)
        kept = np.maximum(some.kept - cut, 0)
        end = np.maximum(some.end, place)
        return some._replace(begin=some.begin + cut, end=end, kept=kept, at=some.at + cut)

    def note_repetitions(self, start: Array, length: Array, ts_ns: Array) -> None:
        """Record for each run how long after it the last of these segments with its bytes passed."""
        after, seen_ns = self.repeated_ns, self.ts_ns
        first = np.searchsorted(self.end, start, "right")  # pieces [first, last) lie in the segment
        last = np.searchsorted(self.begin, start + length, "left")
        single = last - first == 1
        where = first[single]
        np.maximum.at(after, where, ts_ns[single] - seen_ns[where])
        for now, low, high in zip(ts_ns[~single], first[~single], last[~single], strict=True):
            after[low:high] = np.maximum(after[low:high], now - seen_ns[low:high])

    def join(self, base: int, end: int) -> tuple[bytes, tuple[tuple[int, int], ...]]:
        """The bytes, with zeros where they are unknown, and the unknown ranges, both relative to `base`."""
        parts: list[bytes] = []
        unknown: list[tuple[int, int]] = []
        place, data = base, self.data
        for low, high, kept, at in zip(
            *(column.tolist() for column in (self.begin, self.end, self.kept, self.at)),
            strict=True,
        ):
            if low > place:
                parts.append(bytes(low - place))
                unknown.append((place - base, low - base))
            parts.append(data[at : at + kept])
            if low + kept < high:
                parts.append(bytes(high - low - kept))
                unknown.append((low + kept - base, high - base))
            place = high
        if place < end:
            parts.append(bytes(end - place))
            unknown.append((place - base, end - base))
        return b"".join(parts), tuple(unknown)


_COLUMNS = Pieces._fields[:-1]
_NONE = Pieces(EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, b"")


def merge_pieces(parts: Sequence[Pieces]) -> Pieces:
    """Merge them, sorted by position."""
    if not parts:
        return _NONE
    if len(parts) == 1:
        (pieces,) = parts
    else:
        sizes = np.cumsum([0, *(len(part.data) for part in parts)])
        at = [part.at + size for part, size in zip(parts, sizes.tolist(), strict=False)]
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        columns["at"] = np.concatenate(at)
        pieces = Pieces(**columns, data=b"".join([part.data for part in parts]))
    if (np.diff(pieces.begin) < 0).any():
        pieces = pieces.chosen(np.argsort(pieces.begin, kind="stable"))
    return pieces


__all__ = ["REORDERED_WITHIN_NS", "Reassembly", "Stream", "reassemble", "unwrap"]
FARTHEST_JUMP = 1 << 26  # a segment further ahead than any TCP window belongs to another stream
LATEST = 1 << 26  # missing bytes are given up when so many bytes follow them
REACH_BACK = (
    1 << 20
)  # within so many bytes an earlier beginning may follow, if the SYN was not seen
REPEATS_WITHIN = 1 << 20  # a segment further behind than this is not recorded as a repetition


def unwrap(seq: Array) -> Array:
    """Convert 32-bit sequence numbers to numbers that do not wrap, relative to the first."""
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
    """Reassemble the stream of the segments that carry payload.

    `length` as sent, `kept` of it in `data` from `at` on. `opening`: sequence number of the first byte, if the SYN was
    seen.
    """
    one = Reassembly(opening)
    one.add(data, seq, length, kept, at, ts_ns)
    return one.stream()


class Reassembly:
    """One stream while it is read. Positions are relative to its first byte, or to the first captured one."""

    def __init__(self, opening: int | None) -> None:
        self.opening = opening
        self.floor = 0  # bytes before it are released
        self.furthest = 0
        self.retransmitted = self.retransmitted_payload = self.reordered = self.stray = 0
        self.fresh = 0  # bytes seen, each counted once
        self.before_ns = 0
        self.holes: list[tuple[int, int]] = []  # below the floor
        self._last = (opening, 0)  # sequence number and position of the last segment
        self._seen = RangeSet()
        self._edges: list[int] = []  # the end of each gap when it appeared, in order,
        self._opened: list[int] = []  # and the time of that
        self._pieces: list[Pieces] = []

    # Segments in

    def add(
        self, data: bytes, seq: Array, length: Array, kept: Array, at: Array, ts_ns: Array
    ) -> None:
        """Add segments that carry payload, in capture order."""
        if not len(seq):
            return
        start = self._positions(seq, int(ts_ns[0]))
        ahead = self._ahead(start, length)
        if (start <= ahead).all() and self._no_gap(start):
            begin, end, which = self._in_order(start, length, ahead)
        else:
            ahead, (begin, end, which) = self._out_of_order(start, length, ts_ns)
        self.fresh += int((end - begin).sum())
        skipped = begin - start[which]
        have = np.clip(kept[which] - skipped, 0, end - begin)
        never = np.zeros(len(which), np.int64)
        new = Pieces(begin, end, ts_ns[which], never, have, at[which] + skipped, data)
        self._pieces.append(new.copied() if self._pieces else new)
        brought = np.bincount(which, end - begin, len(start))
        again = (brought < length) & (start <= ahead) & (start >= ahead - REPEATS_WITHIN)
        if again.any():
            self._together().note_repetitions(start[again], length[again], ts_ns[again])

    def end_window(self) -> None:
        """Copy the data of the last segments, because their buffer will be released."""
        if self._pieces:
            self._pieces[-1] = self._pieces[-1].copied()

    def _positions(self, seq: Array, now_ns: int) -> Array:
        known, place = self._last
        if known is None:  # the first of a stream whose opening was not captured
            known = int(seq[0])
            self._edges, self._opened = [0], [now_ns]
        start: Array = place + unwrap(np.concatenate(([known], seq)))[1:]
        self._last = (int(seq[-1]), int(start[-1]))
        return start

    def _ahead(self, start: Array, length: Array) -> Array:
        """The furthest position before each segment."""
        ends = np.concatenate(([self.furthest], start + length))
        return np.maximum.accumulate(ends)[:-1]

    def _no_gap(self, start: Array) -> bool:
        """Whether no byte is missing that one of these segments could carry."""
        if self._seen.has_gaps:
            return False
        whole = self.floor > 0 or not self._seen
        return bool((start >= (0 if whole else self._seen.lowest)).all())

    def _in_order(self, start: Array, length: Array, ahead: Array) -> tuple[Array, Array, Array]:
        """Without gaps each segment adds the bytes beyond all earlier ones."""
        begin, end = np.maximum(start, ahead), start + length
        new = end > begin
        again = start < ahead
        self.retransmitted += int(again.sum())
        self.retransmitted_payload += int(length[again].sum())
        self.furthest = max(self.furthest, int(end.max()))
        self._seen.extend_to(self.furthest)
        return begin[new], end[new], np.flatnonzero(new)

    def _out_of_order(
        self, start: Array, length: Array, ts_ns: Array
    ) -> tuple[Array, tuple[Array, Array, Array]]:
        """With gaps, which later segments may fill; returns the furthest position before each segment, and new runs."""
        pieces: list[tuple[int, int, int]] = []
        ahead: list[int] = []
        for which, (low, size, now) in enumerate(
            zip(start.tolist(), length.tolist(), ts_ns.tolist(), strict=True)
        ):
            furthest = self.furthest
            ahead.append(furthest)
            if low > furthest + FARTHEST_JUMP or (self.opening is not None and low < 0):
                self.stray += size
                continue
            if self._too_late(low):
                self._count_again(size)
                continue
            if low > furthest:
                self._edges.append(low)
                self._opened.append(now)
            fresh = self._seen.add(max(low, self.floor) if self.floor else low, low + size)
            self.furthest = max(furthest, low + size)
            pieces.extend((begin, end, which) for begin, end in fresh)
            if low < furthest:
                opened = self._opened_before(low + size)
                soon = opened is not None and now - opened <= REORDERED_WITHIN_NS
                if sum(end - begin for begin, end in fresh) == size and soon:
                    self.reordered += 1
                else:
                    self._count_again(size)
        columns = np.array(sorted(pieces), np.int64).reshape(-1, 3)
        return np.array(ahead, np.int64), (columns[:, 0], columns[:, 1], columns[:, 2])

    def _too_late(self, low: int) -> bool:
        """Whether bytes at this position have been given up."""
        unknown_beginning = low < 0 and self.furthest > REACH_BACK
        return low < self.furthest - LATEST or unknown_beginning

    def _count_again(self, size: int) -> None:
        self.retransmitted += 1
        self.retransmitted_payload += size

    def _opened_before(self, high: int) -> int | None:
        """The time at which the gap that ends here appeared."""
        place = bisect_left(self._edges, high)
        return self._opened[place] if place < len(self._edges) else None

    # Bytes out

    def stream(self, final: bool = True) -> Stream:
        """The stream from the floor on; if not final, only the part that no later segment can change."""
        pieces = self._together()
        base = self._base(pieces)
        end = self.furthest if final else max(base, self._settled())
        after_ns = int(pieces.ts_ns[pieces.end > end].min(initial=NEVER))
        if not final:
            pieces = pieces.up_to(end)
        data, unknown = pieces.join(base, end)
        return Stream(
            data,
            pieces.begin - base,
            pieces.end - pieces.begin,
            pieces.ts_ns,
            unknown,
            self.opening is not None,
            self.retransmitted,
            self.retransmitted_payload,
            self.reordered,
            self.stray,
            pieces.repeated_ns,
            self.before_ns,
            after_ns,
        )

    def beginning(self, size: int) -> bytes:
        """The first bytes from the floor on, up to the first missing one."""
        pieces = self._together()
        base = self._base(pieces)
        data, unknown = pieces.up_to(base + size).join(base, base)
        return data[: unknown[0][0]] if unknown else data

    def _together(self) -> Pieces:
        """All runs merged by position."""
        pieces = merge_pieces(self._pieces)
        if self._pieces:
            self._pieces = [pieces]
        return pieces

    def _settled(self) -> int:
        """The position before which nothing changes: all bytes are there, or the missing ones are given up."""
        given_up = max(self.floor, self.furthest - LATEST)
        there = self._seen.contiguous_end(given_up)
        return max(given_up, min(there, self.furthest - REPEATS_WITHIN))

    def release(self, size: int) -> None:
        """Release the first bytes of the stream, after a reader has processed them."""
        if not size:
            return
        pieces = self._together()
        place = self._base(pieces) + size
        passed = pieces.ts_ns[pieces.begin < place]
        self.before_ns = max(self.before_ns, int(passed.max(initial=0)))
        self._pieces = [pieces.behind(place).copied()]
        gaps = self._seen.gaps(self.floor)
        self.holes += [(low, min(high, place)) for low, high in gaps if low < place]
        self._seen.release(place)
        stale = bisect_right(self._edges, place)
        del self._edges[:stale], self._opened[:stale]
        self.floor = place

    def missing(self, end: int) -> int:
        """The number of bytes before this place that were never seen."""
        gaps = [*self.holes, *self._seen.gaps(self.floor)]
        return sum(max(0, min(high, end) - low) for low, high in gaps)

    @property
    def held(self) -> int:
        """The number of bytes from the floor on."""
        return self.furthest - self.floor

    def _base(self, pieces: Pieces) -> int:
        """The position of the first held byte; negative if the SYN was not seen."""
        return min(self.floor, int(pieces.begin.min(initial=self.floor)))
