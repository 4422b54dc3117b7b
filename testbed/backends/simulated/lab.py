"""A topology as a lab in virtual time: lines, nodes, and the ways between them. Pure: it reads and writes nothing."""

from collections.abc import Mapping
from itertools import groupby

from nodes.runtime.config import NodeConfig, parse
from nodes.runtime.publisher import publication
from testbed.backends.node_files import node_config
from testbed.backends.simulated.broker import SimulatedBroker
from testbed.backends.simulated.connection import Connection, Side
from testbed.backends.simulated.edge import SimulatedEdge
from testbed.backends.simulated.endpoint import Endpoint
from testbed.backends.simulated.line import Line
from testbed.backends.simulated.loop import Loop
from testbed.backends.simulated.node import SimulatedNode
from testbed.backends.simulated.packets import Flow
from testbed.backends.simulated.watching import Watch
from testbed.links.changes import BOTH, DOWN, UP, Link, as_filed
from testbed.links.relay.model import LinkModel
from testbed.links.seeds import direction_random
from testbed.links.sizes import queue_bytes
from testbed.places import RunPlace
from testbed.scenario import Action
from testbed.topology.model import Node, NodeKind, Topology


class SimulatedLab:
    """Everything that a topology asks for, at the beginning of its time."""

    def __init__(self, topology: Topology, run: RunPlace, service_ns: int) -> None:
        self.topology = topology
        self.loop = Loop()
        self.watches = [
            Watch(node.name, direction) for node in topology.nodes for direction in BOTH
        ]
        self.lines = {
            (watch.link, watch.direction): self._line(watch, as_filed(topology)[watch.link])
            for watch in self.watches
        }
        self.nodes: dict[str, SimulatedNode] = {
            node.name: self._node(node, run, service_ns) for node in topology.ours
        }

    def change_links(self, links: Mapping[str, Link]) -> None:
        """Shapes and cuts of these links from now on."""
        for name, link in links.items():
            mtu = self._mtu(self.topology.node(name))
            for direction in BOTH:
                now, line = link.line(direction), self.lines[name, direction]
                line.model.reshape(now.shape, queue_bytes(now.shape, mtu))
                line.set_cut(now.cut)

    def go(self) -> None:
        """All nodes begin."""
        for node in self.nodes.values():
            node.go()

    def play(self, timeline: tuple[Action, ...], start: int) -> None:
        """Every publisher gets its part."""
        by_node = sorted(timeline, key=lambda action: action.node)  # each part stays in order
        for name, part in groupby(by_node, key=lambda action: action.node):
            publisher = self.nodes[name]
            assert isinstance(publisher, SimulatedEdge)  # only sensors publish
            publisher.play(
                [
                    (start + action.at_ns, publication(action.topic, action.priority, action.size))
                    for action in part
                ]
            )

    def not_ready(self) -> list[str]:
        """Who is not connected yet."""
        return [name for name, node in self.nodes.items() if not node.ready]

    def stop(self) -> None:
        """The time ends."""
        for node in self.nodes.values():
            node.stop()

    def _line(self, watch: Watch, link: Link) -> Line:
        shape = link.line(watch.direction).shape
        room = queue_bytes(shape, self._mtu(self.topology.node(watch.link)))
        chance = direction_random(self.topology.seed, watch.link, watch.direction)
        return Line(self.loop, LinkModel(shape, room, chance), watch)

    def _node(self, node: Node, run: RunPlace, service_ns: int) -> SimulatedNode:
        config: NodeConfig = parse(
            node_config(self.topology, node, run, "none", "none", secret="simulated")
        )
        if node.kind is NodeKind.BROKER:
            return SimulatedBroker(self.loop, config, service_ns)
        return SimulatedEdge(self.loop, config, service_ns, self._connect)

    def _connect(self, client: SimulatedEdge, response_size: int) -> Connection:
        near = self.topology.node(client.config.name)
        far = self.topology.node(client.config.brokers[0].name)
        broker = self.nodes[far.name]
        assert isinstance(broker, SimulatedBroker)
        there = Flow(near.name, far.name, self._route(near, far))
        back = Flow(far.name, near.name, self._route(far, near))
        mtu = min(self._mtu(node) for node in self._on_the_way(near, far))
        connection = Connection(
            Side(client, Endpoint(self.loop, there, back, mtu, client=True), there),
            Side(broker, Endpoint(self.loop, back, there, mtu, client=False), back),
        )
        broker.receive_guest(connection, response_size)
        return connection

    def _route(self, near: Node, far: Node) -> tuple[Line, ...]:
        """Up to the core, or to the router that both are behind, and down again."""
        if near.router is not None and near.router == far.router:
            return self.lines[near.name, UP], self.lines[far.name, DOWN]
        up = [near.name, *([near.router] if near.router else [])]
        down = [*([far.router] if far.router else []), far.name]
        return (
            *(self.lines[name, UP] for name in up),
            *(self.lines[name, DOWN] for name in down),
        )

    def _on_the_way(self, near: Node, far: Node) -> list[Node]:
        routers = {near.router, far.router} - {None} if near.router != far.router else set()
        return [near, far, *(self.topology.node(name) for name in sorted(filter(None, routers)))]

    def _mtu(self, node: Node) -> int:
        return self.topology.profile(node.profile).mtu
