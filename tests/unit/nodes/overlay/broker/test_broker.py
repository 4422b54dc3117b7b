"""Brokers, sensors and subscribers together: who gets what when brokers die, links break and clients move."""

from random import Random

import pytest

from mesh_network import MeshNetwork
from nodes.overlay import METHODS
from nodes.overlay.base import Action, BrokerName, Drop, Note, Refuse, Send, Station
from nodes.overlay.broker.broker import LINGER_S, Broker
from nodes.overlay.broker.subscriptions import ANCHOR_TOPIC
from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.reliability.custody import acknowledgement
from nodes.overlay.reliability.heartbeat import ANSWER, FOUND, QUESTION, heartbeat_message
from nodes.overlay.topics.sg import SgTbps
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message

BROKERS = [f"b{number}" for number in range(1, 6)]
SUBSCRIBERS = ["c1", "c2", "c3"]
methods = pytest.mark.parametrize("method", TOPIC_METHODS)
every_method = pytest.mark.parametrize("method", METHODS)


def network(method: str, seed: int = 1, **how: object) -> MeshNetwork:
    """Five brokers; a sensor at b1, subscribers at b3, b4 and b5; all of them ready."""
    brokers = 1 if method == "star" else 5
    made = MeshNetwork(method, seed, brokers, parameters={"custody_from": 3, **how})
    names = BROKERS[:brokers]
    sensor = made.join("s1", 101, [], names)
    made.act("s1", sensor.advertise(["slope"], 0.0))
    for place, name in enumerate(SUBSCRIBERS):
        first = (2 + place) % brokers
        made.join(name, 111 + place, ["slope"], names[first:] + names[:first])
    made.run(30)
    assert all(core.ready for core in made.cores.values())
    return made


def closed(made: MeshNetwork) -> bool:
    """Whether no broker has a pending acknowledgement."""
    return all(len(made.cores[name]._local.pending) == 0 for name in made.alive())


@every_method
def test_a_publication_with_custody_reaches_all_and_then_the_sensor_knows(method: str) -> None:
    made = network(method)
    identity = made.publish("s1", 1, "slope")
    made.run(5)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.taken == {identity}
    assert closed(made)
    assert made.duplicates == 0


@every_method
def test_without_custody_nobody_answers(method: str) -> None:
    made = network(method)
    made.passed.clear()
    identity = made.publish("s1", 1, "slope", priority=2)
    made.run(5)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert not any(message.kind is Kind.TAKEN for _, _, message in made.passed)


@methods
def test_the_sensor_does_not_know_before_the_last_subscriber_has_it(method: str) -> None:
    made = network(method)
    home = next(iter(made.links["c3"]))
    link = made.links["c3"][home]
    link.last["c3"] = made.now + 7  # the link is busy
    identity = made.publish("s1", 1, "slope")
    made.run(6)
    assert made.receivers(identity) == {"c1", "c2"}
    assert made.taken == set()
    made.run(3)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.taken == {identity}


