"""Publications of sensors during a hazard: readings, the more often the higher the level, and alerts.

Each sensor measures at its own phase of a step and begins its readings at its own moment, both drawn from its name,
so that hundreds of sensors do not publish at the same time.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from testbed.hazards.levels import LOWEST, Change, Course
from testbed.hazards.model import Hazard
from testbed.hazards.sites import SiteHistory


@dataclass(frozen=True, slots=True)
class SensorPublication:
    """One publication of a sensor: an alert or a reading; the time is in seconds of the scenario."""

    at_s: float
    sensor: str
    priority: int
    size: int
    alert: bool


def sensor_publications(
    hazard: Hazard, history: SiteHistory, duration_s: float, seed: int
) -> Iterator[SensorPublication]:
    """All publications of a site's sensors, none at or after the scenario's end."""
    for sensor in history.site.sensors:
        chance = random.Random(f"{seed}/hazard/sensor/{sensor}")
        phase_s = chance.random() * hazard.step_s
        first_s = chance.random() * hazard.readings.periods_s[0]
        seen = tuple(Change(change.at_s + phase_s, change.level) for change in history.course)
        publications = [
            *_alerts(hazard, seen, duration_s),
            *_readings(hazard, seen, first_s, duration_s, history.noticed_s),
        ]
        for at_s, priority, size, alert in publications:
            if at_s < duration_s:
                yield SensorPublication(at_s, sensor, priority, size, alert)


def _alerts(
    hazard: Hazard, seen: Course, duration_s: float
) -> Iterator[tuple[float, int, int, bool]]:
    """Publish each change of the level; repeat a rise until the next change."""
    alerts = hazard.alerts
    before = LOWEST
    ends = [change.at_s for change in seen[1:]] + [duration_s]
    for change, end_s in zip(seen, ends, strict=True):
        times = alerts.times[change.level - 1] if change.level > before else 1
        if change.level != before:
            moments = (change.at_s + number * alerts.period_s for number in range(times))
            yield from ((at_s, change.level, alerts.size, True) for at_s in moments if at_s < end_s)
        before = change.level


def _readings(
    hazard: Hazard, seen: Course, first_s: float, duration_s: float, noticed_s: float | None
) -> Iterator[tuple[float, int, int, bool]]:
    """Publish readings with the period of the level; a rise shortens it. An earthquake's P wave adds one reading."""
    readings = hazard.readings
    moments = [] if noticed_s is None else [noticed_s]
    next_s = first_s
    for change, after in pairwise([*seen, Change(duration_s, LOWEST)]):
        period_s = readings.periods_s[change.level - 1]
        if change is not seen[0]:
            next_s = min(next_s, change.at_s + period_s)
        while next_s < min(after.at_s, duration_s):
            moments.append(next_s)
            next_s += period_s
    yield from ((at_s, readings.priority, readings.size, False) for at_s in moments)
