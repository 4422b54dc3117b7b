"""The space in which publications have a place: latitude, longitude, and values such as tilt or rain.

On the wire each coordinate is a number of 32 bits, so that overlays need no degrees and millimetres. The scale keeps
the order of values: a value between two others stays between them. A value outside a dimension counts as its nearest
end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from nodes.protocol.regions import Box
from nodes.protocol.wire import MAX_COORDINATE, MAX_DIMENSIONS

AREA = ("latitude", "longitude")  # the first dimensions of every space
Range = tuple[float, float]  # both ends included


@dataclass(frozen=True, slots=True)
class Dimension:
    """One of them, and from where to where it goes. All values of one without length are the same."""

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not -inf < self.low <= self.high < inf:  # nan is not, either
            raise ValueError(f"{self.name} goes from {self.low} to {self.high}, which is nowhere")

    def holds(self, value: float) -> bool:
        """Whether the value lies in it."""
        return self.low <= value <= self.high

    def coordinate(self, value: float) -> int:
        """The value on the wire; exact, so that every machine finds the same."""
        inside = min(max(value, self.low), self.high)
        length = Fraction(self.high) - Fraction(self.low)
        if not length:
            return 0
        return (Fraction(inside) - Fraction(self.low)) * MAX_COORDINATE // length

    def value(self, coordinate: int) -> float:
        """A value that has this coordinate: the middle of all that have."""
        length = Fraction(self.high) - Fraction(self.low)
        middle = length * (2 * coordinate + 1) / (2 * MAX_COORDINATE)
        return min(float(Fraction(self.low) + middle), self.high)


@dataclass(frozen=True, slots=True)
class Space:
    """The dimensions of a lab, latitude and longitude first."""

    dimensions: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        names = [dimension.name for dimension in self.dimensions]
        if tuple(names[: len(AREA)]) != AREA or len(set(names)) != len(names):
            raise ValueError(f"{names}: latitude and longitude come first, and no name twice")
        if len(names) > MAX_DIMENSIONS:
            raise ValueError(f"{len(names)} dimensions; at most {MAX_DIMENSIONS} are possible")

    def place(self, at: Sequence[float], values: Mapping[str, float]) -> tuple[int, ...]:
        """Of what is published at this latitude and longitude; a value that is not given counts as the lowest."""
        given = {**dict(zip(AREA, at, strict=True)), **values}
        return tuple(one.coordinate(given.get(one.name, one.low)) for one in self.dimensions)

    def box(self, ranges: Mapping[str, Range]) -> Box:
        """All places whose values lie in these ranges; dimensions that are not named are not limited."""
        corners = [
            tuple(one.coordinate(end) for end in ranges[one.name])
            if one.name in ranges
            else (0, MAX_COORDINATE)
            for one in self.dimensions
        ]
        return Box(tuple(low for low, _ in corners), tuple(high for _, high in corners))
