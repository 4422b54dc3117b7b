"""The movement of a slope: above its threshold, the faster the wetter it is, until it fails.

A slope that will fail speeds up so that the inverse of its speed falls in a straight line to zero (Fukuzono 1985, for
alpha = 2: d(1/v)/dt = -A). Here A grows with how far the soil water index is above the slope's threshold; below it,
the slope comes to rest again.
"""

from dataclasses import dataclass
from math import log

from testbed.hazards.model import Slope

TENTH = 0.1  # `collapse` holds for an index a tenth above the threshold


@dataclass(frozen=True, slots=True)
class Movement:
    """The state of a moving slope: `hold` is v0/v, 1 while it creeps, 0 when it fails."""

    hold: float = 1.0
    moved_mm: float = 0.0

    def speed_mm_h(self, slope: Slope) -> float:
        """The speed of the slope; infinite when it fails."""
        return slope.creep_mm_h / self.hold if self.hold > 0 else float("inf")

    def after(self, slope: Slope, above: float, seconds: float) -> tuple["Movement", float | None]:
        """The movement one step later, and the second of the step at which the slope failed, or None.

        `above`: the index over the threshold, minus 1.
        """
        pace = max(0.0, above) / TENTH / slope.collapse_s
        if pace == 0.0:
            regained = min(1.0, seconds / slope.collapse_s) * (1.0 - self.hold)
            return Movement(self.hold + regained, self.moved_mm), None
        if (fails_s := self.hold / pace) <= seconds:
            return Movement(0.0, self.moved_mm), fails_s
        hold = self.hold - pace * seconds
        moved_mm = slope.creep_mm_h / 3_600 * log(self.hold / hold) / pace  # integral of the speed
        return Movement(hold, self.moved_mm + moved_mm), None
