"""SG-TBPS, rule by rule: the rendezvous point, stop and go, both repairs, and one key for a node that is both."""

from dataclasses import replace

import pytest

from nodes.overlay.topics.keys import Role, edge, stands_in, topic_key, topic_of
from nodes.overlay.topics.sg import SgTbps
from nodes.overlay.topics.topic import Flow
from nodes.protocol.skipgraph_codec import decode, encode
from nodes.protocol.skipgraph_messages import Multicast, Notify, Way
from nodes.protocol.topic_messages import TopicControl, decode_control, encode_control
from nodes.protocol.wire import Kind, Message, WireError
from support.overlays.topic_network import TopicNetwork

PUBLISHERS = range(1, 6)


def publishers(subscribers: int = 0) -> TopicNetwork:
    """Five publishers of one topic and some subscribers behind them, quiet."""
    network = TopicNetwork("sg-tbps", 3, {"multicast": "split"})
    for number in range(1, 12):
        network.start(number, [1])
    for number in PUBLISHERS:
        network.advertise(number, "slope")
        network.run(1)
    for number in range(6, 6 + subscribers):
        network.subscribe(number, "slope")
    network.run(20)
    return network


def flow(network: TopicNetwork, number: int) -> Flow:
    node: SgTbps = network.nodes[number]
    (found,) = node.membership.publishing()
    return found.flow


def going(network: TopicNetwork) -> list[bool]:
    return [flow(network, number).going for number in PUBLISHERS]


def test_without_subscribers_all_publishers_are_stopped_and_send_nothing() -> None:
    network = publishers()
    assert going(network) == [False] * 5
    network.passed.clear()
    identity = network.publish(2, "slope")
    network.run(5)
    assert network.withheld == {identity}
    assert network.publications() == []


def test_the_first_subscriber_makes_all_go_and_the_last_makes_all_stop() -> None:
    network = publishers()
    network.subscribe(8, "slope")
    network.run(3)
    assert going(network) == [True] * 5
    network.subscribe(9, "slope")
    network.run(3)
    network.unsubscribe(8, "slope")
    network.run(3)
    assert going(network) == [True] * 5
    network.unsubscribe(9, "slope")
    network.run(3)
    assert going(network) == [False] * 5


def test_publications_withheld_just_before_go_arrive_late() -> None:
    network = publishers()
    identity = network.publish(2, "slope")
    network.subscribe(8, "slope")
    network.run(3)
    assert network.receivers(identity) == {8}


def test_publications_withheld_long_before_go_are_forgotten() -> None:
    network = publishers()
    identity = network.publish(2, "slope")
    network.run(11)
    network.subscribe(8, "slope")
    network.run(5)
    assert network.receivers(identity) == set()


@pytest.mark.parametrize("subscribers", [0, 2])
def test_a_new_publisher_learns_the_state(subscribers: int) -> None:
    network = publishers(subscribers)
    for number in (0, 10):  # one becomes the first of the publishers, one the rendezvous point
        network.start(number, [1])
        network.advertise(number, "slope")
        network.run(4)
        assert flow(network, number).going is bool(subscribers)
        assert flow(network, number).sure
    assert going(network) == [bool(subscribers)] * 5


def test_when_the_rendezvous_point_goes_its_neighbour_takes_over() -> None:
    network = publishers(1)
    network.withdraw(5, "slope")
    network.run(3)
    network.unsubscribe(6, "slope")
    network.run(3)
    assert [flow(network, number).going for number in range(1, 5)] == [False] * 4


def test_the_rendezvous_point_stops_a_publisher_that_sends_without_subscribers() -> None:
    network = publishers()
    flow(network, 2).going = True  # this publisher has missed the control message
    network.passed.clear()
    network.publish(2, "slope")
    network.run(1)
    assert going(network) == [False] * 5
    stop_message = encode_control(TopicControl.STOP, "slope")
    assert (5, 2, stop_message) in [
        (sender, to, decode(message.payload).body)
        for sender, to, message in network.passed
        if message.kind is Kind.OVERLAY and isinstance(decode(message.payload), Notify)
    ]


@pytest.mark.parametrize("subscribers", [0, 1])
def test_an_empty_part_does_not_mean_that_there_are_no_subscribers(subscribers: int) -> None:
    """Split gives the rendezvous point the range before the first subscriber that others know."""
    network = publishers(subscribers)
    at, end = topic_key("slope", Role.PUBLISHER, 5), topic_key("slope", Role.SUBSCRIBER, 6)
    low, floor = edge("slope", Role.SUBSCRIBER), edge("slope", Role.PUBLISHER)
    publication = Message(Kind.PUBLISH, origin=2, message_id=9, topic="slope")
    part = Multicast(at, b"", 2, Way.SPLIT, floor, low, end, 9, publication)
    sent = replace(publication, routing=encode(part))
    actions = network.nodes[5].on_message(2, sent, network.now)
    notified = [(action.node, decode(action.message.payload)) for action in actions]
    stop = [] if subscribers else [(2, Notify(encode_control(TopicControl.STOP, "slope")))]
    assert notified == stop


def test_a_publisher_that_is_stopped_by_mistake_finds_out() -> None:
    network = publishers(2)
    for number in (1, 2, 3):
        flow(network, number).going = False  # they have missed the control message
    network.run(15)
    assert going(network) == [True] * 5


def test_publishers_go_although_the_rendezvous_point_crashed_before_it_could_notify_them() -> None:
    network = publishers()
    network.subscribe(8, "slope")
    network.run(0.03)
    network.crash(5)
    network.run(40)
    assert [flow(network, number).going for number in range(1, 5)] == [True] * 4


def test_a_node_that_is_both_has_only_the_subscribers_key() -> None:
    network = publishers(1)
    network.subscribe(3, "slope")
    network.run(5)
    node: SgTbps = network.nodes[3]
    assert node.graph.own_keys() == [topic_key("slope", Role.SUBSCRIBER, 3)]
    identity = network.publish(3, "slope")
    network.run(2)
    assert network.receivers(identity) == {3, 6}
    network.unsubscribe(3, "slope")
    network.run(5)
    assert node.graph.own_keys() == [topic_key("slope", Role.PUBLISHER, 3)]


def test_keys_put_publishers_before_subscribers_and_each_topic_in_one_stretch() -> None:
    keys = [
        topic_key(topic, role, number)
        for topic in ("slope", "slope/north", "slop")
        for role in Role
        for number in (300, 7, 2**32 - 1)
    ]
    keys.sort()
    assert [topic_of(key) for key in keys] == ["slop"] * 6 + ["slope"] * 6 + ["slope/north"] * 6
    for start in range(0, 18, 6):
        stretch = keys[start : start + 6]
        assert all(stands_in(key, topic_of(key), Role.PUBLISHER) for key in stretch[:3])
        assert all(stands_in(key, topic_of(key), Role.SUBSCRIBER) for key in stretch[3:])
        assert edge(topic_of(stretch[0]), 2) > stretch[-1]


def test_control_messages_survive_the_wire_and_invalid_ones_are_refused() -> None:
    for control in TopicControl:
        assert decode_control(encode_control(control, "slope/警報")) == (control, "slope/警報")
    for data in (b"", b"\0slope", b"\1\xff"):
        with pytest.raises(WireError, match="no control message"):
            decode_control(data)
