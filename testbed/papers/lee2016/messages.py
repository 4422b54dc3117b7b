"""What is published when: for each way of sending the same messages at the same distances, one way after the other.

Would all cells get an urgent message at the same moment, the server's only process would have to serve them all at
once, and the last would wait for it. So the ways follow each other by `APART_S`, SMs and PMs alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from testbed.papers.lee2016.cells import Experiment, Lab, word
from testbed.papers.lee2016.model import (
    PM_BYTES,
    PM_PERIOD_S,
    PM_PROBABILITY,
    SM_BYTES,
    SM_PERIOD_S,
)
from testbed.papers.lee2016.series import STANDARD_LEVEL, URGENT_LEVEL, Series

SEED = 2095  # 100 PMs in 1,000 s, the first when TCP has learnt how slow its line is
APART_S = 0.025
AFTER_STANDARD_S = 0.2  # a PM comes so much after the full second
TRAFFIC_AT_S = 3.0  # not together with the other experiment's messages
MESSAGES = 10  # of each kind, to measure the traffic


@dataclass(frozen=True, slots=True)
class Event:
    """Messages of one kind; times are not scaled."""

    at_s: float
    topic: str
    priority: int
    size: int  # of the whole message, with our header and topic
    period_s: float | None = None
    count: int | None = None


def urgent_topic(experiment: Experiment, way: Series) -> str:
    """What the PMs for a way of sending are published under."""
    return f"{word(experiment)}/{way.key}/pm"


def standard_topic(experiment: Experiment, way: Series) -> str:
    """What its SMs are published under."""
    return f"{word(experiment)}/{way.key}/sm"


def urgent_moments(seconds: int) -> list[float]:
    """When PMs come: each second with a probability; the same for all ways of sending, and at every scale."""
    chance = Random(SEED)
    ticks = int(seconds / PM_PERIOD_S)
    return [tick * PM_PERIOD_S for tick in range(ticks) if chance.random() < PM_PROBABILITY]


def events(lab: Lab) -> Iterator[Event]:
    """All that is published in a lab."""
    moments = urgent_moments(lab.seconds)
    for experiment in lab.experiments:
        ways = dict.fromkeys(c.series for c in lab.cells if c.experiment is experiment)
        for place, way in enumerate(ways):
            if experiment is Experiment.DELAY:
                yield from _delay_events(way, place * APART_S, moments)
            else:
                yield from _traffic_events(way, TRAFFIC_AT_S + place * APART_S)


def _delay_events(way: Series, late_s: float, moments: list[float]) -> Iterator[Event]:
    standard, urgent = (topic(Experiment.DELAY, way) for topic in (standard_topic, urgent_topic))
    yield Event(late_s, standard, STANDARD_LEVEL, SM_BYTES, SM_PERIOD_S)
    for moment in moments:
        yield Event(moment + AFTER_STANDARD_S + late_s, urgent, URGENT_LEVEL, PM_BYTES)


def _traffic_events(way: Series, at_s: float) -> Iterator[Event]:
    standard, urgent = (topic(Experiment.TRAFFIC, way) for topic in (standard_topic, urgent_topic))
    yield Event(at_s, standard, STANDARD_LEVEL, SM_BYTES, SM_PERIOD_S, MESSAGES)
    yield Event(at_s + SM_PERIOD_S / 2, urgent, URGENT_LEVEL, PM_BYTES, SM_PERIOD_S, MESSAGES)