@methods
@pytest.mark.parametrize("victim", ["b3", "b5"])
def test_when_a_broker_dies_while_it_has_a_publication_nobody_misses_it(
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
    assert made.taken == set(identities)
    assert closed(made)


@methods
def test_a_sensor_whose_broker_dies_publishes_through_the_next(method: str) -> None:
    made = network(method)
    identity = made.publish("s1", 1, "slope")
    made.kill("b1")  # before it has got it
    made.run(60)
    assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.taken == {identity}


@every_method
def test_a_subscriber_that_was_away_gets_what_it_missed_once(method: str) -> None:
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


def test_what_a_restarted_star_has_forgotten_is_repeated_to_it_by_the_sensor() -> None:
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
def test_a_link_that_breaks_is_made_again_and_what_was_under_way_is_sent_again(method: str) -> None:
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
    assert made.taken == set(identities)
    assert set(made.delivered.values()) == {1}
    assert closed(made)


@methods
def test_a_broker_that_is_cut_off_with_its_sensor_does_not_promise_what_it_cannot_keep(
    method: str,
) -> None:
    made = network(method)
    made.isolate("b1")
    made.run(5)
    identities = [made.publish("s1", counter, "slope") for counter in (1, 2)]
    made.run(20)
    assert not made.delivered
    assert not made.taken
    made.isolated.clear()
    made.run(90)
    for identity in identities:
        assert made.receivers(identity) == set(SUBSCRIBERS)
    assert made.taken == set(identities)
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
    assert made.taken == set(identities)


@methods
def test_brokers_that_all_begin_at_once_form_one_overlay(method: str) -> None:
    made = MeshNetwork(method, 3, brokers=8, slowest=0.3)
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


def test_a_silent_link_is_asked_and_then_ended() -> None:
    core = broker(beat_s=5)
    core.on_link_up("c1", 0.0)
    core.on_message("c1", Message(Kind.SUBSCRIBE, topic="slope"), 0.0)
    wanted: list[tuple[float, Action]] = []
    while (now := core.next_deadline() or 60.0) < 60.0:
        wanted += [(now, action) for action in core.on_deadline(now)]
    asked = [a for _, a in wanted if isinstance(a, Send) and a.message.kind is Kind.BEAT]
    assert [question.message.payload for question in asked] == [QUESTION, QUESTION]
    (ended,) = [(now, action) for now, action in wanted if isinstance(action, Drop)]
    assert ended == (15.0, Drop("c1", "silent for too long"))
    assert core.on_link_down("c1", 16.0) == [], "to the core it is down already"


def test_a_question_for_a_sign_of_life_is_answered_unless_something_was_sent() -> None:
    core = broker(beat_s=5)
    core.on_link_up("c1", 0.0)
    question = Message(Kind.BEAT, payload=QUESTION)
    (answer,) = core.on_message("c1", question, 6.0)
    assert isinstance(answer, Send)
    assert answer.message.payload == ANSWER
    assert core.on_message("c1", question, 7.0) == []


def test_a_link_to_a_broker_that_breaks_is_tried_again_unless_it_was_closed_in_order() -> None:
    core = broker()
    core.on_link_up("b2", 0.0)
    assert core.on_link_down("b2", 1.0, orderly=True) == []
    core.on_link_up("b2", 2.0)
    assert sent(core.on_link_down("b2", 3.0), Kind.BEAT) == ["b2"]
    lost = core.on_unreachable("b2", 4.0)
    assert Note("lost-peer", {"peer": "b2"}) in lost
    assert core.on_unreachable("s1", 4.0) == []


def test_a_broker_that_is_found_again_is_told_so_and_only_brokers_may_say_it() -> None:
    core = broker()
    assert Note("lost-peer", {"peer": "b2"}) in core.on_unreachable("b2", 1.0)
    told = [action for action in core.on_link_up("b2", 2.0) if isinstance(action, Send)]
    assert FOUND in [action.message.payload for action in told if action.peer == "b2"]
    assert not any(
        isinstance(one, Refuse) for one in core.on_message("b2", heartbeat_message(2, FOUND), 3.0)
    )
    core.on_link_up("c1", 4.0)
    (refusal,) = core.on_message("c1", heartbeat_message(111, FOUND), 5.0)
    assert isinstance(refusal, Refuse)


def test_an_advertisement_outlives_the_guest_for_a_while() -> None:
    core = broker()
    core.on_link_up("s1", 0.0)
    core.on_link_up("s2", 0.0)
    told = core.on_message("s1", Message(Kind.ADVERTISE, topic="slope"), 1.0)
    assert sent(told, Kind.ADVERTISED) == ["s1"]
    core.on_link_down("s1", 2.0)
    again = core.on_message("s2", Message(Kind.ADVERTISE, topic="slope"), 3.0)
    assert sent(again, Kind.ADVERTISED) == ["s2"], "nothing had to be done for it"
    core.on_link_down("s2", 4.0)
    assert isinstance(core._node, SgTbps)
    core.on_deadline(3.9 + LINGER_S)
    assert core._node.graph.own_keys()
    core.on_deadline(4.0 + LINGER_S)
    assert core._node.graph.own_keys() == []


def test_a_sensor_that_repeats_itself_is_remembered_but_not_passed_on() -> None:
    core = broker()
    for guest in ("s1", "c1", "c2"):
        core.on_link_up(guest, 0.0)
    core.on_message("c1", Message(Kind.SUBSCRIBE, topic="slope"), 1.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY | REPEATED, message_id=7, topic="slope")
    actions = core.on_message("s1", message, 2.0)
    assert sent(actions, Kind.PUBLISH) == ["c1"], "who is here may have missed it"
    core.on_message("c2", Message(Kind.SUBSCRIBE, topic="slope"), 3.0)
    actions = core.on_message("c2", Message(Kind.MISSED, topic="slope"), 4.0)
    assert sent(actions, Kind.PUBLISH) == ["c2"]
    assert sent(core.on_message("s1", message, 5.0), Kind.PUBLISH) == []


def test_a_copy_that_comes_again_is_answered_again_and_nothing_else() -> None:
    core = broker()
    core.on_link_up("s1", 0.0)
    core.on_link_up("c1", 0.0)
    core.on_message("c1", Message(Kind.SUBSCRIBE, topic="slope"), 1.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    assert sent(core.on_message("s1", message, 2.0), Kind.PUBLISH) == ["c1"]
    assert core.on_message("s1", message, 3.0) == [], "the answer is still to come"
    answer = acknowledgement(111, message.forwarded())
    assert sent(core.on_message("c1", answer, 4.0), Kind.TAKEN) == ["s1"]
    again = core.on_message("s1", message, 5.0)
    assert sent(again, Kind.TAKEN) == ["s1"]
    assert len(again) == 1


@pytest.mark.parametrize("stopping", [True, False])
def test_the_last_broker_takes_what_is_published_at_once_if_the_others_said_that_they_stop(
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
    told = core.on_message("c1", answer, 4.0)
    assert sent(told, Kind.TAKEN) == (["s1"] if stopping else []), "else b2 may be cut off"


def test_what_nobody_subscribes_to_is_noted_and_answered_when_nobody_came() -> None:
    core = broker(hold_s=10)
    core.on_link_up("s1", 0.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    core.on_message("s1", Message(Kind.ADVERTISE, topic="slope"), 1.0)
    told = core.on_message("s1", message, 2.0)
    assert Note("withheld", {"id": f"{7:016x}", "topic": "slope"}) in told
    assert sent(told, Kind.TAKEN) == []
    assert sent(core.on_deadline(12.5), Kind.TAKEN) == ["s1"]


def test_what_waits_for_its_advertisement_is_not_answered_before_however_the_links_are() -> None:
    station = Station("b5", 5, (BrokerName("b2", 2),), (BrokerName("b2", 2),))
    core = METHODS["sg-tbps"](station, {}, Random(7))
    core.on_deadline(0.0)
    core.on_link_up("b2", 0.0)
    core.on_link_up("s1", 0.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    told = core.on_message("s1", message, 1.0)
    told += core.on_link_down("b2", 1.1)
    told += core.on_unreachable("b2", 1.2)
    told += core.on_link_up("b2", 1.3)
    told += core.on_deadline(8.0)
    assert sent(told, Kind.TAKEN) == []
    assert not core.ready


def test_the_brokers_own_topic_is_not_for_guests() -> None:
    core = broker()
    core.on_link_up("c1", 0.0)
    (refusal,) = core.on_message("c1", Message(Kind.SUBSCRIBE, topic=ANCHOR_TOPIC), 1.0)
    assert isinstance(refusal, Refuse)


def test_a_broker_that_leaves_takes_nothing_on() -> None:
    core = broker()
    core.on_link_up("s1", 0.0)
    core.leave(1.0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=7, topic="slope")
    assert core.on_message("s1", message, 2.0) == []
    assert core.left
