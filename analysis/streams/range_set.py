"""The bytes of a stream that were seen, as disjoint ranges in order."""

from bisect import bisect_left, bisect_right

Range = tuple[int, int]


class RangeSet:
    """Disjoint ranges [begin, end); adjacent ranges are merged."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._begins)

    @property
    def has_gaps(self) -> bool:
        """Whether bytes are missing between the first and the last."""
        return len(self._begins) > 1

    @property
    def lowest(self) -> int:
        """The first byte that was seen; 0 if none was."""
        return self._begins[0] if self._begins else 0

    def extend_to(self, end: int) -> None:
        """Mark everything from the lowest byte up to `end` as seen."""
        self._begins, self._ends = [self.lowest], [end]

    def add(self, low: int, high: int) -> list[Range]:
        """Mark these bytes as seen; returns those of them that are new."""
        begins, ends = self._begins, self._ends
        if low >= high:
            return []
        first = bisect_left(ends, low)  # ranges [first, last) touch or overlap these bytes
        last = bisect_right(begins, high)
        fresh, at = [], low
        for other in range(first, last):
            if begins[other] > at:
                fresh.append((at, begins[other]))
            at = max(at, ends[other])
        if at < high:
            fresh.append((at, high))
        low_all = min(low, begins[first]) if first < last else low
        high_all = max(high, ends[last - 1]) if first < last else high
        begins[first:last], ends[first:last] = [low_all], [high_all]
        return fresh

    def contiguous_end(self, place: int) -> int:
        """The end of the range that contains this place or precedes it; 0 if none does."""
        first = bisect_right(self._begins, place) - 1
        return self._ends[first] if first >= 0 else 0

    def gaps(self, floor: int) -> list[Range]:
        """The missing ranges between the floor and the furthest byte."""
        if not self._begins:
            return []
        before = [min(floor, self._begins[0]), *self._ends]
        return [(low, high) for low, high in zip(before, self._begins, strict=False) if low < high]

    def release(self, place: int) -> None:
        """Forget the ranges before this place; those bytes count as seen."""
        gone = bisect_right(self._ends, place - 1)
        del self._begins[:gone], self._ends[:gone]
        if self._begins and self._begins[0] <= place:
            self._begins[0] = place
        else:  # the place lies in a gap
            self._begins.insert(0, place)
            self._ends.insert(0, place)
