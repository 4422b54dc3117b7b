"""A line on which a packet takes less time than the jitter: as much may be under way as it delivers in a round trip.

There single acknowledgements tell nothing of the line, but many together do. Rate and round trip are measured over
times that are long against the jitter; of the last ones the best count. Now and then a little more is sent, to see
whether the line carries it, and then a little less, to see the round trip without waiting. (BBR does so, with the
shortest round trip; here it is the usual one, because the line should be busy whatever the jitter is.)
"""

from collections import deque
from statistics import median

from nodes.delivery.line_jitter import Jitter

MOST_PACKET_S = 0.024  # a slower line is better known by each packet
HOLDS, STILL_HOLDS = 1.0, 0.5  # jitter, in packets' times
PAUSE_S = 0.005  # and the jitter
RATES, TRIPS = 8, 10  # measurements that count
GAINS = (1.25, 0.75, *(1.0,) * 6)  # by turns
FIRST_GAIN, BETTER, PATIENCE = 2.0, 1.15, 3  # until so many in turn are not better by so much
LEAST_JITTERS, LEAST_PACKETS = 2.0, 4.0  # for a measurement


class FastLine:
    """Measures a line; `holds` says whether to go by it."""

    def __init__(self) -> None:
        self.holds = False
        self._jitter = Jitter()
        self._rates: deque[float] = deque(maxlen=RATES)
        self._trips: deque[float] = deque(maxlen=TRIPS)
        self._no_better = 0
        self._measured = 0
        self._restart(None)

    def _restart(self, since: tuple[float, float] | None) -> None:
        self._since = since  # position and time
        self._sum_s, self._looks = 0.0, 0

    def on_pause(self, seconds: float) -> None:
        """The line had nothing to do, as far as one can tell."""
        if seconds > PAUSE_S + self._jitter.span_s:
            self._restart(None)
            self._jitter.on_pause()

    @property
    def rate(self) -> float:
        """Bytes a second, headers included."""
        return max(self._rates)

    @property
    def look_s(self) -> float:
        """Until the next look."""
        return self._jitter.span_s / 16

    def most_under_way(self) -> float:
        """Bytes, headers included."""
        growing = self._no_better < PATIENCE
        gain = FIRST_GAIN if growing else GAINS[self._measured % len(GAINS)]
        return gain * self.rate * min(self._trips)

    def on_acknowledged(
        self,
        position: float,
        looks: tuple[float, float],
        trip_s: float,
        rate: float,
        packet_bytes: int,
    ) -> None:
        """So many bytes in all were found to be acknowledged between two looks, the last ones after such a trip."""
        self._jitter.on_acknowledged(position, *looks, rate)
        self._measure(position, looks[1], trip_s, packet_bytes / rate)
        held, self.holds = self.holds, self._is_one(packet_bytes)
        if self.holds != held:
            self._restart((position, looks[1]))

    def _is_one(self, packet_bytes: int) -> bool:
        if not self._rates:
            return False
        packet_s = packet_bytes / median(self._rates)
        least = packet_s * (STILL_HOLDS if self.holds else HOLDS)
        return packet_s < MOST_PACKET_S and self._jitter.span_s > least

    def _measure(self, position: float, now: float, trip_s: float, packet_s: float) -> None:
        if self._since is None:
            self._restart((position, now))
            return
        self._sum_s += trip_s
        self._looks += 1
        took = now - self._since[1]
        usual_s = self._sum_s / self._looks
        least = max(LEAST_JITTERS * self._jitter.span_s, LEAST_PACKETS * packet_s)
        if took < max(least, min(self._trips, default=0.0)):
            return
        measured = (position - self._since[0]) / took
        if self.holds:
            better = measured > BETTER * self.rate and self._no_better < PATIENCE
            self._no_better = 0 if better else self._no_better + 1
            self._measured += 1
        self._rates.append(measured)
        self._trips.append(usual_s)
        self._restart((position, now))
