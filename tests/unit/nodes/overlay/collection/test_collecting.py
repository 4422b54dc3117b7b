"""Readings of many brokers to one collector: once, along the rule's path, joined, and within the agreed wait."""

from itertools import product
from math import inf

import pytest

from nodes.overlay.collection.rules import Way
from nodes.overlay.topics.base import Refuse
from nodes.parameters import ParameterError
from nodes.protocol.joined import join, split
from nodes.protocol.wire import CUSTODY, Kind, Message, message_id
from support.overlays.collection_network import SENSORS, TOPIC, CollectionNetwork
from support.overlays.collection_oracle import expected_hops

PERIODS = {number: 1.0 + (number * 7) % 4 for number in range(1, 11)}  # 1 to 4 s
WAYS = [way.value for way in Way]
ways = pytest.mark.parametrize("way", WAYS)
every_setting = pytest.mark.parametrize(
    ("way", "aggregate", "wait_s"), list(product(WAYS, [True, False], [0, 0.6]))
)


def collected(
    seed: int = 1, collectors: tuple[int, ...] = (0,), **parameters: object
) -> CollectionNetwork:
    """All brokers are settled, and every period is known."""
    network = CollectionNetwork(seed, parameters)
    for number in (0, *PERIODS):
        network.start(number)
    for number in collectors:
        network.collect(number)
    network.run(5)
    for number in PERIODS:
        network.begin(number)
    network.run(20)
    network.play(PERIODS, 12)
    network.run(20)
    network.passed.clear()
    return network


@every_setting
def test_every_reading_comes_once(way: str, aggregate: bool, wait_s: float) -> None:
    network = collected(way=way, aggregate=aggregate, wait_s=wait_s)
    readings = network.play(PERIODS, 12)
    network.run(5)
    assert all(network.receivers(identity) == {0} for identity in readings)
    assert set(network.delivered.values()) == {1}
    joined = [message for *_, message in network.passed if message.kind is Kind.JOINED]
    assert aggregate or not joined


@pytest.mark.parametrize("way", [way for way in Way if way is not Way.PULL])
@pytest.mark.parametrize("seed", range(3))
def test_hops_are_those_of_the_rule(way: Way, seed: int) -> None:
    network = collected(seed, way=way.value)
    if way is Way.SERVER:
        network.play(PERIODS, 9)
    oracle = expected_hops(TOPIC, PERIODS, 0, network.vectors, way)
    readings = network.play(PERIODS, 9)
    network.run(5)
    for identity in readings:
        assert network.hops[identity] == oracle[(identity >> 32) - SENSORS]


def test_with_aggregation_a_broker_sends_fewer_messages_than_readings_pass_through_it() -> None:
    numbers = {}
    for aggregate in (True, False):
        network = collected(aggregate=aggregate, wait_s=0.6)
        network.play(PERIODS, 12)
        network.run(5)
        numbers[aggregate] = len(network.readings_sent())
    assert numbers[True] < 0.75 * numbers[False]


def test_all_readings_of_one_time_leave_a_broker_as_one_message() -> None:
    """Kawakami 2016: with aggregation a node sends at most one message a unit of time."""
    network = collected(wait_s=0.9)
    network.play(PERIODS, 12)
    network.passed.clear()
    for number in PERIODS:  # 12 s is a multiple of all periods
        network.publish(number)
    network.run(0.95)
    senders = [sender for sender, *_ in network.readings_sent()]
    assert sorted(senders) == sorted(PERIODS)


@ways
def test_an_alert_never_waits_and_is_never_joined(way: str) -> None:
    network = collected(way=way, wait_s=30.0, pull_s=30.0)
    for level, flags in ((4, 0), (5, 0), (3, CUSTODY), (5, CUSTODY), (1, CUSTODY)):
        for number in PERIODS:
            network.publish(number)
            identity = network.publish(number, level, flags)
            network.run(10 * network.slowest)
            assert network.receivers(identity) == {0}
    for *_, message in network.passed:
        if message.kind is Kind.JOINED:
            assert all(part.priority < 4 and not part.flags for part in split(message))


