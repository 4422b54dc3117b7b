"""The topology file of a lab: one sensor says everything, one broker is the thesis' server, each cell a client.

Only the lines toward the clients are limited, as in the thesis (the server's egress).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodes.wire import HEADER_SIZE
from testbed.papers.lee2016.cells import THOUSAND, Cell, Experiment, Lab, word
from testbed.papers.lee2016.model import (
    PM_BYTES,
    PM_PERIOD_S,
    PM_PROBABILITY,
    SM_BYTES,
    SM_PERIOD_S,
    standard_s,
)
from testbed.papers.lee2016.series import STANDARD_LEVEL, URGENT_LEVEL
from testbed.topology.model import Emulator
from testbed.topology.units import DURATION, SIZE

SEED = 2023  # 100 of the 1,000 seconds have an urgent message, the first after TCP has learnt how slow its line is
QUEUE_BYTES = 128_000  # in front of each line: one SM fits, with its headers (the thesis does not tell its `limit`)
SMALLEST_BUCKET = 1_600  # bytes; the thesis' rate/5 drops every full packet below 8 kB/s
BUCKET_S = 0.2
AFTER_STANDARD_S = 0.2  # an urgent message comes so much after the full second
TRAFFIC_AT_S = 3.0  # not together with the other experiment's messages
MESSAGES = 10  # of each kind, to measure the traffic


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
    for experiment in lab.experiments:
        for at_s, publish in _events(lab, experiment):
            yield f"    - {{at: {_time(at_s / lab.scale)}, publish: {_flow(publish)}}}"


def _line(rate_kbps: int) -> str:
    return f"line-{rate_kbps}"


def _shape(lab: Lab, rate_kbps: int) -> Mapping[str, Any]:
    shape = {"rate": f"{rate_kbps * lab.scale}kB/s", "queue": SIZE.write(QUEUE_BYTES)}
    if lab.emulator is Emulator.TBF:
        shape["burst"] = SIZE.write(max(SMALLEST_BUCKET, round(rate_kbps * THOUSAND * BUCKET_S)))
    return shape


def _client(cell: Cell, scale: int) -> Mapping[str, Any]:
    topics = [urgent_topic(cell.experiment), standard_topic(cell.experiment)]
    return {
        "kind": "subscriber",
        "link": _line(cell.rate_kbps),
        "topics": f"[{', '.join(topics)}]",
        "delivery": _flow(cell.series.delivery(scale)),
    }


def urgent_topic(experiment: Experiment) -> str:
    """What the PMs of an experiment are published under."""
    return f"{word(experiment)}/pm"


def standard_topic(experiment: Experiment) -> str:
    """What its SMs are published under."""
    return f"{word(experiment)}/sm"


def _events(lab: Lab, experiment: Experiment) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """When, and what is published."""
    urgent, standard = urgent_topic(experiment), standard_topic(experiment)
    period = _time(SM_PERIOD_S / lab.scale)
    if experiment is Experiment.DELAY:
        often = {"period": _time(PM_PERIOD_S / lab.scale), "probability": PM_PROBABILITY}
        yield 0.0, {**_message(standard, STANDARD_LEVEL, SM_BYTES), "period": period}
        yield AFTER_STANDARD_S, {**_message(urgent, URGENT_LEVEL, PM_BYTES), **often}
    else:
        often = {"period": period, "count": MESSAGES}
        yield TRAFFIC_AT_S, {**_message(standard, STANDARD_LEVEL, SM_BYTES), **often}
        yield (
            TRAFFIC_AT_S + SM_PERIOD_S / 2,
            {
                **_message(urgent, URGENT_LEVEL, PM_BYTES),
                **often,
            },
        )


def _message(topic: str, priority: int, size: int) -> Mapping[str, Any]:
    """The size is that of the whole message, with our header and topic."""
    payload = size - HEADER_SIZE - len(topic)
    return {"from": "source", "topic": topic, "priority": priority, "size": SIZE.write(payload)}


def _patience_s(lab: Lab) -> float:
    """Until the last urgent message has come, where they come at all: one SM and some PMs at the slowest rate."""
    return 1.2 * standard_s(lab.rates[0] * THOUSAND)


def _time(seconds: float) -> str:
    return DURATION.write(round(seconds, 6))


def _flow(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"
