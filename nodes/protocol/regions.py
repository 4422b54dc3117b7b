"""Regions that messages name: boxes of the space, and spans of the Z-order curve.

Spans are stretches of numbers: sorted, none touching the next, first and last included.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from operator import le

Point = tuple[int, ...]


Interval = tuple[int, int]  # the first and the last number


@dataclass(frozen=True, slots=True)
class Box:
    """All points between two corners, the corners included."""

    low: Point
    high: Point

    def __post_init__(self) -> None:
        if not self.low or len(self.low) != len(self.high):
            raise ValueError(f"{self.low} and {self.high} are no corners of one box")
        for low, high in zip(self.low, self.high, strict=True):
            if low > high:
                raise ValueError(f"a box from {self.low} to {self.high} holds no point")

    def contains(self, point: Point) -> bool:
        """Whether a point of the same space lies in it."""
        return all(map(le, self.low, point)) and all(map(le, point, self.high))

    @property
    def size(self) -> int:
        """How many points it holds."""
        return prod(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    def meets(self, other: "Box") -> bool:
        """Whether some point lies in both."""
        return all(map(le, self.low, other.high)) and all(map(le, other.low, self.high))


class Spans:
    """A set of numbers, as the stretches it is made of. Never changed: every operation makes a new one."""

    __slots__ = ("_stretches",)

    def __init__(self, stretches: Iterable[Interval] = ()) -> None:
        self._stretches = tuple(_joined(stretches))

    @classmethod
    def around(cls, first: int, behind: int, bits: int) -> "Spans":
        """From `first` up to the number before `behind`, on the ring of 2^bits numbers; all of it if they are one."""
        if first < behind:
            return cls([(first, behind - 1)])
        end = [(0, behind - 1)] if behind else []
        return cls([(first, (1 << bits) - 1), *end])

    def __iter__(self) -> Iterator[Interval]:
        return iter(self._stretches)

    def __len__(self) -> int:
        """Of how many stretches."""
        return len(self._stretches)

    def __bool__(self) -> bool:
        return bool(self._stretches)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and self._stretches == other._stretches

    def __hash__(self) -> int:
        return hash(self._stretches)

    def __repr__(self) -> str:
        return f"Spans({list(self._stretches)})"

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self._stretches)

    @property
    def first(self) -> int:
        """The lowest number; IndexError if there is none."""
        return self._stretches[0][0]

    @property
    def size(self) -> int:
        """How many numbers."""
        return sum(last - first + 1 for first, last in self._stretches)

    def stretch_at(self, number: int) -> Interval | None:
        """The stretch that holds this number."""
        return next((each for each in self._stretches if each[0] <= number <= each[1]), None)

    def __or__(self, other: "Spans") -> "Spans":
        return Spans((*self._stretches, *other._stretches))

    def __and__(self, other: "Spans") -> "Spans":
        return Spans(
            (max(first, begin), min(last, end))
            for first, last in self._stretches
            for begin, end in other._stretches
            if first <= end and begin <= last
        )

    def __sub__(self, other: "Spans") -> "Spans":
        left = list(self._stretches)
        for begin, end in other._stretches:
            left = [
                piece
                for first, last in left
                for piece in ((first, min(last, begin - 1)), (max(first, end + 1), last))
                if piece[0] <= piece[1]
            ]
        return Spans(left)

    def meets(self, other: "Spans") -> bool:
        """Whether some number is in both."""
        return any(
            first <= end and begin <= last
            for first, last in self._stretches
            for begin, end in other._stretches
        )


def _joined(stretches: Iterable[Interval]) -> Iterator[Interval]:
    """Sorted, with those joined that overlap or touch."""
    current: Interval | None = None
    for first, last in sorted(stretches):
        if current is None:
            current = first, last
        elif first <= current[1] + 1:
            current = current[0], max(current[1], last)
        else:
            yield current
            current = first, last
    if current is not None:
        yield current


EMPTY = Spans()
