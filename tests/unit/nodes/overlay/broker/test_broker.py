"""Brokers, sensors and subscribers together: all deliveries arrive when brokers die, links break and clients move."""

from random import Random

import pytest

from nodes.overlay import METHODS
from nodes.overlay.base import Action, BrokerName, Drop, Note, Refuse, Send, Station
from nodes.overlay.broker.broker import LINGER_S, Broker
from nodes.overlay.broker.subscriptions import ANCHOR_TOPIC
from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.reliability.custody import acknowledgement
from nodes.overlay.reliability.heartbeat import ANSWER, FOUND, QUESTION, heartbeat_message
from nodes.overlay.topics.sg import SgTbps
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message
from support.overlays.broker_network import BrokerNetwork

BROKERS = [f"b{number}" for number in range(1, 6)]
SUBSCRIBERS = ["c1", "c2", "c3"]
methods = pytest.mark.parametrize("method", TOPIC_METHODS)
every_method = pytest.mark.parametrize("method", METHODS)


def network(method: str, seed: int = 1, **how: object) -> BrokerNetwork:
    """Five brokers; a sensor at b1, subscribers at b3, b4 and b5; all of them ready."""
    brokers = 1 if method == "star" else 5
    made = BrokerNetwork(method, seed, brokers, parameters={"custody_from": 3, **how})
    names = BROKERS[:brokers]
    sensor = made.join("s1", 101, [], names)
    made.act("s1", sensor.advertise(["slope"], 0.0))
    for place, name in enumerate(SUBSCRIBERS):
        first = (2 + place) % brokers
        made.join(name, 111 + place, ["slope"], names[first:] + names[:first])
    made.run(30)
    assert all(core.ready for core in made.cores.values())
    return made


def closed(made: BrokerNetwork) -> bool:
    """Whether no broker has a pending acknowledgement."""
    return all(len(made.cores[name]._local.pending) == 0 for name in made.alive())


@every_method
def test_a_publication_with_custody_reaches_all_and_is_acknowledged_to_the_sensor(
    method: str,
) -> None:
    made = network(method)
    identity = made.publish("s1", 1, "slope")
    made.run(5)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.acknowledged == {identity}
    assert closed(made)
    assert made.duplicates == 0


@every_method
def test_publications_without_custody_are_not_acknowledged(method: str) -> None:
    made = network(method)
    made.passed.clear()
    identity = made.publish("s1", 1, "slope", priority=2)
    made.run(5)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert not any(message.kind is Kind.ACK for _, _, message in made.passed)


@methods
def test_the_sensor_gets_no_acknowledgement_before_the_last_subscriber_has_the_publication(
    method: str,
) -> None:
    made = network(method)
    attached_to = next(iter(made.links["c3"]))
    link = made.links["c3"][attached_to]
    link.last["c3"] = made.now + 7  # the link is busy
    identity = made.publish("s1", 1, "slope")
    made.run(6)
    assert made.receivers(identity) == {"c1", "c2"}
    assert made.acknowledged == set()
    made.run(3)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.acknowledged == {identity}


@methods
@pytest.mark.parametrize("victim", ["b3", "b5"])
def test_no_subscriber_misses_a_publication_when_a_broker_dies_with_it(
    method: str, victim: str
) -> None:
    made = network(method)
    identities = [made.publish("s1", counter, "slope") for counter in (1, 2)]
    made.run(0.03)
    made.kill(victim)
    identities.append(made.publish("s1", 3, "slope"))
    made.run(130)
    for identity in identities:
        assert made.receivers(identity) == set(SUBSCRIBERS)
    assert set(made.delivered.values()) == {1}
    assert made.acknowledged == set(identities)
    assert closed(made)


@methods
def test_a_sensor_whose_broker_dies_publishes_through_the_next(method: str) -> None:
    made = network(method)
    identity = made.publish("s1", 1, "slope")
    made.kill("b1")  # before the publication arrives there
    made.run(60)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.acknowledged == {identity}


