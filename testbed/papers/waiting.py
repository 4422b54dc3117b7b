"""How long a broker should wait for others' readings, what Kawakami 2016 leaves open: simulated labs.

The rows hold what arrives at the office and crosses the links; `analysis.papers.kawakami2016` makes the same of it as
of what real labs have captured.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nodes.protocol.wire import Kind
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.node import EPOCH_NS
from testbed.backends.simulated.play import play
from testbed.backends.simulated.trace import MESSAGES, link_row
from testbed.places import RunPlace
from testbed.topology import load_text
from testbed.topology.model import NodeKind

# The labs of the experiment on waiting, as topology files: the same in the simulator and in namespaces.
#
# Sites with a broker and a gauge each, behind a router with a 3G or MVNO link of its own, push readings to one office
# (`collection`, descending).


TOPIC, OFFICE = "water", "office"
LINK_SETTINGS = ("3g-384k", "mvno-128k")  # in turn, from period to period
# The brokers form their graph, then gauges begin; a period is known from three readings, and keys change after that.
BEGIN_S, PERIODS_TO_LEARN, CHANGING_S = 5, 3, 5
SETTLE_S = 15


@dataclass(frozen=True, slots=True)
class WaitingLab:
    """One time to wait, and for how long readings count once all periods are learnt."""

    wait_ms: int
    longest_s: int  # periods are 1, 2, ... seconds up to this, one site each
    seed: int
    measured_s: int

    @property
    def name(self) -> str:
        return f"waiting-{self.wait_ms}ms"

    @property
    def sites(self) -> int:
        return self.longest_s

    @property
    def learnt_s(self) -> int:
        """From here on every key is final."""
        return BEGIN_S + PERIODS_TO_LEARN * self.longest_s + CHANGING_S

    def text(self) -> str:
        """As a topology file."""
        groups, events = [], []
        periods = range(1, self.longest_s + 1)
        for line, profile in enumerate(LINK_SETTINGS):
            count = len(periods[line :: len(LINK_SETTINGS)])
            groups += [
                f"  lines-{line}: {{kind: router, count: {count}, link: {profile}}}",
                f'  brokers-{line}: {{kind: broker, count: {count}, router: "lines-{line}[*]"}}',
                f'  gauges-{line}: {{kind: sensor, count: {count}, router: "lines-{line}[*]"}}',
            ]
        for place, period in enumerate(periods):
            site, line = divmod(place, len(LINK_SETTINGS))
            published = (
                f"from: 'gauges-{line}[{site}]', topic: {TOPIC}, size: 4B, period: {period}s"
            )
            events.append(f"    - {{at: {BEGIN_S}s, publish: {{{published}}}}}")
        return "\n".join(
            [
                f"name: {self.name}",
                f"seed: {self.seed}",
                "groups:",
                *groups,
                "nodes:",
                "  center: {kind: broker, link: lan}",
                f"  {OFFICE}: {{kind: subscriber, link: lan, topics: [{TOPIC}], brokers: center}}",
                f"overlay: {{method: collection, wait_s: {self.wait_ms / 1000:g}}}",
                "scenario:",
                f"  duration: {self.learnt_s + self.measured_s}s",
                f"  settle: {SETTLE_S}s",
                "  events:",
                *events,
                "",
            ]
        )

    def sheet(self, trial: int) -> dict[str, Any]:
        """What the analysis must know of a run of it, for the run's manifest."""
        return {
            "name": "kawakami2016",
            "trial": trial,
            "sites": self.sites,
            "wait_ms": self.wait_ms,
            "learnt_s": self.learnt_s,
            "measured_s": self.measured_s,
            "office": OFFICE,
        }


SERVICE_NS = 1_000_000
SECOND = 1_000_000_000
SIMULATED = "simulated"
LAYERS = ("payload_bytes", "header_bytes", "label_bytes", "websocket_bytes")  # of a message
Row = dict[str, Any]


def measure_waiting(trial: int, seed: int, **lab: int) -> tuple[list[Row], Row]:
    """All readings that came to the office, and what the lab had to do for those that count; `lab`: of `WaitingLab`.

    Times are seconds since readings count.
    """
    wanted = WaitingLab(seed=seed + trial, **lab)
    topology = load_text(wanted.text(), f"{wanted.name}.yaml")
    with TemporaryDirectory() as folder:
        simulated = SimulatedLab(topology, RunPlace(Path(folder)), SERVICE_NS)
        counted = _Bytes(simulated)
        played = play(simulated, counted.at)
    begin_ns = played.start + wanted.learnt_s * SECOND
    end_ns = begin_ns + wanted.measured_s * SECOND
    due = sum(begin_ns <= played.start + one.at_ns < end_ns for one in played.timeline)
    of_lab = {
        "lab": SIMULATED,
        "trial": trial,
        "sites": wanted.sites,
        "wait_ms": wanted.wait_ms,
    }
    readings = [{**of_lab, **reading} for reading in _readings(simulated, begin_ns)]
    return readings, {
        **of_lab,
        "measured_s": wanted.measured_s,
        "due": due,
        **_cost(simulated, begin_ns, end_ns),
        "line_bytes": counted.between(wanted.learnt_s, wanted.learnt_s + wanted.measured_s),
    }


class _Bytes:
    """The bytes that had crossed the sites' links, both ways, after each second."""

    def __init__(self, lab: SimulatedLab) -> None:
        lines = {node.name for node in lab.topology.of_kind(NodeKind.ROUTER)}
        self._captures = [capture for capture in lab.captures if capture.link in lines]
        self._after: dict[int, int] = {}

    def at(self, seconds: float) -> None:
        self._after[round(seconds)] = sum(capture.wire_bytes for capture in self._captures)

    def between(self, since_s: int, until_s: int) -> int:
        return self._after[until_s] - self._after[since_s]


def _readings(lab: SimulatedLab, begin_ns: int) -> Iterator[Row]:
    """All that the office's application was handed."""
    gauges = {node.number: node.name for node in lab.topology.nodes}
    for line in lab.nodes[OFFICE].log.lines:
        record = json.loads(line)
        if record["event"] == "receive":
            yield {
                "gauge": gauges[record["origin"]],
                "published_s": (record["published_ns"] - EPOCH_NS - begin_ns) / SECOND,
                "came_s": (record["t"] - EPOCH_NS - begin_ns) / SECOND,
            }


def _cost(lab: SimulatedLab, begin_ns: int, end_ns: int) -> dict[str, float]:
    """Of messages between brokers that carried readings which were published in this time; of one that is joined of
    several, each reading has its part. Bytes are without those of packets' headers.
    """
    brokers = {node.name for node in lab.topology.of_kind(NodeKind.BROKER)}
    rows: dict[str, list[Any]] = {name: [] for name in MESSAGES.names}
    for capture in lab.captures:
        if capture.link in brokers and capture.direction == "up":
            link_row(capture, {}, rows)
    cost = {"messages": 0.0, "packets": 0.0, "bytes": 0}
    for values in zip(*rows.values(), strict=True):
        row = dict(zip(rows, values, strict=True))
        counts = begin_ns <= row["published_ns"] - EPOCH_NS < end_ns
        if counts and row["kind"] == Kind.PUBLISH.name and row["dst"] in brokers:
            cost["messages"] += 1 / row["joined"]
            cost["packets"] += row["packets"] / row["joined"]
            cost["bytes"] += sum(row[name] for name in LAYERS)
    return cost
