"""TCP reassembly: the segments of one direction of one connection, in capture order, to the stream's bytes.

Segments come as they are read, a window of the file after the other. What has been read of the stream is let go, so
that memory holds what is still needed, not what was sent. What a segment is (new, sent again, overtaken, none of this
stream) depends on those before it only, so it does not matter where the windows end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.streams.range_set import RangeSet
from analysis.streams.stream import EMPTY, NEVER, REORDERED_WITHIN_NS, Stream

Array = npt.NDArray[Any]

# Runs of a stream's bytes, as columns: where they belong, when each was seen, and the bytes themselves.


class Pieces(NamedTuple):
    """Runs of new bytes: from where to where, when seen, and how many of them were kept, from `at` of `data` on."""

    begin: Array
    end: Array
    ts_ns: Array
    repeated_ns: Array
    kept: Array
    at: Array
    data: bytes

    def chosen(self, which: Array) -> "Pieces":
        """Some of them, or all in another order."""
        columns = {name: getattr(self, name)[which] for name in _COLUMNS}
        return self._replace(**columns)

    def copied(self) -> "Pieces":
        """With no more data than they need."""
        places = zip(self.at.tolist(), self.kept.tolist(), strict=True)
        data = b"".join([self.data[at : at + kept] for at, kept in places])
        return self._replace(at=np.cumsum(self.kept) - self.kept, data=data)

    def up_to(self, end: int) -> "Pieces":
        """Those before this place, the last of them cut."""
        some = self.chosen(self.begin < end)
        last = np.minimum(some.end, end)
        return some._replace(end=last, kept=np.minimum(some.kept, last - some.begin))

    def behind(self, place: int) -> "Pieces":
        """Those behind this place, the first of them cut."""
        some = self.chosen(self.end > place)
        cut = np.maximum(place - some.begin, 0)
        kept = np.maximum(some.kept - cut, 0)
        return some._replace(begin=some.begin + cut, kept=kept, at=some.at + cut)

    def note_repetitions(self, start: Array, length: Array, ts_ns: Array) -> None:
        """For each piece, how long after it the last of these segments with bytes of it passed."""
        after, seen_ns = self.repeated_ns, self.ts_ns
        first = np.searchsorted(self.end, start, "right")  # pieces [first, last) lie in the segment
        last = np.searchsorted(self.begin, start + length, "left")
        single = last - first == 1
        where = first[single]
        np.maximum.at(after, where, ts_ns[single] - seen_ns[where])
        for now, low, high in zip(ts_ns[~single], first[~single], last[~single], strict=True):
            after[low:high] = np.maximum(after[low:high], now - seen_ns[low:high])

    def join(self, base: int, end: int) -> tuple[bytes, tuple[tuple[int, int], ...]]:
        """Their bytes with zeros where nothing is known, and the ranges of those, both relative to `base`."""
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


def put_together(parts: Sequence[Pieces]) -> Pieces:
    """All of them in one, by position."""
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
FARTHEST_JUMP = 1 << 26  # a segment further ahead than any window allows belongs to something else
LATEST = 1 << 26  # bytes that are missing are not waited for any longer when so many follow them
REACH_BACK = 1 << 20  # so far into a stream whose opening is not known, its true beginning may come
REPEATS_WITHIN = 1 << 20  # what follows so many bytes behind is not noted as a repetition of them


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
    one = Reassembly(opening)
    one.add(data, seq, length, kept, at, ts_ns)
    return one.stream()


class Reassembly:
    """One stream under way. Positions are relative to its first byte, or to the first that was captured."""

    def __init__(self, opening: int | None) -> None:
        self.opening = opening
        self.floor = 0  # all before has been let go
        self.furthest = 0
        self.retransmitted = self.retransmitted_payload = self.reordered = self.stray = 0
        self.fresh = 0  # bytes seen, each counted once
        self.before_ns = 0
        self.holes: list[tuple[int, int]] = []  # below the floor
        self._last = (opening, 0)  # sequence number and position of the last segment
        self._seen = RangeSet()
        self._edges: list[int] = []  # where each gap ended when it appeared, in order,
        self._opened: list[int] = []  # and when that was
        self._pieces: list[Pieces] = []

    # Segments in

    def add(
        self, data: bytes, seq: Array, length: Array, kept: Array, at: Array, ts_ns: Array
    ) -> None:
        """Segments that carry payload, in capture order."""
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

    def keep(self) -> None:
        """What was added last stays, though the data it came from goes."""
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
        """How far the stream had come before each segment."""
        ends = np.concatenate(([self.furthest], start + length))
        return np.maximum.accumulate(ends)[:-1]

    def _no_gap(self, start: Array) -> bool:
        """Whether nothing is missing that one of these could bring."""
        if self._seen.in_parts:
            return False
        whole = self.floor > 0 or not self._seen
        return bool((start >= (0 if whole else self._seen.lowest)).all())

    def _in_order(self, start: Array, length: Array, ahead: Array) -> tuple[Array, Array, Array]:
        """No segment leaves a gap: each brings what lies beyond all before it."""
        begin, end = np.maximum(start, ahead), start + length
        new = end > begin
        again = start < ahead
        self.retransmitted += int(again.sum())
        self.retransmitted_payload += int(length[again].sum())
        self.furthest = max(self.furthest, int(end.max()))
        self._seen.reach(self.furthest)
        return begin[new], end[new], np.flatnonzero(new)

    def _out_of_order(
        self, start: Array, length: Array, ts_ns: Array
    ) -> tuple[Array, tuple[Array, Array, Array]]:
        """Segments with gaps between them that later ones may fill; how far the stream had come before each."""
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
            fresh = self._seen.bring(max(low, self.floor) if self.floor else low, low + size)
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
        """Whether a segment that begins here is not waited for any longer."""
        unknown_beginning = low < 0 and self.furthest > REACH_BACK
        return low < self.furthest - LATEST or unknown_beginning

    def _count_again(self, size: int) -> None:
        self.retransmitted += 1
        self.retransmitted_payload += size

    def _opened_before(self, high: int) -> int | None:
        """When the gap appeared that this is the end of a filling of."""
        place = bisect_left(self._edges, high)
        return self._opened[place] if place < len(self._edges) else None

    # Bytes out

    def stream(self, final: bool = True) -> Stream:
        """What is there from the floor on; if it is not final, only what no later segment can change."""
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
        """The first bytes from the floor on, as far as none is missing."""
        pieces = self._together()
        base = self._base(pieces)
        data, unknown = pieces.up_to(base + size).join(base, base)
        return data[: unknown[0][0]] if unknown else data

    def _together(self) -> Pieces:
        """All pieces by position, in one."""
        pieces = put_together(self._pieces)
        if self._pieces:
            self._pieces = [pieces]
        return pieces

    def _settled(self) -> int:
        """Up to here nothing will come any more: all is there, or what is missing is given up."""
        given_up = max(self.floor, self.furthest - LATEST)
        there = self._seen.whole_from(given_up)
        return max(given_up, min(there, self.furthest - REPEATS_WITHIN))

    def let_go(self, size: int) -> None:
        """Forget so many bytes of what `stream` gives: they have been read."""
        if not size:
            return
        pieces = self._together()
        place = self._base(pieces) + size
        passed = pieces.ts_ns[pieces.begin < place]
        self.before_ns = max(self.before_ns, int(passed.max(initial=0)))
        self._pieces = [pieces.behind(place).copied()]
        gaps = self._seen.gaps(self.floor)
        self.holes += [(low, min(high, place)) for low, high in gaps if low < place]
        self._seen.let_go(place)
        stale = bisect_right(self._edges, place)
        del self._edges[:stale], self._opened[:stale]
        self.floor = place

    def missing(self, end: int) -> int:
        """How many bytes before this place were never seen."""
        gaps = [*self.holes, *self._seen.gaps(self.floor)]
        return sum(max(0, min(high, end) - low) for low, high in gaps)

    @property
    def held(self) -> int:
        """Bytes from the floor on."""
        return self.furthest - self.floor

    def _base(self, pieces: Pieces) -> int:
        """Where what is held begins: before 0, if the opening is not known."""
        return min(self.floor, int(pieces.begin.min(initial=self.floor)))