@every_method
def test_a_subscriber_that_was_away_gets_each_missed_publication_once(method: str) -> None:
    made = network(method)
    before = made.publish("s1", 1, "slope")
    made.run(5)
    for link in list(made.links["c1"].values()):
        link.whole = False  # no node has noticed yet
    identity = made.publish("s1", 2, "slope")
    made.run(1)
    assert "c1" not in made.receivers(identity)
    made.move("c1")
    made.run(30)
    assert made.receivers(identity) == made.receivers(before) == set(SUBSCRIBERS)
    assert set(made.delivered.values()) == {1}
    assert closed(made)


def test_the_sensor_repeats_publications_that_a_restarted_star_has_lost() -> None:
    made = network("star")
    for link in list(made.links["c1"].values()):
        link.whole = False
    identity = made.publish("s1", 1, "slope")
    made.run(5)
    assert made.receivers(identity) == {"c2", "c3"}
    made.kill("b1")
    made.start("b1")
    made.run(30)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert set(made.delivered.values()) == {1}


@methods
def test_a_broken_link_is_made_again_and_messages_in_flight_are_sent_again(method: str) -> None:
    made = network(method)
    identities = []
    for counter in range(1, 7):
        identities.append(made.publish("s1", counter, "slope"))
        made.run(0.02)
        for one, others in list(made.links.items()):
            for other in [peer for peer in others if peer > one and peer in BROKERS]:
                made.cut(one, other)
        made.run(2)
    made.run(70)
    for identity in identities:
        assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.acknowledged == set(identities)
    assert set(made.delivered.values()) == {1}
    assert closed(made)


@methods
def test_an_isolated_broker_does_not_acknowledge_publications_of_its_sensor(
    method: str,
) -> None:
    made = network(method)
    made.isolate("b1")
    made.run(5)
    identities = [made.publish("s1", counter, "slope") for counter in (1, 2)]
    made.run(20)
    assert not made.delivered
    assert not made.acknowledged
    made.isolated.clear()
    made.run(90)
    for identity in identities:
        assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.acknowledged == set(identities)
    assert set(made.delivered.values()) == {1}
    assert closed(made)


@methods
def test_a_broker_that_leaves_in_order_loses_nothing_and_is_soon_gone(method: str) -> None:
    made = network(method)
    identities = [made.publish("s1", counter, "slope") for counter in (1, 2)]
    made.run(0.05)
    made.leave("b4")
    identities.append(made.publish("s1", 3, "slope"))
    made.run(20)
    assert made.cores["b4"].left
    made.kill("b4")
    identities.append(made.publish("s1", 4, "slope"))
    made.run(90)
    for identity in identities:
        assert made.receivers(identity) == set(SUBSCRIBERS)
    assert set(made.delivered.values()) == {1}
    assert made.acknowledged == set(identities)


@methods
def test_brokers_that_all_begin_at_once_form_one_overlay(method: str) -> None:
    made = BrokerNetwork(method, 3, brokers=8, slowest=0.3)
    for number in range(1, 9):
        made.join(f"c{number}", 110 + number, ["slope"], [f"b{number}"])
    sensor = made.join("s1", 101, [], ["b8"])
    made.act("s1", sensor.advertise(["slope"], 0.0))
    while not all(core.ready for core in made.cores.values()):
        made.run(1)
        assert made.now < 40
    identity = made.publish("s1", 1, "slope")
    made.run(20)
    assert made.receivers(identity) == {f"c{number}" for number in range(1, 9)}


# One broker alone

STATION = Station("b1", 1, (BrokerName("b2", 2), BrokerName("b3", 3)))


def broker(**parameters: object) -> Broker:
    core = METHODS["sg-tbps"](STATION, parameters, Random(7))
    assert isinstance(core, Broker)
    return core


def sent(actions: list[Action], kind: Kind) -> list[str]:
    """The receivers of messages of this kind."""
    return [a.peer for a in actions if isinstance(a, Send) and a.message.kind is kind]


