"""A publisher keeps everything that it withholds with custody, until it is sure that there is no subscriber."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.topics.base import Place, Restored, Suspected
from nodes.overlay.topics.topic import MOST_HELD, Flow, Waiting
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.skipgraph_messages import Carry, Notify
from nodes.protocol.topic_messages import TopicControl, decode_timed, encode_timed, is_timed
from nodes.protocol.wire import CUSTODY, Kind, Message, WireError
from support.overlays.overlay_network import OverlayNetwork, graph_node
from support.overlays.topic_network import TopicNetwork

MANY = 5 * MOST_HELD


def publishers(**parameters: object) -> TopicNetwork:
    """Three publishers of a topic without subscribers; the last publisher is the rendezvous point."""
    network = TopicNetwork("sg-tbps", 3, parameters)
    for number in range(1, 8):
        network.start(number, [1])
    for number in range(1, 4):
        network.advertise(number, "slope")
        network.run(2)
    network.run(20)
    network.passed.clear()
    return network


def flow(network: TopicNetwork, number: int) -> Flow:
    (found,) = network.nodes[number].membership.publishing()
    return found.flow


def test_all_publications_withheld_with_custody_are_sent_at_go() -> None:
    network = publishers()
    plain = [network.publish(1, "slope") for _ in range(MANY)]
    kept = [network.publish(1, "slope", flags=CUSTODY) for _ in range(MANY)]
    network.subscribe(7, "slope")
    network.run(5)
    assert all(network.receivers(identity) == {7} for identity in kept)
    assert [bool(network.receivers(identity)) for identity in plain].count(True) == MOST_HELD


def test_all_publications_with_custody_wait_until_the_key_is_inserted() -> None:
    network = publishers()
    network.subscribe(7, "valley")
    network.run(5)
    network.advertise(1, "valley")
    kept = [network.publish(1, "valley", flags=CUSTODY) for _ in range(MANY)]
    assert all(network.nodes[1].holds(identity) for identity in kept)
    network.run(5)
    assert all(network.receivers(identity) == {7} for identity in kept)


@pytest.mark.parametrize("number", [1, 3])
def test_custody_ends_when_the_rendezvous_point_has_confirmed_that_there_are_no_subscribers(
    number: int,
) -> None:
    network = publishers()
    network.holds = lambda message: message.kind is Kind.OVERLAY and is_answer(message)
    identity = network.publish(number, "slope", flags=CUSTODY)
    network.run(60)
    assert network.nodes[number].holds(identity) is (number == 1)  # 3 is the rendezvous point
    network.release()
    network.run(1)
    assert not network.nodes[number].holds(identity)
    assert len(flow(network, number).held) == 0
    network.subscribe(7, "slope")
    network.run(5)
    assert network.receivers(identity) == set()


def is_answer(message: Message) -> bool:
    decoded = decode(message.payload)
    return isinstance(decoded, Notify) and decoded.body[:1] == bytes([TopicControl.UNWANTED])


def test_a_publisher_that_is_stopped_by_mistake_loses_nothing_with_custody() -> None:
    network = publishers(ask_s=5)
    network.subscribe(7, "slope")
    network.run(10)
    flow(network, 1).going = False  # a late control message
    first = network.publish(1, "slope", flags=CUSTODY)
    assert network.nodes[1].holds(first)
    network.run(1)
    assert network.receivers(first) == {7}
    assert flow(network, 1).going


def test_one_question_covers_all_publications_withheld_before() -> None:
    network = publishers()
    for _ in range(100):
        network.publish(1, "slope", flags=CUSTODY)
        network.run(0.1)
    network.run(30)
    asked = [
        message
        for sender, _, message in network.passed
        if sender == 1 and isinstance(decode(message.payload), Carry)
    ]
    assert 2 <= len(asked) <= 4  # in 10 s, one in 5 s
    assert len(flow(network, 1).held) == 0


def test_a_node_taken_for_dead_by_mistake_is_notified_that_it_may_have_missed_publications() -> (
    None
):
    network = publishers()
    network.subscribe(7, "slope")
    network.run(10)
    for number in range(1, 7):
        network.act(number, network.nodes[number].on_peer_lost(7, network.now))
    network.run(20)
    assert (7, Restored("slope")) in network.reported
    assert flow(network, 1).going


def test_a_watched_node_suspects_silent_neighbours_and_keeps_them_until_their_death_is_reported() -> (
    None
):
    network = OverlayNetwork(1)
    for number in (1, 2, 3):
        node = graph_node(network, number, [1], watched=True)
        network.act(number, node.insert(bytes([number]), network.now))
        network.run(3)
    network.run(10)
    network.crash(2)
    network.reported.clear()
    network.run(30)
    suspecting = [number for number, action in network.reported if action.node == 2]
    assert {*suspecting} == {1, 3}
    assert len(suspecting) < 15  # not at each check
    peer = network.nodes[1].peer(b"\1")
    assert peer.right.node == 2
    network.act(1, network.nodes[1].on_peer_lost(2, network.now))
    network.act(3, network.nodes[3].on_peer_lost(2, network.now))
    network.run(5)
    assert peer.right.node == 3


def test_the_topic_methods_report_suspicions() -> None:
    network = TopicNetwork("scribe", 1, {})
    for number in (1, 2):
        place = Place(number, (1,), watched=True)
        network.nodes[number] = type(network.start(number, [1]))(place, {}, Random(number))
        network.act(number, network.nodes[number].subscribe("slope", network.now))
        network.run(10)
    network.crash(2)
    network.run(200)
    assert (1, Suspected(2)) in network.reported


@given(
    plans=st.lists(st.tuples(st.booleans(), st.integers(0, 3))),
    until=st.integers(0, 100),
    custody_until=st.integers(0, 100),
)
def test_waiting_forgets_old_publications_without_custody_and_no_others(
    plans: list[tuple[bool, int]], until: int, custody_until: int
) -> None:
    waiting, now = Waiting(3), 0
    model: list[tuple[int, Message]] = []
    for identity, (custody, later) in enumerate(plans):
        now += later
        flags = CUSTODY if custody else 0
        message = Message(Kind.PUBLISH, flags=flags, message_id=identity, topic="slope")
        waiting.append(message, now)
        model.append((now, message))
        plain = [entry for entry in model if not entry[1].flags]
        if len(plain) > 3:
            model.remove(plain[0])
    assert list(waiting) == model
    waiting.forget(until, min(until, custody_until))
    while model and model[0][0] <= (min(until, custody_until) if model[0][1].flags else until):
        model.pop(0)
    assert [waiting.popleft() for _ in range(len(waiting))] == model
    assert all(waiting.since(identity) < 0 for identity in range(len(plans)))


@pytest.mark.parametrize("control", [TopicControl.WANTED, TopicControl.UNWANTED])
def test_control_messages_with_a_time_survive_the_wire(control: TopicControl) -> None:
    encoded = encode_timed(control, 12.25, "slope")
    assert is_timed(encoded)
    assert decode_timed(encoded) == (control, 12.25, "slope")
    with pytest.raises(WireError):
        decode_timed(encoded[:8])
