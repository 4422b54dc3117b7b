"""Runs of a stream's bytes, as columns: where they belong, when each was seen, and the bytes themselves."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.stream import NOTHING

Array = npt.NDArray[Any]


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
_NONE = Pieces(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, b"")


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