def test_a_silent_link_is_probed_and_then_closed() -> None:
    core = broker(heartbeat_s=5)
    core.on_link_up("c1", 0.0)
    core.on_message("c1", Message(Kind.SUBSCRIBE, topic="slope"), 0.0)
    wanted: list[tuple[float, Action]] = []
    while (now := core.next_deadline() or 60.0) < 60.0:
        wanted += [(now, action) for action in core.on_deadline(now)]
    asked = [a for _, a in wanted if isinstance(a, Send) and a.message.kind is Kind.HEARTBEAT]
    assert [question.message.payload for question in asked] == [QUESTION, QUESTION]
    (ended,) = [(now, action) for now, action in wanted if isinstance(action, Drop)]
    assert ended == (15.0, Drop("c1", "silent for too long"))
    assert core.on_link_down("c1", 16.0) == [], "to the core it is down already"


def test_a_heartbeat_question_is_answered_unless_a_message_was_just_sent() -> None:
    core = broker(heartbeat_s=5)
    core.on_link_up("c1", 0.0)
    question = Message(Kind.HEARTBEAT, payload=QUESTION)
    (answer,) = core.on_message("c1", question, 6.0)
    assert isinstance(answer, Send)
    assert answer.message.payload == ANSWER
    assert core.on_message("c1", question, 7.0) == []


def test_a_broken_link_to_a_broker_is_tried_again_unless_it_was_closed_in_order() -> None:
    core = broker()
    core.on_link_up("b2", 0.0)
    assert core.on_link_down("b2", 1.0, orderly=True) == []
    core.on_link_up("b2", 2.0)
    assert sent(core.on_link_down("b2", 3.0), Kind.HEARTBEAT) == ["b2"]
    lost = core.on_unreachable("b2", 4.0)
    assert Note("lost-peer", {"peer": "b2"}) in lost
    assert core.on_unreachable("s1", 4.0) == []


def test_a_broker_that_is_reached_again_is_sent_found_and_clients_may_not_send_found() -> None:
    core = broker()
    assert Note("lost-peer", {"peer": "b2"}) in core.on_unreachable("b2", 1.0)
    sends = [action for action in core.on_link_up("b2", 2.0) if isinstance(action, Send)]
    assert FOUND in [action.message.payload for action in sends if action.peer == "b2"]
    assert not any(
        isinstance(one, Refuse) for one in core.on_message("b2", heartbeat_message(2, FOUND), 3.0)
    )
    core.on_link_up("c1", 4.0)
    (refusal,) = core.on_message("c1", heartbeat_message(111, FOUND), 5.0)
    assert isinstance(refusal, Refuse)


def test_an_advertisement_outlives_its_client_for_a_while() -> None:
    core = broker()
    core.on_link_up("s1", 0.0)
    core.on_link_up("s2", 0.0)
    actions = core.on_message("s1", Message(Kind.ADVERTISE, topic="slope"), 1.0)
    assert sent(actions, Kind.ADVERTISED) == ["s1"]
    core.on_link_down("s1", 2.0)
    again = core.on_message("s2", Message(Kind.ADVERTISE, topic="slope"), 3.0)
    assert sent(again, Kind.ADVERTISED) == ["s2"], "the topic is advertised already"
    core.on_link_down("s2", 4.0)
    assert isinstance(core._node, SgTbps)
    core.on_deadline(3.9 + LINGER_S)
    assert core._node.graph.own_keys()
    core.on_deadline(4.0 + LINGER_S)
    assert core._node.graph.own_keys() == []