def test_a_missing_sensor_holds_the_others_up_for_no_longer_than_the_deadline_and_soon_not_at_all() -> (
    None
):
    network = collected(way="chain", wait_s=0.6)
    missing = max(PERIODS, key=lambda number: (PERIODS[number], number))
    others = {number: period for number, period in PERIODS.items() if number != missing}
    hops_of_all = len(PERIODS)
    early = network.play(others, 4)
    network.run(8)
    for identity in early:
        delay = network.came[identity] - network.published[identity]
        assert delay <= hops_of_all * (0.6 + network.slowest)
    network.play(others, 12)
    late = network.play(others, 12)
    network.run(8)
    worst = max(network.came[identity] - network.published[identity] for identity in late)
    assert all(network.receivers(identity) == {0} for identity in late)
    assert worst < max(network.came[one] - network.published[one] for one in early) + 0.6


@ways
def test_several_subscribers_get_everything_once(way: str) -> None:
    network = collected(collectors=(0, 3), way=way)
    readings = network.play(PERIODS, 9)
    network.run(6)
    assert network.subscribed == {0, 3}
    for identity in readings:
        assert network.receivers(identity) == {0, 3}
    assert set(network.delivered.values()) == {1}


def test_pulling_costs_each_publisher_one_question_and_one_answer() -> None:
    network = collected(way="pull", pull_s=4.0, wait_s=2.0)
    readings = [network.publish(number) for number in PERIODS]
    network.run(4.5)
    assert all(network.receivers(identity) == {0} for identity in readings)
    answers = [sender for sender, *_ in network.readings_sent()]
    assert sorted(answers) == sorted(PERIODS)


def test_a_publisher_stops_when_no_collector_is_left() -> None:
    network = collected()
    network.act(0, network.nodes[0].unsubscribe(TOPIC, network.now))
    network.run(20)
    network.passed.clear()
    network.play(PERIODS, 4)
    assert network.readings_sent() == []


def test_a_broker_that_leaves_first_forwards_its_waiting_readings() -> None:
    network = collected(wait_s=30.0)
    network.play(PERIODS, 12)
    readings = [network.publish(number) for number in PERIODS]
    network.run(0.3)
    for number in PERIODS:
        network.act(number, network.nodes[number].leave(network.now))
        network.run(0.2)
    network.run(40)
    assert all(network.receivers(identity) == {0} for identity in readings)
    assert all(network.nodes[number].left for number in PERIODS)


def test_readings_that_wait_for_a_dead_broker_take_another_path() -> None:
    network = collected(wait_s=3.0)
    network.play(PERIODS, 12)
    publishers = {number: network.publish(number) for number in PERIODS}
    network.run(0.01)
    waiting = {
        node: number
        for number in PERIODS
        for node, _ in network.nodes[number].departures.bundles._open
    }
    dead = next(node for node in waiting if node != 0)
    network.crash(dead)
    for number in PERIODS.keys() - {dead}:
        actions = network.nodes[number].on_peer_lost(dead, network.now)
        network.act(number, actions)
    network.run(60)
    identity = publishers[waiting[dead]]
    assert network.receivers(identity) == {0}


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"way": "sideways"}, "way is 'sideways'; it takes push-descending or push-ascending"),
        ({"aggregate": 1}, "aggregate is 1; it takes true or false"),
        ({"wait_s": -1}, "wait_s is -1; it takes seconds, 0 or more and at most 3600"),
        ({"wait_s": False}, "wait_s is False"),
        ({"wait_s": inf}, "wait_s is inf"),
        ({"pull_s": 0}, "pull_s is 0; it takes seconds, more than 0"),
        ({"speed": 1}, "has no parameter 'speed'"),
    ],
)
def test_wrong_parameters_are_refused_with_a_sentence(
    parameters: dict[str, object], why: str
) -> None:
    with pytest.raises(ParameterError, match=why):
        CollectionNetwork(1, parameters).start(0)


def test_hostile_joined_messages_are_refused() -> None:
    network = collected()
    node = network.nodes[1]
    alert = Message(
        Kind.PUBLISH, 5, topic=TOPIC, message_id=message_id(9, 1), routing=b"\xc0\0\0\0\2"
    )
    broken = Message(Kind.PUBLISH, 1, topic=TOPIC, message_id=message_id(9, 2), routing=b"\xc0\0")
    for message in (
        Message(Kind.JOINED, topic=TOPIC, payload=b"\0\3abc"),
        join([alert, alert], 2),
        join([broken, broken], 2),
        broken,
        alert,
    ):
        actions = node.on_message(2, message, network.now)
        assert [type(action) for action in actions] == [Refuse]
