"""The times and the number of an event's publications, without creating them: excessive numbers are refused early.

Times are whole nanoseconds and the period is a fraction of them, so that three messages a second are three in every
second, also after an hour. Ends are excluded: the scenario's, and that of `for`. Poisson arrivals have no ticks: the
times between them are drawn from a generator that the caller seeds.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt

from testbed.topology.model import Arrivals, PublishEvent

MAX_PUBLICATIONS = 1_000_000
# Standard deviations: more Poisson arrivals than that come in less than one of 10^8 events.
MARGIN = 6
SECOND_NS = 1_000_000_000


def nanoseconds(seconds: float) -> int:
    """Whole nanoseconds of a decimal number of seconds."""
    return round(_exact(seconds) * SECOND_NS)


@dataclass(frozen=True, slots=True)
class PublicationSchedule:
    """The moments at which each node of an event may publish."""

    begin_ns: int
    end_ns: int  # excluded
    period_ns: Fraction | None  # None: once
    most: int | None  # ticks of each node
    poisson: bool = False  # then the period is the mean time between arrivals

    def ticks(self, late_ns: int = 0) -> int:
        """The number of publications of a node that begins `late_ns` after the event; of Poisson arrivals a number
        that hardly any seed exceeds."""
        left_ns = self.end_ns - self.begin_ns - late_ns
        if left_ns <= 0:
            return 0
        if self.period_ns is None:
            return 1
        fitting = -(-left_ns * self.period_ns.denominator // self.period_ns.numerator)
        if self.poisson:
            fitting += ceil(MARGIN * (sqrt(fitting) + 1))
        return fitting if self.most is None else min(fitting, self.most)

    def moment(self, tick: int, late_ns: int = 0) -> int:
        """The time of a node's n-th periodic publication, counted from 0; rounded down, so never at the end."""
        if self.period_ns is None:
            return self.begin_ns + late_ns
        whole_ns = tick * self.period_ns.numerator // self.period_ns.denominator
        return self.begin_ns + late_ns + whole_ns

    def moments(self, late_ns: int, arrivals: random.Random) -> Iterator[int]:
        """All times at which a node publishes; `arrivals`: from which Poisson arrivals are drawn."""
        if self.poisson and self.period_ns is not None:
            begin_ns = self.begin_ns + late_ns
            return poisson_moments(begin_ns, self.end_ns, self.period_ns, self.most, arrivals)
        return (self.moment(tick, late_ns) for tick in range(self.ticks(late_ns)))


def poisson_moments(
    begin_ns: int, end_ns: int, mean_ns: Fraction, most: int | None, chance: random.Random
) -> Iterator[int]:
    """The arrivals of a Poisson process from `begin_ns` on, in the order of time: exponential times between them.

    The first one comes after such a time, too, and not at `begin_ns`.
    """
    rate_per_ns = float(1 / mean_ns)
    at_ns, number = begin_ns + int(chance.expovariate(rate_per_ns)), 0
    while at_ns < end_ns and (most is None or number < most):
        yield at_ns
        at_ns, number = at_ns + int(chance.expovariate(rate_per_ns)), number + 1


def publication_schedule(publish: PublishEvent, duration_s: float) -> PublicationSchedule:
    """The schedule of an event in a scenario of this duration."""
    begin_ns, end_ns = nanoseconds(publish.at_s), nanoseconds(duration_s)
    if publish.for_s is not None:
        end_ns = min(end_ns, begin_ns + nanoseconds(publish.for_s))
    poisson = publish.arrivals is Arrivals.POISSON
    return PublicationSchedule(begin_ns, end_ns, _period_ns(publish), publish.count, poisson)


def most_publications(publish: PublishEvent, duration_s: float) -> int:
    """The largest number of publications of all nodes of the event; of Poisson arrivals, hardly ever more."""
    return len(publish.nodes) * publication_schedule(publish, duration_s).ticks()


def _period_ns(publish: PublishEvent) -> Fraction | None:
    if publish.period_s is None:
        return None
    return max(Fraction(1), _exact(publish.period_s) * SECOND_NS / publish.per_period)


def _exact(seconds: float) -> Fraction:
    """The decimal number as written, not the nearest binary one."""
    return Fraction(repr(seconds))
