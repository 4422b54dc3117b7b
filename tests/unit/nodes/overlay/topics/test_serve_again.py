"""Nodes die before they forward a publication: their senders serve the other subscribers by another path."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.topics.base import Asked
from nodes.protocol.scribe_messages import Toward, routing_section
from nodes.protocol.skipgraph_messages import vector_of
from nodes.protocol.wire import CUSTODY, Kind, Message
from support.overlays.topic_network import TopicNetwork, parameter_sets

TOPIC = "slope"
PUBLISHERS, SUBSCRIBERS = range(3), range(3, 17)
BOTH = 16  # publishes and subscribes
SMALL = {"atm-tbps": {"table_size": 6}, "patm-tbps": {"table_size": 6}}  # other nodes must forward
ONE_WAY = {"collection"}  # publications with custody go as in SG-TBPS
METHODS: list[tuple[str, dict[str, Any]]] = [
    (name, {**each, **SMALL.get(name, {})})
    for name in TOPIC_METHODS
    for each in parameter_sets(name)[: 1 if name in ONE_WAY else None]
]
METHODS.append(("patm-tbps", {"beyond": "psg", "table_size": 6}))
methods = pytest.mark.parametrize(("method", "parameters"), METHODS)
BY_PRIORITY = {
    "psg-tbps",
    "patm-tbps",
    "fan-tbps",
}  # all others use the same paths at all levels
REPAIR_S = 40.0


class Shells:
    """The shells of a network: report unreachable nodes as dead, and serve again the publications sent to them."""

    def __init__(self, network: TopicNetwork) -> None:
        self._network = network
        network.in_vain = self._in_vain
        self.served_again = 0

    def _in_vain(self, sender: int, receiver: int, message: Message) -> None:
        network = self._network
        if sender not in network.nodes:
            return
        node = network.nodes[sender]
        network.act(sender, node.on_peer_lost(receiver, network.now))
        if message.kind is Kind.PUBLISH:
            self.served_again += 1
            network.act(sender, node.serve_again(message, network.now))


def grown(method: str, parameters: dict[str, Any], seed: int) -> TopicNetwork:
    """One topic, quiet; every node knows three introducers."""
    network = TopicNetwork(method, seed, parameters)
    for number in (*PUBLISHERS, *SUBSCRIBERS):
        network.start(number, range(3))
        if number in PUBLISHERS or number == BOTH:
            network.advertise(number, TOPIC)
        if number in SUBSCRIBERS:
            network.subscribe(number, TOPIC)
        network.run(0.5)
    network.run(12)
    return network


def helpers(network: TopicNetwork, publisher: int, priority: int) -> list[int]:
    """Nodes that forward a publication, except its publisher; the publisher itself sends to the first of them."""
    before = len(network.publications())
    network.publish(publisher, TOPIC, priority, CUSTODY)
    network.run(3)
    sent = network.publications()[before:]
    forwarders = sorted({sender for sender, _, _ in sent} - {publisher})
    near = {receiver for sender, receiver, _ in sent if sender == publisher}
    return sorted(forwarders, key=lambda node: node not in near)


@pytest.mark.parametrize(
    ("method", "parameters", "priority"),
    [
        (method, parameters, priority)
        for method, parameters in METHODS
        for priority in ((1, 5) if method in BY_PRIORITY else (5,))
    ],
)
def test_all_other_subscribers_get_a_publication_whichever_forwarder_dies(
    method: str, parameters: dict[str, Any], priority: int
) -> None:
    publisher = 1
    example = grown(method, parameters, 3)
    forwarders = helpers(example, publisher, priority)
    assert forwarders, "no node forwards it"
    for victim in forwarders[:: max(1, len(forwarders) // 2)]:
        network = grown(method, parameters, 3)
        Shells(network)
        network.crash(victim)
        identity = network.publish(publisher, TOPIC, priority, CUSTODY)
        network.run(REPAIR_S)
        assert network.receivers(identity) == {node for node, _ in network.subscribed}, victim
        assert set(network.delivered.values()) == {1}
        assert not any(node.holds(identity) for node in network.nodes.values())


@pytest.mark.parametrize("way", ["flood", "split"])
def test_a_subscriber_behind_a_dead_node_is_reached_when_the_ring_is_repaired(way: str) -> None:
    network = TopicNetwork("sg-tbps", 1, {"multicast": way})
    vectors = {0: "0", 1: "10", 2: "11"}  # 0 has no link to 2
    for number, bits in vectors.items():
        network.start(number, [0], vector_of(bits))
        (network.subscribe if number else network.advertise)(number, TOPIC)
        network.run(2)
    network.run(10)
    shells = Shells(network)
    network.crash(1)
    identity = network.publish(0, TOPIC, flags=CUSTODY)
    network.run(0.5)
    assert shells.served_again == 1
    assert network.nodes[0].holds(identity), "the publisher knows that it is not delivered yet"
    network.run(REPAIR_S)
    assert network.receivers(identity) == {2}
    assert not network.nodes[0].holds(identity)


@given(
    seed=st.integers(0, 2**32),
    method=st.sampled_from(METHODS),
    victims=st.sets(st.sampled_from([*PUBLISHERS[1:], *SUBSCRIBERS]), min_size=1, max_size=4),
    after_s=st.floats(0, 0.3),
)
@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.too_slow])
def test_all_other_subscribers_get_a_publication_while_several_nodes_die(
    seed: int, method: tuple[str, dict[str, Any]], victims: set[int], after_s: float
) -> None:
    network = grown(*method, seed)
    Shells(network)
    identity = network.publish(0, TOPIC, 5, CUSTODY)
    network.run(after_s)
    for victim in victims:
        network.crash(victim)
    network.run(2 * REPAIR_S)
    assert network.receivers(identity) >= {node for node, _ in network.subscribed}
    assert set(network.delivered.values()) <= {1}
    assert not any(node.holds(identity) for node in network.nodes.values())


@methods
def test_a_question_reaches_all_publishers(method: str, parameters: dict[str, Any]) -> None:
    network = grown(method, parameters, 5)
    network.reported.clear()
    network.act(7, network.nodes[7].ask(TOPIC, b"what I have", network.now))
    network.run(3)
    asked = [(node, action) for node, action in network.reported if isinstance(action, Asked)]
    assert {action for _, action in asked} == {Asked(7, TOPIC, b"what I have")}
    receivers = {node for node, _ in asked}
    assert len(receivers) == len(asked)
    assert receivers >= {*PUBLISHERS, BOTH}
    others = 1 if method == "scribe" else 0  # the root
    assert len(receivers) <= len(PUBLISHERS) + 1 + others


@methods
def test_a_node_that_leaves_in_order_costs_no_subscriber_a_publication(
    method: str, parameters: dict[str, Any]
) -> None:
    network = grown(method, parameters, 6)
    for number in (2, 5, BOTH):
        node = network.nodes[number]
        assert not node.left
        network.subscribed.discard((number, TOPIC))
        network.act(number, node.leave(network.now))
    network.run(3)
    for number in (2, 5, BOTH):
        assert network.nodes[number].left
        network.crash(number)
    network.run(20 if method == "scribe" else 0)  # trees are refreshed
    identity = network.publish(1, TOPIC)
    network.run(3)
    assert network.receivers(identity) == {node for node, _ in network.subscribed}


def test_a_publisher_that_is_left_as_the_root_of_its_topic_serves_itself() -> None:
    network = TopicNetwork("scribe", 1, {})
    for number in range(2):
        network.start(number, [0])
        network.run(1)
    network.run(25)
    for number in range(2):
        network.advertise(number, TOPIC)
        network.subscribe(number, TOPIC)
    network.run(10)
    network.publish(0, TOPIC, 5, CUSTODY)
    network.run(1)
    upward = [
        one for one in network.publications() if routing_section(one[2]).toward is Toward.ROOT
    ]
    root = upward[0][1] if upward else 0
    Shells(network)
    network.crash(root)
    identity = network.publish(1 - root, TOPIC, 5, CUSTODY)
    network.run(REPAIR_S)
    assert network.receivers(identity) == {1 - root}
