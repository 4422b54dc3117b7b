"""The topology file of a lab: one sensor publishes everything, one broker is the thesis' server, each cell a client.

Only the links toward the clients are limited, as in the thesis (the server's egress).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from nodes.protocol.wire import HEADER_SIZE
from testbed.papers.lee2016.cells import THOUSAND, Cell, Experiment, Lab, short_name
from testbed.papers.lee2016.model import (
    PM_BYTES,
    PM_PERIOD_S,
    PM_PROBABILITY,
    SM_BYTES,
    SM_PERIOD_S,
    STANDARD_LEVEL,
    URGENT_LEVEL,
    Series,
    standard_s,
)
from testbed.topology.model import Emulator
from testbed.topology.units import DURATION, SIZE

# What is published when: for each way of sending the same messages at the same distances, one way after the other.
#
# Would all cells get an urgent message at the same moment, the server's only process would have to serve them all at
# once, and the last would wait for it. So the ways follow each other by `APART_S`, SMs and PMs alike.


SEED = 2095  # 100 PMs in 1,000 s, the first when TCP has learnt how slow its link is
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
    return f"{short_name(experiment)}/{way.key}/pm"


def standard_topic(experiment: Experiment, way: Series) -> str:
    """What its SMs are published under."""
    return f"{short_name(experiment)}/{way.key}/sm"


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


QUEUE_BYTES = 128_000  # in front of each link: one SM fits, with its headers (the thesis does not give its `limit`)
SMALLEST_BUCKET = 1_600  # bytes; the thesis' rate/5 drops every full packet below 8 kB/s
BUCKET_S = 0.2


def topology_text(lab: Lab) -> str:
    """The whole file."""
    return "\n".join(_lines(lab)) + "\n"


def _lines(lab: Lab) -> Iterator[str]:
    yield f"# Lee 2016, {len(lab.cells)} cells side by side; time runs {lab.scale} times as fast."
    yield f"name: {lab.name}"
    yield f"seed: {SEED}"
    yield "links:"
    yield f"  emulator: {lab.emulator}"
    yield "  profiles:"
    yield "    unlimited: {}"
    for rate in lab.rates:
        yield f"    {_line(rate)}: {{down: {_flow(_shape(lab, rate))}}}"
    yield "defaults: {link: unlimited}"
    yield "nodes:"
    yield "  server: {kind: broker}"
    yield "  source: {kind: sensor}"
    for cell in lab.cells:
        yield f"  {cell.node}: {_flow(_client(cell, lab.scale))}"
    yield "scenario:"
    yield f"  duration: {_time(lab.seconds / lab.scale)}"
    yield f"  settle: {_time(_patience_s(lab) / lab.scale)}"
    yield "  events:"
    for event in events(lab):
        at, publish = _time(event.at_s / lab.scale), _flow(_publish(event, lab.scale))
        yield f"    - {{at: {at}, publish: {publish}}}"


def _line(rate_kbps: int) -> str:
    return f"line-{rate_kbps}"


def _shape(lab: Lab, rate_kbps: int) -> Mapping[str, Any]:
    shape = {"rate": f"{rate_kbps * lab.scale}kB/s", "queue": SIZE.write(QUEUE_BYTES)}
    if lab.emulator is Emulator.TBF:
        shape["burst"] = SIZE.write(max(SMALLEST_BUCKET, round(rate_kbps * THOUSAND * BUCKET_S)))
    return shape


def _client(cell: Cell, scale: int) -> Mapping[str, Any]:
    topics = [topic(cell.experiment, cell.series) for topic in (urgent_topic, standard_topic)]
    return {
        "kind": "subscriber",
        "link": _line(cell.rate_kbps),
        "topics": f"[{', '.join(topics)}]",
        "delivery": _flow(cell.series.delivery(scale)),
    }


def _publish(event: Event, scale: int) -> Mapping[str, Any]:
    payload = event.size - HEADER_SIZE - len(event.topic)
    values = {
        "from": "source",
        "topic": event.topic,
        "priority": event.priority,
        "size": SIZE.write(payload),
    }
    if event.period_s is not None:
        values["period"] = _time(event.period_s / scale)
    if event.count is not None:
        values["count"] = event.count
    return values


def _patience_s(lab: Lab) -> float:
    """Until the last urgent message has come, where they come at all: one SM and some PMs at the slowest rate."""
    return 1.2 * standard_s(lab.rates[0] * THOUSAND)


def _time(seconds: float) -> str:
    return DURATION.write(round(seconds, 6))


def _flow(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"
