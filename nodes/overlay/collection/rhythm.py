"""When readings of which sensors come: whose a node may wait for before it passes on what it has.

A sensor's period is the distance between its publications, on its own clock; its next reading is expected one period
after the last one came here, on the clock of this node. So nothing depends on clocks that agree, or on sensors that
publish at the same moment. One that keeps silent for several periods is not waited for any more.
"""

from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass
from math import floor

FORGIVEN = 3  # periods of silence
ALIKE = 0.1  # two distances that differ by no more than this part are one period
MOST_SENSORS = 4096
NANOSECONDS = 1_000_000_000


@dataclass(slots=True)
class _Sensor:
    """What is known of one."""

    published_ns: int
    came: float
    distances: tuple[float, ...] = ()  # the last two, seconds

    @property
    def period(self) -> float | None:
        """The shorter distance: a reading may have been lost between two others."""
        return min(self.distances, default=None)


class Rhythm:
    """Of all sensors whose readings of a topic come through a node; those heard of longest ago are forgotten first."""

    def __init__(self) -> None:
        self._sensors: OrderedDict[int, _Sensor] = OrderedDict()

    def heard(self, sensor: int, published_ns: int, now: float) -> None:
        """A reading of this sensor has come."""
        known = self._sensors.get(sensor)
        if known is None:
            self._sensors[sensor] = _Sensor(published_ns, now)
        elif published_ns > known.published_ns:
            distance = (published_ns - known.published_ns) / NANOSECONDS
            distances = (*known.distances[-1:], distance)
            self._sensors[sensor] = _Sensor(published_ns, now, distances)
        self._sensors.move_to_end(sensor)
        if len(self._sensors) > MOST_SENSORS:
            self._sensors.popitem(last=False)

    def steady_period(self, now: float) -> float | None:
        """The shortest period of all that publish regularly; None: nobody does, as far as is known."""
        periods = []
        for one in self._sensors.values():
            if len(one.distances) < 2 or _is_silent(one, now):
                continue
            if max(one.distances) - min(one.distances) <= ALIKE * max(one.distances):
                periods.append(min(one.distances))
        return min(periods, default=None)

    def expects(self, there: Container[int], since: float, until: float, now: float) -> bool:
        """Whether a reading of a sensor that is not `there` is due by `until`, or was due since `since` and is late."""
        for number, one in self._sensors.items():
            period = one.period
            if number in there or period is None or _is_silent(one, now):
                continue
            periods = max(1, floor((since - one.came) / period) + 1)
            if one.came + periods * period <= until:
                return True
        return False


def _is_silent(sensor: _Sensor, now: float) -> bool:
    period = sensor.period
    return period is not None and now - sensor.came > FORGIVEN * period
