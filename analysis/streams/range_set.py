"""Which bytes of a stream have been seen: disjoint ranges, in order."""

from bisect import bisect_left, bisect_right

Range = tuple[int, int]


class RangeSet:
    """From where to where; ranges that touch are one."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._begins)

    @property
    def in_parts(self) -> bool:
        """Whether something is missing between the first byte and the last."""
        return len(self._begins) > 1

    @property
    def lowest(self) -> int:
        """The first byte that was seen; 0 if none was."""
        return self._begins[0] if self._begins else 0

    def reach(self, end: int) -> None:
        """All from the lowest on was seen, up to here."""
        self._begins, self._ends = [self.lowest], [end]

    def bring(self, low: int, high: int) -> list[Range]:
        """Note that these bytes were seen; which of them are new."""
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

    def whole_from(self, place: int) -> int:
        """Up to where nothing is missing from this place on, or from the range before it on; 0 if none is before."""
        first = bisect_right(self._begins, place) - 1
        return self._ends[first] if first >= 0 else 0

    def gaps(self, floor: int) -> list[Range]:
        """What is missing between the floor and the furthest byte."""
        if not self._begins:
            return []
        before = [min(floor, self._begins[0]), *self._ends]
        return [(low, high) for low, high in zip(before, self._begins, strict=False) if low < high]

    def let_go(self, place: int) -> None:
        """Forget what lies before this place, which counts as seen."""
        gone = bisect_right(self._ends, place - 1)
        del self._begins[:gone], self._ends[:gone]
        if self._begins and self._begins[0] <= place:
            self._begins[0] = place
        else:  # it ends within what is missing
            self._begins.insert(0, place)
            self._ends.insert(0, place)
