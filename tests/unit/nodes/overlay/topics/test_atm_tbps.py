"""ATM- and PATM-TBPS: paths as converged overlays compute them, no subscriber missed, urgent topics first."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.skipgraph_messages import Multicast, Notify
from nodes.protocol.topic_messages import is_roster_control
from nodes.protocol.wire import Kind, Message
from support.overlays.settled_topic import TOPIC, computed, follow, settled_topic
from support.overlays.topic_network import TopicNetwork
from testbed.converged.atm import atm_paths
from testbed.converged.multicast import Strategy
from testbed.converged.psg import Publications, Support, start_nodes

METHODS = ["atm-tbps", "patm-tbps"]
methods = pytest.mark.parametrize("method", METHODS)


def held(network: TopicNetwork, publisher: int = 0, topic: str = TOPIC) -> set[int]:
    """The subscribers to whom a publisher sends directly."""
    return {each.node for each in network.nodes[publisher].division.subscribers(topic, network.now)}


def wanted(network: TopicNetwork, topic: str = TOPIC) -> set[int]:
    return {number for number, name in network.subscribed if name == topic}


@methods
def test_few_subscribers_are_one_hop_away(method: str) -> None:
    network = settled_topic(method, 2, 20)
    for publisher in range(2):
        hops, sent = follow(network, publisher)
        assert hops == dict.fromkeys(range(2, 22), 1)
        assert sent == 20


@methods
@pytest.mark.parametrize("size", [1, 8, 14])
def test_many_are_reached_as_in_converged_overlays(method: str, size: int) -> None:
    subscribers = 24
    network = settled_topic(method, 1, subscribers, table_size=size)
    known = computed(network, 1)
    mine = np.array([[1 + number in held(network) for number in range(subscribers)]])
    assert not mine.all()
    (expected,) = atm_paths(known.to_subscribers(Strategy.SPLIT)[:, 1:], mine)
    hops, sent = follow(network, 0)
    assert [hops[1 + number] for number in range(subscribers)] == expected.tolist()
    assert sent == subscribers


def test_a_table_has_no_more_entries_than_its_size() -> None:
    network = settled_topic("atm-tbps", 2, 30, table_size=18)
    for publisher in range(2):
        node = network.nodes[publisher]
        assert len(node.rosters.table(TOPIC)) == 18
        assert len(node.rosters.of(TOPIC).known(network.now)) <= 18 + 1  # and itself


def is_about_participants(message: Message) -> bool:
    """Whether this is a control message of rosters, however it travels."""
    if message.kind is not Kind.OVERLAY:
        return False
    inner = decode(message.payload)
    return isinstance(inner, Notify | Multicast) and is_roster_control(inner.body)


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("atm-tbps", {}),
    ("atm-tbps", {"table_size": 12, "multicast": "flood"}),
    ("atm-tbps", {"table_size": 9, "table_of": "node"}),
    ("patm-tbps", {"table_size": 12}),
    ("patm-tbps", {"table_size": 9, "table_of": "node"}),
    ("patm-tbps", {"table_size": 9, "beyond": "psg", "support_from": "participants"}),
    ("patm-tbps", {"table_size": 9, "beyond": "psg", "multicast": "flood"}),
]
variants = pytest.mark.parametrize(("method", "parameters"), VARIANTS)


@variants
def test_an_old_table_misses_no_subscriber(method: str, parameters: dict[str, Any]) -> None:
    network = settled_topic(method, 3, 18, **parameters)
    network.holds = is_about_participants  # from here on no node learns of joins and leaves
    for number in range(4, 20, 3):
        network.unsubscribe(number, TOPIC)
    for number in range(30, 40):
        network.start(number, [0])
        network.subscribe(number, TOPIC)
        network.run(0.5)
    network.run(10)
    before = {publisher: held(network, publisher) for publisher in range(3)}
    assert any(before[publisher] - wanted(network) for publisher in range(3)), "no table is old"
    for publisher in range(3):
        identity = network.publish(publisher, TOPIC, priority=5)
        network.run(10)
        assert network.receivers(identity) == wanted(network)
    assert set(network.delivered.values()) == {1}


@variants
def test_joins_and_leaves_cost_no_subscriber_a_publication(
    method: str, parameters: dict[str, Any]
) -> None:
    network = TopicNetwork(method, 3, parameters, slowest=0.4)
    expected: dict[int, set[int]] = {}
    for number in range(26):
        network.start(number, [0])
        if number < 2:
            network.advertise(number, TOPIC)
            network.run(3)
            continue
        network.subscribe(number, TOPIC)
        network.run(0.3)
        if number % 3 == 0:
            leaver = number - 3
            if leaver > 1:
                for staying in expected.values():
                    staying.discard(leaver)
                network.unsubscribe(leaver, TOPIC)
        now_there = wanted(network)
        expected[network.publish(number % 2, TOPIC, priority=1 + number % 5)] = now_there
    network.run(30)
    for identity, staying in expected.items():
        assert staying <= network.receivers(identity)
    assert set(network.delivered.values()) == {1}


@methods
@pytest.mark.parametrize("shell_knows", [True, False])
def test_a_dead_node_is_soon_out_of_the_tables(method: str, shell_knows: bool) -> None:
    network = settled_topic(method, 2, 16)
    dead = 9
    network.crash(dead)
    network.subscribed.discard((dead, TOPIC))
    if shell_knows:
        for number, node in network.nodes.items():
            network.act(number, node.on_peer_lost(dead, network.now))
    network.run(10)
    for publisher in range(2):
        assert dead not in held(network, publisher)
        identity = network.publish(publisher, TOPIC)
        network.run(3)
        assert network.receivers(identity) == wanted(network)


def two_topics(method: str, parameters: dict[str, Any], between: Callable[..., Any]) -> int:
    """One node publishes on two topics; how many subscribers of the urgent one fit into its table."""
    network = TopicNetwork(method, 1, {"table_of": "node", "table_size": 14, **parameters})
    network.start(0, [])
    network.advertise(0, "valley")
    network.advertise(0, "slope")
    for number in range(1, 25):
        network.start(number, [0])
        network.subscribe(number, ("slope", "valley")[number % 2])
        network.run(0.2)
    between(network)
    network.run(70)  # all nodes have announced themselves once more
    assert len(network.nodes[0].rosters.table("slope")) <= 14
    return len(held(network, topic="slope"))


def test_patm_keeps_the_subscribers_of_urgent_topics_first() -> None:
    def publish(network: TopicNetwork) -> int:
        return network.publish(0, "slope", priority=4)

    without = two_topics("atm-tbps", {}, publish)
    by_publishing = two_topics("patm-tbps", {}, publish)
    by_parameter = two_topics("patm-tbps", {"priorities": {"slope": 5}}, lambda network: None)
    too_low = two_topics("patm-tbps", {"threshold": 5}, publish)
    assert without == too_low < by_publishing == by_parameter


def test_a_withdrawn_topic_leaves_its_entries_to_the_others() -> None:
    with_both = two_topics("atm-tbps", {}, lambda network: None)
    alone = two_topics("atm-tbps", {}, lambda network: network.withdraw(0, "valley"))
    assert alone > with_both


def test_with_psg_beyond_the_table_it_is_psg_but_for_those_that_are_held() -> None:
    publishers, subscribers = 6, 20
    network = settled_topic("patm-tbps", publishers, subscribers, table_size=12, beyond="psg")
    known = computed(network, publishers)
    starts = start_nodes(known.vectors, publishers, 5, Support.NEXT, publishers)
    psg = Publications(starts, known.size)
    paths = psg.paths(known.to_subscribers(Strategy.SPLIT))[0]
    messages = psg.messages(known.messages[Strategy.SPLIT])[0]
    for publisher in range(publishers):
        direct = held(network, publisher)
        assert 0 < len(direct) < subscribers
        hops, sent = follow(network, publisher, priority=5)
        for number in range(publishers, publishers + subscribers):
            by_psg = paths[publisher][number - publishers]
            assert hops[number] == (1 if number in direct else by_psg)
        assert sent == len(direct) + messages[publisher]


def test_psg_is_not_needed_if_the_table_holds_all_subscribers() -> None:
    network = settled_topic("patm-tbps", 4, 12, beyond="psg")
    hops, sent = follow(network, 0, priority=5)
    assert hops == dict.fromkeys(range(4, 16), 1)
    assert sent == 12


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("atm-tbps", {"table_size": 0}),
        ("atm-tbps", {"table_of": "house"}),
        ("patm-tbps", {"beyond": "sea"}),
        ("patm-tbps", {"threshold": 9}),
        ("patm-tbps", {"priorities": {"slope": 7}}),
    ],
)
def test_invalid_parameters_are_refused(method: str, parameters: dict[str, Any]) -> None:
    (name,) = parameters
    with pytest.raises(ValueError, match=name):
        TopicNetwork(method, 1, parameters).start(1, [])
