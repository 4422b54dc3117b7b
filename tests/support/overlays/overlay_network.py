"""Overlay nodes in one process and virtual time: messages late, out of order or lost, nodes crashed, all by a seed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.overlay.topics import base
from nodes.protocol.skipgraph_messages import VECTOR_BITS

SENDS = (base.Send, graph.Send)  # what a topic node asks for, and what a bare graph node does
RESTLESS_S = 1.0  # idle period of nodes that check their neighbours all the time
STORM = 1_000_000  # messages: more than any test sends, unless nodes answer each other without end


@dataclass
class OverlayNetwork:
    """Nodes by number; each message takes between `fastest` and `slowest` seconds, or is lost."""

    seed: int
    fastest: float = 0.01
    slowest: float = 0.05
    loss: float = 0.0
    now: float = 0.0
    nodes: dict[int, Any] = field(default_factory=dict)
    reported: list[tuple[int, Any]] = field(default_factory=list)  # node, action that sends nothing
    passed: list[tuple[int, int, Any]] = field(default_factory=list)  # sender, receiver, message
    holds: Callable[[Any], bool] = lambda message: False  # messages that wait for `release`
    listen: Callable[[int, Any], None] = lambda node, action: None
    # Called for a message to a node that does not run: sender, receiver, message.
    in_vain: Callable[[int, int, Any], None] = lambda sender, receiver, message: None

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self._to_do: list[tuple[float, int, int, tuple[int, Any] | None]] = []
        self._planned: dict[int, float] = {}
        self._held: list[tuple[int, int, Any]] = []
        self._count = 0

    def act(self, number: int, actions: Iterable[Any]) -> None:
        """Carry out the actions of a node."""
        for action in actions:
            if isinstance(action, SENDS):
                self.send(number, action.node, action.message)
            else:
                self.reported.append((number, action))
                self.listen(number, action)
        self._plan(number)

    def send(self, sender: int, receiver: int, message: Any) -> None:
        """Let a node send a message to another."""
        self.passed.append((sender, receiver, message))
        if self.random.random() < self.loss:
            return
        if self.holds(message):
            self._held.append((sender, receiver, message))
            return
        at = self.now + self.random.uniform(self.fastest, self.slowest)
        self._push(at, receiver, (sender, message))

    def release(self) -> None:
        """Deliver the held messages now."""
        self.holds = lambda message: False
        for sender, receiver, message in self._held:
            self._push(self.now, receiver, (sender, message))
        self._held.clear()

    def crash(self, number: int) -> None:
        """Stop the node without notice to its peers."""
        del self.nodes[number]

    def run(self, seconds: float) -> None:
        """Let this much time pass, and process all events in it."""
        end = self.now + seconds
        while self._to_do and self._to_do[0][0] <= end:
            moment, _, number, arrival = heappop(self._to_do)
            node = self.nodes.get(number)
            self.now = max(self.now, moment)
            assert len(self.passed) < STORM, "a storm of messages"
            if node is None:
                if arrival is not None:
                    self.in_vain(arrival[0], number, arrival[1])
            elif arrival is not None:
                self.act(number, node.on_message(*arrival, self.now))
            elif node.next_deadline() == moment:
                self.act(number, node.on_deadline(self.now))
        self.now = end

    def _plan(self, number: int) -> None:
        due = self.nodes[number].next_deadline() if number in self.nodes else None
        if due is not None and self._planned.get(number) != due:
            self._planned[number] = due
            self._push(due, number, None)

    def _push(self, moment: float, number: int, arrival: tuple[int, Any] | None) -> None:
        self._count += 1
        heappush(self._to_do, (moment, self._count, number, arrival))


def graph_node(
    network: OverlayNetwork,
    number: int,
    introducers: Iterable[int],
    vector: int | None = None,
    idle_period_s: float = RESTLESS_S,
    watched: bool = False,
) -> SkipGraphNode:
    """A new node of a bare Skip Graph in the network; it has no key yet."""
    if vector is None:
        vector = Random(f"{network.seed} {number}").getrandbits(VECTOR_BITS)
    node = SkipGraphNode(
        number,
        vector,
        tuple(introducers),
        Random(f"{network.seed} {number} {network.now}"),
        incarnation=int(network.now * 1000),
        idle_period_s=idle_period_s,
        watched=watched,
    )
    network.nodes[number] = node
    return node


def report_death(network: OverlayNetwork, number: int, dead: int) -> None:
    """Report a death to a node, as its shell does when it has found out."""
    if number in network.nodes:
        network.act(number, network.nodes[number].on_peer_lost(dead, network.now))


def expected_links(nodes: Iterable[SkipGraphNode]) -> dict[bytes, list[tuple[Any, Any]]]:
    """By sorting: for each key, left and right neighbour (keys) in each level, until its node is alone there."""
    owners = {key: node for node in nodes for key in node.own_keys()}
    vectors = {key: peer.me.vector for key, node in owners.items() if (peer := node.peer(key))}
    links: dict[bytes, list[tuple[Any, Any]]] = {key: [] for key in owners}
    for key, found in links.items():
        for level in range(VECTOR_BITS + 1):
            alike = sorted(
                other
                for other in owners
                if (vectors[other] ^ vectors[key]) >> (VECTOR_BITS - level) == 0
            )
            place = alike.index(key)
            left = alike[place - 1] if place else None
            right = alike[place + 1] if place + 1 < len(alike) else None
            found.append((left, right))
            if all(owners[other] is owners[key] for other in alike):
                break
    return links


def all_settled(nodes: Iterable[SkipGraphNode]) -> bool:
    """Whether each key has found its place."""
    peers = [node.peer(key) for node in nodes for key in node.own_keys()]
    return all(peer is not None and peer.settled for peer in peers)


def actual_links(nodes: Iterable[SkipGraphNode]) -> dict[bytes, list[tuple[Any, Any]]]:
    """The links that the nodes have."""
    links = {}
    for node in nodes:
        for key in node.own_keys():
            peer = node.peer(key)
            assert peer is not None
            assert peer.settled, (key, peer)
            sides = [
                (peer.neighbour(level, False), peer.neighbour(level, True))
                for level in range(len(peer.levels) + 1)
            ]
            links[key] = [(a and a.key, b and b.key) for a, b in sides]
    return links
