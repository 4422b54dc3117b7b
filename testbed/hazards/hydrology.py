"""Rain at a place and a time, the water that it leaves in the soil, and the height of a river."""

import random
from bisect import bisect_right
from dataclasses import dataclass
from math import exp

from testbed.earth import Place, distance_m
from testbed.hazards.model import Cell, Rain, River, Storm, StormShape

SLOT_S = 300.0  # a storm's random factor changes after this time
_PEAKS = {StormShape.TRIANGLE: 0.5, StormShape.EARLY: 0.25, StormShape.LATE: 0.75}


class Rainfall:
    """The rain of one scenario; the same seed gives the same rain."""

    def __init__(self, rain: Rain, seed: int) -> None:
        self._rain = rain
        self._seed = seed
        self._begins = [from_s for from_s, _ in rain.series]
        self._slots: dict[int, float] = {}

    def rate_mm_h(self, at: Place | None, at_s: float) -> float:
        """The rain at this place and time; a negative time is before the scenario's start."""
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
    """The share of its peak that a storm can reach after this part of its duration."""
    if shape is StormShape.BLOCK:
        return 1.0
    peak = _PEAKS[shape]
    return part / peak if part < peak else (1.0 - part) / (1.0 - peak)


def share(cell: Cell, at: Place, part: float) -> float:
    """The share of the centre's rain at this place, after this part of the cell's way."""
    (begin, far), (end, away) = cell.begin, cell.end
    centre = (begin + part * (end - begin), far + part * (away - far))
    return exp(-((distance_m(centre, at) / cell.radius_m) ** 2) / 2)


# The soil water index of the Japan Meteorological Agency: rain that is still in the ground, in three tanks.
#
# Okada, Makihara, Shimpo, Nagata, Kunitsugu, Saito: Soil water index (in Japanese), Tenki 48(5), 2001, 349-356, with
# the constants of Ishihara and Kobatake (1979), which JMA takes for all of Japan. Storages and heights in mm, rates in
# 1/h.


# Heights of the side outlets, rates of the outflow above them, and rates of the infiltration.
L1, L2, L3, L4 = 15.0, 60.0, 15.0, 15.0
ALPHA1, ALPHA2, ALPHA3, ALPHA4 = 0.1, 0.15, 0.05, 0.01
BETA1, BETA2, BETA3 = 0.12, 0.05, 0.01


@dataclass(frozen=True, slots=True)
class Tanks:
    """The storage of the three tanks: near the surface, in the ground, deep below."""

    surface: float = 0.0
    ground: float = 0.0
    deep: float = 0.0

    @property
    def index(self) -> float:
        """The soil water index: the storage of all tanks, in mm."""
        return self.surface + self.ground + self.deep

    @property
    def sideways_mm_h(self) -> tuple[float, float, float]:
        """The outflow at the side of each tank: q1, q2 and q3."""
        return (
            ALPHA1 * max(0.0, self.surface - L1) + ALPHA2 * max(0.0, self.surface - L2),
            ALPHA3 * max(0.0, self.ground - L3),
            ALPHA4 * max(0.0, self.deep - L4),
        )

    @property
    def downwards_mm_h(self) -> tuple[float, float, float]:
        """The infiltration into the next tank, and out of the last."""
        return BETA1 * self.surface, BETA2 * self.ground, BETA3 * self.deep

    def after(self, rain_mm: float, hours: float) -> "Tanks":
        """One step of the published equations: S(t + dt) from S(t) and the rain of this time."""
        q1, q2, q3 = self.sideways_mm_h
        down1, down2, down3 = self.downwards_mm_h
        return Tanks(
            self.surface - (down1 + q1) * hours + rain_mm,
            self.ground - (down2 + q2 - down1) * hours,
            self.deep - (down3 + q3 - down2) * hours,
        )


# The depth of a river at a gauge: rain upstream arrives after a lag, and drains as from one linear reservoir.


def held_after(held_mm: float, rain_mm_h: float, river: River, seconds: float) -> float:
    """The storage of the basin one step later: dS/dt = R - S/k."""
    drained = min(1.0, seconds / river.drain_s)
    return held_mm * (1.0 - drained) + rain_mm_h * seconds / 3_600


def depth_m(held_mm: float, river: River) -> float:
    """The depth of the water."""
    return river.base_m + river.rise_m_per_mm * held_mm
