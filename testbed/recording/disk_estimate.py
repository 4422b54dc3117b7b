"""How much disk a run will take, from its topology alone, before it exists.

The estimate follows each publication over the links of its path: from the sensor to its broker, from broker to broker,
and to the subscribers. A link is captured at its node, so what passes between a client and its broker is in the
captures of both. No link carries more than its rate allows.
What happens between brokers is a mean over runs. docs/howto/runs.md compares estimates with real runs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log2

from nodes.overlay.reliability.heartbeat import EXCHANGE_COST
from nodes.overlay.reliability.settings import STAR, reliability_settings
from nodes.protocol.kinds import EDGE
from nodes.protocol.wire import COORDINATE_BYTES, HEADER_SIZE
from testbed.scenario import compile_timeline
from testbed.scenario.compile import publications_of
from testbed.topology.model import ActionKind, Node, NodeKind, Shape, Topology

RECORD_BYTES = 16  # before each packet of a pcap file
PACKET_HEADERS = 14 + 20 + 32  # Ethernet, IPv4, TCP with time stamps
DATAGRAM_HEADERS = 14 + 20 + 8
FRAME_BYTES = 12  # WebSocket's header with its mask, and the chunk's
ACKS_PER_PACKET = 0.9
CONNECTION_BYTES = 2_300  # the handshakes and the end of a connection, on one link
ACK_MESSAGE_BYTES = HEADER_SIZE + 10 + FRAME_BYTES

# Means over runs of the topologies in topologies/, and of papers/ there.
JOIN_BYTES = 30_000  # of a broker that joins an overlay, for each level of the overlay
UPKEEP_BYTES_PER_S = 500  # of a broker in an overlay, for each level of the overlay
ZORDER_MAP = "zorder-map"  # its period is `period_s`
ZORDER_BYTES_PER_S = 4_000  # of a broker, with a period of one second

LINE_BYTES = 180  # of a node's log, for each publication and each delivery
NODE_LOG_BYTES = 1_500
MACHINE_BYTES_PER_S = 620
PLANNED_BYTES, PUBLISHED_BYTES = 105, 225  # a publication in planned.jsonl and published.jsonl
MANIFEST_BYTES, MANIFEST_NODE_BYTES = 6_000, 900
OTHER_FILES, SLACK_BYTES = 8, 2_048  # half of a file's last block is empty
METRICS_BYTES, METRICS_COPY_BYTES = 165_000, 150  # Parquet; a copy is a message on one overlay link
REPORT_BYTES, REPORT_DELIVERY_BYTES, MOST_REPORT_BYTES = 150_000, 550, 4_000_000
TRACE_BYTES, TRACE_COPY_BYTES = 30_000, 40  # Parquet
METRICS_CONTROL, TRACE_CONTROL = 0.07, 0.08  # of the bytes that brokers exchange, as captured

MARGIN = 2.0  # a run may take so many times its estimate


@dataclass(frozen=True, slots=True)
class DiskEstimate:
    """Bytes of a run's folder when it is analysed and has a report."""

    captures: int  # of a simulated run: its traces
    logs: int  # of nodes, and the other records of the run
    results: int  # metrics and report

    @property
    def total(self) -> int:
        return self.captures + self.logs + self.results

    def to_json(self) -> dict[str, int]:
        """The estimate for programs, in bytes."""
        return {
            "captures_bytes": self.captures,
            "logs_bytes": self.logs,
            "results_bytes": self.results,
            "total_bytes": self.total,
        }

    def times(self, runs: int) -> "DiskEstimate":
        """The estimate for so many runs."""
        return DiskEstimate(self.captures * runs, self.logs * runs, self.results * runs)


def mean_of(estimates: Sequence[DiskEstimate]) -> DiskEstimate:
    """The mean of several estimates."""
    count = len(estimates)
    return DiskEstimate(
        sum(each.captures for each in estimates) // count,
        sum(each.logs for each in estimates) // count,
        sum(each.results for each in estimates) // count,
    )


@dataclass(frozen=True, slots=True)
class _Flow:
    """Publications that are alike, and their receivers."""

    count: int
    origin: Node
    priority: int
    message_bytes: int
    receivers: tuple[Node, ...]