def test_a_repeated_publication_is_retained_and_sent_to_each_local_subscriber_once() -> None:
    core = broker()
    for client in ("s1", "c1", "c2"):
        core.on_link_up(client, 0.0)
    core.on_message("c1", Message(Kind.SUBSCRIBE, topic="slope"), 1.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY | REPEATED, message_id=7, topic="slope")
    actions = core.on_message("s1", message, 2.0)
    assert sent(actions, Kind.PUBLISH) == ["c1"], "a local subscriber may have missed it"
    core.on_message("c2", Message(Kind.SUBSCRIBE, topic="slope"), 3.0)
    actions = core.on_message("c2", Message(Kind.MISSED, topic="slope"), 4.0)
    assert sent(actions, Kind.PUBLISH) == ["c2"]
    assert sent(core.on_message("s1", message, 5.0), Kind.PUBLISH) == []


def test_a_copy_that_arrives_again_is_only_acknowledged_again() -> None:
    core = broker()
    core.on_link_up("s1", 0.0)
    core.on_link_up("c1", 0.0)
    core.on_message("c1", Message(Kind.SUBSCRIBE, topic="slope"), 1.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    assert sent(core.on_message("s1", message, 2.0), Kind.PUBLISH) == ["c1"]
    assert core.on_message("s1", message, 3.0) == [], "the acknowledgement is still pending"
    answer = acknowledgement(111, message.forwarded())
    assert sent(core.on_message("c1", answer, 4.0), Kind.ACK) == ["s1"]
    again = core.on_message("s1", message, 5.0)
    assert sent(again, Kind.ACK) == ["s1"]
    assert len(again) == 1


@pytest.mark.parametrize("stopping", [True, False])
def test_the_last_broker_acknowledges_at_once_only_if_the_others_announced_their_stop(
    stopping: bool,
) -> None:
    core = broker()
    for peer in ("b2", "s1", "c1"):
        core.on_link_up(peer, 0.0)
    core.on_message("c1", Message(Kind.SUBSCRIBE, topic="slope"), 1.0)
    core.on_link_down("b2", 2.0, stopping=stopping)
    core.on_unreachable("b2", 2.1)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    assert sent(core.on_message("s1", message, 3.0), Kind.PUBLISH) == ["c1"]
    answer = acknowledgement(111, message.forwarded())
    actions = core.on_message("c1", answer, 4.0)
    assert sent(actions, Kind.ACK) == (["s1"] if stopping else []), "else b2 may be cut off"


def test_a_publication_without_subscribers_is_logged_and_acknowledged_after_the_hold_time() -> None:
    core = broker(hold_s=10)
    core.on_link_up("s1", 0.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    core.on_message("s1", Message(Kind.ADVERTISE, topic="slope"), 1.0)
    actions = core.on_message("s1", message, 2.0)
    assert Note("withheld", {"id": f"{7:016x}", "topic": "slope"}) in actions
    assert sent(actions, Kind.ACK) == []
    assert sent(core.on_deadline(12.5), Kind.ACK) == ["s1"]


def test_a_publication_that_waits_for_its_advertisement_is_not_acknowledged_whatever_links_do() -> (
    None
):
    station = Station("b5", 5, (BrokerName("b2", 2),), (BrokerName("b2", 2),))
    core = METHODS["sg-tbps"](station, {}, Random(7))
    core.on_deadline(0.0)
    core.on_link_up("b2", 0.0)
    core.on_link_up("s1", 0.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    actions = core.on_message("s1", message, 1.0)
    actions += core.on_link_down("b2", 1.1)
    actions += core.on_unreachable("b2", 1.2)
    actions += core.on_link_up("b2", 1.3)
    actions += core.on_deadline(8.0)
    assert sent(actions, Kind.ACK) == []
    assert not core.ready


def test_clients_may_not_subscribe_to_the_brokers_own_topic() -> None:
    core = broker()
    core.on_link_up("c1", 0.0)
    (refusal,) = core.on_message("c1", Message(Kind.SUBSCRIBE, topic=ANCHOR_TOPIC), 1.0)
    assert isinstance(refusal, Refuse)


def test_a_broker_that_leaves_accepts_no_publications() -> None:
    core = broker()
    core.on_link_up("s1", 0.0)
    core.leave(1.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    assert core.on_message("s1", message, 2.0) == []
    assert core.left
