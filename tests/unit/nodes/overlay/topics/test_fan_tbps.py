"""FAN-TBPS in virtual time: few messages at any priority, and no subscriber missed whatever the roster contains."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodes.overlay.topics.fan import FanTbps
from nodes.overlay.topics.keys import Role, topic_key
from nodes.overlay.topics.participants import Roster
from nodes.overlay.topics.parts import Part
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.skipgraph_messages import Claim, Contact
from nodes.protocol.wire import Kind, Message
from support.overlays.settled_topic import TOPIC, follow, settled_topic
from support.overlays.topic_network import TopicNetwork

PUBLISHERS, SUBSCRIBERS = 3, 20
ALL_SUBSCRIBERS = set(range(PUBLISHERS, PUBLISHERS + SUBSCRIBERS))


def settled(**parameters: Any) -> TopicNetwork:
    return settled_topic("fan-tbps", PUBLISHERS, SUBSCRIBERS, **parameters)


def roster(network: TopicNetwork, publisher: int) -> Roster:
    node: FanTbps = network.nodes[publisher]
    return node.rosters.of(TOPIC)


def parts(network: TopicNetwork, publisher: int, priority: int = 5) -> list[Part]:
    node: FanTbps = network.nodes[publisher]
    return node.division.parts(TOPIC, priority, network.now)


def helpers(network: TopicNetwork, publisher: int, priority: int = 5) -> list[int]:
    return [part.helper.node for part in parts(network, publisher, priority) if part.helper]


def lose(network: TopicNetwork, number: int) -> None:
    """Crash a node; every shell that is connected to it reports so."""
    network.crash(number)
    for other, node in network.nodes.items():
        network.act(other, node.on_peer_lost(number, network.now))


def subscriber(number: int) -> Contact:
    return Contact(topic_key(TOPIC, Role.SUBSCRIBER, number), number, 0)


def is_claim_of(number: int, message: Message) -> bool:
    if message.kind is not Kind.OVERLAY:
        return False
    decoded = decode(message.payload)
    return isinstance(decoded, Claim) and decoded.peer.node == number


def test_more_urgent_publications_take_fewer_hops_with_as_many_messages() -> None:
    network = settled()
    sums = []
    for priority in range(1, 6):
        hops, sent = follow(network, 1, priority)
        assert set(hops) == ALL_SUBSCRIBERS
        assert sent == SUBSCRIBERS
        sums.append(sum(hops.values()))
    assert sums == sorted(sums, reverse=True)
    assert sums[-1] < sums[0]


def test_the_budget_limits_the_messages_that_the_publisher_sends_itself() -> None:
    network = settled(budget=2)
    assert len(parts(network, 1)) == 2
    network.passed.clear()
    hops, sent = follow(network, 1, 5)
    assert set(hops) == ALL_SUBSCRIBERS
    assert sent == SUBSCRIBERS
    assert sum(sender == 1 for sender, _, _ in network.publications()) == 2


def test_a_publisher_with_no_more_subscribers_than_parts_reaches_each_in_one_hop() -> None:
    network = settled_topic("fan-tbps", 20, 4)
    hops, sent = follow(network, 1, 5)
    assert set(hops.values()) == {1}
    assert sent == 4


@pytest.mark.parametrize("budget", [0, "2"])
def test_an_invalid_budget_is_refused(budget: Any) -> None:
    with pytest.raises(ValueError, match="budget"):
        TopicNetwork("fan-tbps", 1, {"budget": budget}).start(1, [])


def test_the_only_publisher_of_a_topic_asks_all_subscribers() -> None:
    network = TopicNetwork("fan-tbps", 1, {})
    network.start(0, [])
    network.subscribe(0, TOPIC)
    for number in range(1, 8):
        network.start(number, [0])
        network.subscribe(number, TOPIC)
        network.run(1)
    network.start(8, [0])
    network.advertise(8, TOPIC)
    network.run(3)
    known = {contact.node for contact in roster(network, 8).known(network.now)}
    assert known == set(range(9))


def test_a_helper_that_has_left_forwards_its_part_and_notifies_the_publisher() -> None:
    network = settled()
    gone = helpers(network, 1)[1]
    network.unsubscribe(gone, TOPIC)
    network.run(20)
    roster(network, 1).add(subscriber(gone), network.now)  # it has missed the control message
    network.passed.clear()
    assert gone in {contact.node for contact in roster(network, 1).known(network.now)}
    for _ in range(2):
        hops, _ = follow(network, 1, 5)
        network.run(5)
        assert set(hops) | {gone} == ALL_SUBSCRIBERS
    assert gone not in {contact.node for contact in roster(network, 1).known(network.now)}


def test_a_helper_that_was_alone_and_has_left_asks_the_publisher_for_the_way() -> None:
    network = TopicNetwork("fan-tbps", 1, {})
    for number, introducers in ((0, []), (1, [0]), (2, [0]), (3, [1, 2])):
        network.start(number, introducers)
        (network.subscribe if number else network.advertise)(number, TOPIC)
        network.run(2)
    network.start(9, [])  # in no ring, and it knows no other node
    network._took_part[9, TOPIC] = network.now
    network.run(30)
    for number in (1, 2, 3):
        roster(network, 0).drop(subscriber(number), network.now)
    roster(network, 0).add(subscriber(9), network.now)
    assert helpers(network, 0) == [9]
    identity = network.publish(0, TOPIC, 5)
    network.run(10)
    assert network.receivers(identity) == {1, 2, 3}


@pytest.mark.parametrize("way", ["split", "flood"])
def test_a_helper_that_is_only_about_to_come_does_not_serve_by_links_it_may_never_have(
    way: str,
) -> None:
    network = TopicNetwork("fan-tbps", 1, {"multicast": way})
    network.start(0, [])
    network.advertise(0, TOPIC)
    for number in (10, 20, 30, 40):
        network.start(number, [0])
        if number != 30:
            network.subscribe(number, TOPIC)
        network.run(2)
    network.unsubscribe(20, TOPIC)
    network.run(20)
    network.holds = lambda message: is_claim_of(20, message)
    network.subscribe(20, TOPIC)
    network.run(0.5)
    network.subscribe(30, TOPIC)
    network.run(0.5)
    assert (30, TOPIC) in network.subscribed
    for number in (10, 30, 40):
        roster(network, 0).drop(subscriber(number), network.now)
    roster(network, 0).add(subscriber(20), network.now)
    identity = network.publish(0, TOPIC, 1)
    network.run(1)
    assert network.receivers(identity) >= {10, 30, 40}
    network.release()
    network.run(10)
    assert network.receivers(identity) <= {10, 20, 30, 40}
    assert set(network.delivered.values()) == {1}


@pytest.mark.parametrize("way", ["split", "flood"])
@pytest.mark.parametrize("priority", [1, 4])
@pytest.mark.parametrize("reported_after_s", [0.0, 20.0])
@pytest.mark.parametrize("seed", [2, 4])
def test_a_crashed_helper_costs_no_subscriber_a_publication(
    way: str, priority: int, reported_after_s: float, seed: int
) -> None:
    network = settled_topic("fan-tbps", PUBLISHERS, SUBSCRIBERS, seed, multicast=way)
    lost = helpers(network, 1, priority)[-1]
    identity = network.publish(1, TOPIC, priority)
    network.crash(lost)
    network.run(reported_after_s)
    network.act(1, network.nodes[1].on_peer_lost(lost, network.now))  # the others know nothing yet
    network.run(2)
    assert network.receivers(identity) == ALL_SUBSCRIBERS - {lost}
    assert set(network.delivered.values()) == {1}


def test_two_crashed_helpers_of_one_part_one_after_the_other() -> None:
    network = settled()
    first = helpers(network, 1, 1)[0]
    identity = network.publish(1, TOPIC, 1)
    lose(network, first)
    again = {node for sender, node, message in network.passed if message.kind is Kind.PUBLISH}
    second = min(again - {first})
    lose(network, second)
    network.run(5)
    assert network.receivers(identity) == ALL_SUBSCRIBERS - {first, second}
    assert set(network.delivered.values()) == {1}


def test_parts_are_not_kept_for_ever() -> None:
    network = settled(keep_s=3)
    (lost,) = helpers(network, 1, 1)
    network.publish(1, TOPIC, 1)
    network.run(4)
    network.passed.clear()
    lose(network, lost)
    assert network.publications() == []


@given(
    forgotten=st.sets(st.sampled_from(sorted(ALL_SUBSCRIBERS))),
    invented=st.sets(st.integers(1, 2)),
    priority=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_a_wrong_roster_and_joins_and_leaves_cost_no_subscriber_a_publication(
    forgotten: set[int], invented: set[int], priority: int, seed: int
) -> None:
    network = TopicNetwork("fan-tbps", seed, {}, slowest=0.4)
    for number in range(10):
        network.start(number, [0])
        (network.subscribe if number > 2 else network.advertise)(number, TOPIC)
        network.run(0.5)
    network.run(20)
    random = Random(seed)
    expected: dict[int, set[int]] = {}
    for _ in range(12):
        for number in forgotten:
            roster(network, 0).drop(subscriber(number), network.now)
        for number in invented:  # they publish only, but could have subscribed
            roster(network, 0).add(subscriber(number), network.now)
        number = random.randrange(3, 10)
        for wanted in expected.values():
            wanted.discard(number)
        random.choice([network.subscribe, network.unsubscribe])(number, TOPIC)
        network.run(random.uniform(0, 1))
        stay = {node for node, _ in network.subscribed}
        expected[network.publish(0, TOPIC, priority)] = stay
        network.run(random.uniform(0, 1))
    network.run(40)
    for identity, wanted in expected.items():
        assert wanted <= network.receivers(identity)
    assert set(network.delivered.values()) <= {1}