def estimate_disk(topology: Topology, *, simulated: bool = False) -> DiskEstimate:
    """The estimate for one run: all of its scenario, with `settle` used up; what external nodes send is not in it."""
    flows = _flows(topology)
    links = _Links(topology)
    copies = sum(links.carry(flow) for flow in flows)
    links.connect()
    links.load()
    lasts_s = topology.scenario.lasts_s + topology.scenario.settle_s
    published = sum(flow.count for flow in flows)
    deliveries = sum(flow.count * len(flow.receivers) for flow in flows)
    captures = links.captured(lasts_s) if topology.capture.enabled else 0
    if simulated:
        captures = round(TRACE_BYTES + TRACE_COPY_BYTES * copies + TRACE_CONTROL * links.control)
    nodes = len(topology.nodes)
    logs = (
        nodes * (NODE_LOG_BYTES + MANIFEST_NODE_BYTES)
        + MANIFEST_BYTES
        + LINE_BYTES * (published + deliveries)
        + (PLANNED_BYTES + PUBLISHED_BYTES) * published
        + (0 if simulated else lasts_s * MACHINE_BYTES_PER_S)
        + (nodes + OTHER_FILES) * SLACK_BYTES
    )
    report = min(MOST_REPORT_BYTES, REPORT_BYTES + REPORT_DELIVERY_BYTES * deliveries)
    return DiskEstimate(
        captures,
        round(logs),
        round(
            METRICS_BYTES + METRICS_COPY_BYTES * copies + METRICS_CONTROL * links.control + report
        ),
    )


def _flows(topology: Topology) -> list[_Flow]:
    """All publications, also those that triggers may add; alike ones together."""
    triggered = (
        publication
        for index, event in enumerate(topology.scenario.publish)
        if event.when is not None
        for publication in publications_of(topology, index, event)
    )
    alike = Counter(
        (each.node, each.topic, each.priority, each.size, each.place)
        for each in (*compile_timeline(topology), *triggered)
    )
    found: dict[tuple[str, int, tuple[int, ...]], tuple[Node, ...]] = {}
    flows = []
    for (name, topic, priority, size, place), count in alike.items():
        key = topic, priority, place
        if key not in found:
            found[key] = tuple(topology.node(one) for one in topology.receivers(*key))
        message = HEADER_SIZE + len(topic.encode()) + COORDINATE_BYTES * len(place) + size
        flows.append(_Flow(count, topology.node(name), priority, message, found[key]))
    return flows


