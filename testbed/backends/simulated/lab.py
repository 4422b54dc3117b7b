"""A topology as a lab in virtual time: links, nodes, and the routes between them. Pure: it reads and writes nothing."""

from collections import Counter
from collections.abc import Callable, Container, Mapping
from itertools import groupby

from nodes.runtime.config import NodeConfig, parse
from nodes.runtime.publisher import publication
from testbed.backends.common.names import SIMULATED
from testbed.backends.common.node_config import node_config
from testbed.backends.simulated.broker import SimulatedBroker
from testbed.backends.simulated.capture import DirectionCapture
from testbed.backends.simulated.connection import Side
from testbed.backends.simulated.edge import Disk, SimulatedEdge
from testbed.backends.simulated.link_layer import (
    DATAGRAM_BYTES,
    Flow,
    Kind,
    LinkDirection,
    Packet,
    Partitions,
)
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.node import SimulatedLog, SimulatedNode
from testbed.backends.simulated.tcp import Endpoint
from testbed.links.changes import BOTH, DOWN, UP, LinkState, apply_order, configured_links
from testbed.links.model import LinkModel, direction_random, queue_bytes
from testbed.links.scenario_orders import link_orders
from testbed.places import RunPlace
from testbed.scenario import Publication, TimedAction
from testbed.scenario.model import NUMBER
from testbed.topology.model import ActionKind, CongestionControl, Node, NodeKind, Topology

# Background traffic in virtual time: datagrams at a steady rate, which cross the links and have no receiver.


class BackgroundTraffic:
    """Datagrams from one node to another until it is ended."""

    def __init__(self, loop: Loop, flow: Flow, rate_bps: float, size: int) -> None:
        self._loop = loop
        self._flow = flow
        self._size = size
        self._gap_ns = (size + DATAGRAM_BYTES) * 8 / rate_bps * SECOND
        self._began = loop.now
        self._sent = 0
        self._ended = False
        self._send(None)

    def end(self) -> None:
        """Send no more."""
        self._ended = True

    def _send(self, _: None) -> None:
        if self._ended:
            return
        self._flow.send(Packet(self._flow, Kind.LOAD, length=self._size))
        self._sent += 1
        self._loop.at(self._began + round(self._sent * self._gap_ns), self._send, None)


MakeFlow = Callable[[str, str], Flow]


class BackgroundTraffics:
    """All background traffic that is active."""

    def __init__(self, loop: Loop, make_flow: MakeFlow) -> None:
        self._loop = loop
        self._make_flow = make_flow
        self._on: dict[int, list[BackgroundTraffic]] = {}

    def begin(
        self, number: int, nodes: tuple[str, ...], to: str, rate_bps: float, size: int
    ) -> None:
        """Begin background traffic from each of these nodes."""
        self._on[number] = [
            BackgroundTraffic(self._loop, self._make_flow(name, to), rate_bps, size)
            for name in nodes
        ]

    def end(self, number: int) -> None:
        """End the traffic of this number."""
        for load in self._on.pop(number, []):
            load.end()


