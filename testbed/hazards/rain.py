"""How hard it rains at a place and a time. Before the scenario it is the same everywhere."""

import random
from bisect import bisect_right
from math import exp

from testbed.earth import Place, distance_m
from testbed.hazards.model import Cell, Rain, Storm, StormShape

SLOT_S = 300.0  # a storm varies anew after this time
_PEAKS = {StormShape.TRIANGLE: 0.5, StormShape.EARLY: 0.25, StormShape.LATE: 0.75}


class Rainfall:
    """The rain of one scenario; the same seed gives the same rain."""

    def __init__(self, rain: Rain, seed: int) -> None:
        self._rain = rain
        self._seed = seed
        self._begins = [from_s for from_s, _ in rain.series]
        self._slots: dict[int, float] = {}

    def rate_mm_h(self, at: Place | None, at_s: float) -> float:
        """At this place, so many seconds after the scenario's start (or before it)."""
        if at_s < 0:
            return self._before(at_s)
        if self._rain.storm is not None:
            return self._in_storm(self._rain.storm, at, at_s)
        found = bisect_right(self._begins, at_s)
        return self._rain.series[found - 1][1] if found else 0.0

    def _before(self, at_s: float) -> float:
        rain = self._rain
        return rain.before_mm / (rain.before_s / 3_600) if -rain.before_s <= at_s else 0.0

    def _in_storm(self, storm: Storm, at: Place | None, at_s: float) -> float:
        part = (at_s - storm.at_s) / storm.for_s
        if not 0 <= part < 1:
            return 0.0
        rate = storm.peak_mm_h * envelope(storm.shape, part) * self._varied(storm, at_s)
        return rate if storm.cell is None or at is None else rate * share(storm.cell, at, part)

    def _varied(self, storm: Storm, at_s: float) -> float:
        slot = int((at_s - storm.at_s) // SLOT_S)
        if slot not in self._slots:
            self._slots[slot] = random.Random(f"{self._seed}/rain/{slot}").random()
        return 1.0 - storm.variation * self._slots[slot]


def envelope(shape: StormShape, part: float) -> float:
    """The share of its peak that a storm can have after this part of its time."""
    if shape is StormShape.BLOCK:
        return 1.0
    peak = _PEAKS[shape]
    return part / peak if part < peak else (1.0 - part) / (1.0 - peak)


def share(cell: Cell, at: Place, part: float) -> float:
    """The share of the centre's rain at this place, when the cell has gone this part of its way."""
    (begin, far), (end, away) = cell.begin, cell.end
    centre = (begin + part * (end - begin), far + part * (away - far))
    return exp(-((distance_m(centre, at) / cell.radius_m) ** 2) / 2)
