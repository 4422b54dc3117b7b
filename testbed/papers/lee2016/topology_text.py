"""The topology file of a lab: one sensor says everything, one broker is the thesis' server, each cell a client.

Only the lines toward the clients are limited, as in the thesis (the server's egress).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodes.wire import HEADER_SIZE
from testbed.papers.lee2016.cells import THOUSAND, Cell, Lab
from testbed.papers.lee2016.messages import SEED, Event, events, standard_topic, urgent_topic
from testbed.papers.lee2016.model import standard_s
from testbed.topology.model import Emulator
from testbed.topology.units import DURATION, SIZE

QUEUE_BYTES = 128_000  # in front of each line: one SM fits, with its headers (the thesis does not tell its `limit`)
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