class SimulatedLab:
    """The links and nodes of a topology in virtual time; TCP is Cubic where the topology names nothing else."""

    def __init__(self, topology: Topology, run: RunPlace, service_ns: int) -> None:
        self.topology = topology
        self.loop = Loop()
        self.captures = [
            DirectionCapture(node.name, direction) for node in topology.nodes for direction in BOTH
        ]
        self.directions = {
            (watch.link, watch.direction): self._make_direction(
                watch, configured_links(topology)[watch.link]
            )
            for watch in self.captures
        }
        self.links = configured_links(topology)
        self.partitions = Partitions()
        self.loads = BackgroundTraffics(
            self.loop, lambda near, far: self._flow(topology.node(near), topology.node(far))
        )
        self._run, self._service_ns = run, service_ns
        self._logs = {node.name: SimulatedLog(self.loop, node.name) for node in topology.ours}
        self._disks = {node.name: Disk() for node in topology.ours}
        self._received_before: Counter[str] = Counter()  # by earlier processes of the node
        self._on_received: dict[str, Callable[[], None]] = {}
        self.nodes: dict[str, SimulatedNode] = {
            node.name: self._node(node) for node in topology.ours
        }

    def received(self, name: str) -> int:
        """How many messages were handed to the application there, also before the node was started again."""
        return self._received_before[name] + self.nodes[name].received

    def watch(self, name: str, on_received: Callable[[], None]) -> None:
        """Call `on_received` for each message that is handed to the application there."""
        self._on_received[name] = self.nodes[name].on_received = on_received

    # Faults and changes

    def apply(self, action: TimedAction) -> None:
        """Apply a fault or its repair now."""
        match action.kind:
            case ActionKind.CRASH:
                for name in action.nodes:
                    self.nodes[name].crash()
            case ActionKind.STOP:
                for name in action.nodes:
                    self.nodes[name].terminate()
            case ActionKind.START:
                for name in action.nodes:
                    self._restart(name)
            case ActionKind.PARTITION:
                self.partitions.partition(action.details[NUMBER], action.details["sides"])
            case ActionKind.HEAL:
                self.partitions.heal(action.details[NUMBER])
            case ActionKind.LOAD:
                rate_bps, size = action.details["rate_bps"], action.details["size"]
                number, to = action.details[NUMBER], action.details["to"]
                self.loads.begin(number, action.nodes, to, rate_bps, size)
            case ActionKind.UNLOAD:
                self.loads.end(action.details[NUMBER])
            case _ if action.kind.of_links:
                self._change(action)

    def _restart(self, name: str) -> None:
        old = self.nodes[name]
        if old.alive:
            old.end()  # it has not finished leaving
        self._received_before[name] += old.received
        node = self.nodes[name] = self._node(self.topology.node(name))
        node.on_received = self._on_received.get(name, node.on_received)
        node.go()

    def _change(self, action: TimedAction) -> None:
        configured = configured_links(self.topology)
        for order, names in link_orders(action, self.topology):
            now = {name: self.links[name] for name in names}
            self.change_links(apply_order(order, now, configured, SIMULATED))

    def change_links(self, links: Mapping[str, LinkState]) -> None:
        """Set shapes and cuts of these links."""
        for name, link in links.items():
            self.links[name] = link
            mtu = self._mtu(self.topology.node(name))
            for direction in BOTH:
                now, simulated = link.direction_state(direction), self.directions[name, direction]
                simulated.model.reshape(now.shape, queue_bytes(now.shape, mtu))
                simulated.set_cut(now.cut)

    def go(self) -> None:
        """Start all nodes."""
        for node in self.nodes.values():
            node.go()

    def play(self, timeline: tuple[Publication, ...], start: int, *, more: bool = False) -> None:
        """Every publisher gets its part; `more`: besides what it has already."""
        by_node = sorted(timeline, key=lambda planned: planned.node)  # each part stays in order
        for name, part in groupby(by_node, key=lambda planned: planned.node):
            publisher = self.nodes[name]
            assert isinstance(publisher, SimulatedEdge)  # only sensors publish
            play = publisher.play_more if more else publisher.play
            play(
                [
                    (
                        start + planned.at_ns,
                        publication(planned.topic, planned.priority, planned.size, planned.place),
                    )
                    for planned in part
                ]
            )

    def not_ready(self) -> list[str]:
        """The nodes that are not connected yet."""
        return [name for name, node in self.nodes.items() if not node.ready]

    def under_way(self, without: Container[str]) -> tuple[int, int]:
        """Queued messages of all other nodes, and the most bytes on one link that its peer has not acknowledged."""
        nodes = [node for name, node in self.nodes.items() if node.alive and name not in without]
        links = [link for node in nodes for link in node.links.values()]
        queued = sum(link.scheduler.queued.messages for link in links)
        return queued, max((link.under_way for link in links), default=0)

    def stop(self) -> None:
        """End the simulation."""
        for node in self.nodes.values():
            node.stop()

    def _make_direction(self, watch: DirectionCapture, link: LinkState) -> LinkDirection:
        shape = link.direction_state(watch.direction).shape
        limit_bytes = queue_bytes(shape, self._mtu(self.topology.node(watch.link)))
        chance = direction_random(self.topology.seed, watch.link, watch.direction)
        return LinkDirection(self.loop, LinkModel(shape, limit_bytes, chance), watch)

    def _node(self, node: Node) -> SimulatedNode:
        config: NodeConfig = parse(
            node_config(self.topology, node, self._run, "none", "none", secret="simulated")
        )

        def connect(broker: str, response_size: int) -> Side:
            return self._connect(made, broker, response_size)

        log = self._logs[node.name]
        made: SimulatedNode
        if node.kind is NodeKind.BROKER:
            made = SimulatedBroker(log, self.loop, config, self._service_ns, connect)
        else:
            disk = self._disks[node.name]
            made = SimulatedEdge(log, self.loop, config, self._service_ns, connect, disk)
        return made

    def _connect(self, client: SimulatedNode, broker: str, response_size: int) -> Side:
        near, far = self.topology.node(client.config.name), self.topology.node(broker)
        there, back = self._flow(near, far), self._flow(far, near)
        up, down, _ = self._links_between(near, far)
        mtu = min(self._mtu(node) for node in (*up, *down))
        tcp = self.topology.tcp or CongestionControl.CUBIC
        server = Endpoint(self.loop, back, there, mtu, client=False, tcp=tcp)
        met: list[Side] = []

        def admits() -> bool:
            """The node that listens there when the first packet comes takes the connection."""
            host = self.nodes[far.name]
            assert isinstance(host, SimulatedBroker)
            if not met and host.listens:
                met.append(Side(host, server, back))
                host.accept(met[0], response_size)
            return bool(met)

        server.admits = admits
        near_end = Endpoint(self.loop, there, back, mtu, client=True, tcp=tcp)
        return Side(client, near_end, there)

    def _flow(self, near: Node, far: Node) -> Flow:
        up, down, in_core = self._links_between(near, far)
        route = (
            *(self.directions[node.name, UP] for node in up),
            *(self.directions[node.name, DOWN] for node in reversed(down)),
        )
        return Flow(near.name, far.name, route, self.partitions, len(up) if in_core else -1)

    def _links_between(self, near: Node, far: Node) -> tuple[list[Node], list[Node], bool]:
        """The nodes whose links a packet crosses up and down, each from its end; whether they meet in the core.

        Links above the nearest router of both are not crossed.
        """
        up, down = self.topology.routers(near), self.topology.routers(far)
        shared = {router.name for router in up} & {router.name for router in down}
        below_up = [near, *(router for router in up if router.name not in shared)]
        below_down = [far, *(router for router in down if router.name not in shared)]
        return below_up, below_down, not shared

    def _mtu(self, node: Node) -> int:
        return self.topology.profile(node.profile).mtu