class _Links:
    """Bytes by captured link, up (from its node) and down."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._up: dict[str, float] = defaultdict(float)
        self._down: dict[str, float] = defaultdict(float)
        self._brokers = [node.name for node in topology.of_kind(NodeKind.BROKER)]
        self._paths = {name: self._path(topology.node(name)) for name in self._brokers}
        self.control = 0.0  # bytes by which brokers keep up their overlay, on all links
        overlay = topology.overlay
        self._parameters = dict(overlay.parameters)
        self._settings = reliability_settings(overlay.method, self._parameters)
        self._levels = log2(max(1, len(self._brokers)))  # of a Skip Graph of so many brokers
        self._is_star = overlay.method == STAR or len(self._brokers) < 2
        self._spreads = overlay.method == ZORDER_MAP

    def carry(self, flow: _Flow) -> float:
        """Add the publications of a flow; return the copies on all overlay links."""
        on_link = on_the_wire(flow.message_bytes)
        acknowledged = (
            on_the_wire(ACK_MESSAGE_BYTES) if self._settings.custody(flow.priority) else 0.0
        )
        first = self._broker_of(flow.origin)
        self._cross(self._path(flow.origin), self._paths[first], flow.count * on_link)
        self._cross(self._paths[first], self._path(flow.origin), flow.count * acknowledged)
        for receiver in flow.receivers:
            broker = self._paths[self._broker_of(receiver)]
            self._cross(broker, self._path(receiver), flow.count * on_link)
            self._cross(self._path(receiver), broker, flow.count * acknowledged)
        between = flow.count * self._forwards(first, flow.receivers)
        for name in self._brokers if between else ():
            share = between * (on_link + acknowledged) / len(self._brokers)
            self._cross(self._paths[name], self._paths[name], share)
        return flow.count * (1 + len(flow.receivers)) + between

    def _cross(self, senders: Iterable[str], receivers: Iterable[str], count: float) -> None:
        for name in senders:
            self._up[name] += count
        for name in receivers:
            self._down[name] += count

    def _path(self, node: Node) -> list[str]:
        """The links between a node and the core."""
        return [node.name, *(router.name for router in self._topology.routers(node))]

    def _broker_of(self, node: Node) -> str:
        return node.brokers[0] if node.brokers else (self._brokers or [node.name])[0]

    def _forwards(self, first: str, receivers: tuple[Node, ...]) -> float:
        """Copies of one publication between brokers."""
        if self._is_star or not receivers:
            return 0.0
        if self._spreads:  # areas, not places, decide which broker has a subscription
            targets = min(len(receivers), len(self._brokers) - 1)
            return targets * (1 + self._levels / 2)
        targets = len({self._broker_of(node) for node in receivers} - {first})
        return targets + self._levels / 2 if targets else 0.0  # relays, then one copy a target

    def connect(self) -> None:
        """Add connections, heartbeats, and what brokers tell each other."""
        scenario, beat_s = self._topology.scenario, self._settings.heartbeat_s
        lasts_s = scenario.lasts_s + scenario.settle_s
        clients = Counter(
            self._broker_of(node) for node in self._topology.nodes if node.kind in EDGE
        )
        for node in self._topology.nodes:
            if node.kind not in EDGE:
                continue
            broker = self._broker_of(node)
            cost = float(CONNECTION_BYTES)
            if beat_s:
                budget_s = clients[broker] * EXCHANGE_COST / self._settings.heartbeat_budget
                exchange = EXCHANGE_COST + 3 * RECORD_BYTES
                cost += lasts_s / max(beat_s, budget_s) * exchange
            self._cross(self._path(node), self._paths[broker], cost / 2)
            self._cross(self._paths[broker], self._path(node), cost / 2)
        if self._is_star:
            return
        upkeep = UPKEEP_BYTES_PER_S * self._levels
        if self._spreads:
            upkeep += ZORDER_BYTES_PER_S / float(self._parameters.get("period_s", 1.0))
        for name in self._brokers:
            cost = JOIN_BYTES * self._levels + lasts_s * upkeep
            self._cross(self._paths[name], self._paths[name], cost / 2)
            self.control += cost * len(self._paths[name])

    def load(self) -> None:
        """Add background traffic."""
        scenario = self._topology.scenario
        for action in scenario.actions:
            if action.kind is not ActionKind.LOAD:
                continue
            details = dict(action.details)
            left_s = max(0.0, scenario.duration_s - (0.0 if action.when else action.at_s))
            lasts_s = min(left_s, action.for_s or left_s) / scenario.speed
            datagram = details["size"] + DATAGRAM_HEADERS
            total = details["rate_bps"] / 8 * lasts_s * (1 + RECORD_BYTES / datagram)
            for name in action.nodes:
                to = [self._topology.node(details["to"])] if details.get("to") else []
                receivers = [link for node in to for link in self._path(node)]
                self._cross(self._path(self._topology.node(name)), receivers, total)

    def captured(self, lasts_s: float) -> int:
        """Bytes of all captures: no link carries more than its rate, and no record has more than the snap length."""
        total = 0.0
        for node in self._topology.nodes:
            profile = self._topology.profile(node.profile)
            total += _at_most(self._up[node.name], profile.up, lasts_s)
            total += _at_most(self._down[node.name], profile.down, lasts_s)
        longest = PACKET_HEADERS + 1_448
        cut = min(1.0, (self._topology.capture.snaplen + RECORD_BYTES) / (longest + RECORD_BYTES))
        return round(total * cut) + len(self._topology.nodes) * SLACK_BYTES


def _at_most(count: float, shape: Shape, lasts_s: float) -> float:
    if shape.rate_bps is None:
        return count
    per_packet = 1 + RECORD_BYTES / (PACKET_HEADERS + 1_448)
    return min(count, shape.rate_bps / 8 * lasts_s * per_packet + CONNECTION_BYTES)


def on_the_wire(message_bytes: int, segment_bytes: int = 1_448) -> float:
    """Bytes of a pcap file for a message on one link, with TCP's acknowledgements."""
    framed = message_bytes + FRAME_BYTES
    packets = ceil(framed / segment_bytes)
    return framed + packets * (1 + ACKS_PER_PACKET) * (PACKET_HEADERS + RECORD_BYTES)
