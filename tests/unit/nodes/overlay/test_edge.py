"""Sensors and subscribers at the edge: what they send, keep and acknowledge."""

from dataclasses import replace

import pytest

from nodes.overlay.base import (
    Acknowledged,
    Action,
    BrokerName,
    Deliver,
    Drop,
    Duplicate,
    Note,
    Refuse,
    Send,
    Station,
)
from nodes.overlay.edge import Edge
from nodes.overlay.reliability import digest
from nodes.overlay.reliability.custody import acknowledgement
from nodes.overlay.reliability.dedup import DeliveryRecord
from nodes.overlay.reliability.heartbeat import ANSWER, QUESTION, heartbeat_message
from nodes.overlay.reliability.outbox import MAX_REPEATED, RETRY_S
from nodes.overlay.reliability.settings import ReliabilitySettings, reliability_settings
from nodes.protocol.wire import (
    CUSTODY,
    MAX_PAYLOAD_BYTES,
    MAX_SUBSCRIPTIONS,
    REPEATED,
    Kind,
    Message,
    message_id,
)

ME = Station("c1", 3, (BrokerName("b1", 1), BrokerName("b2", 2)))
STAR = reliability_settings("star", {})
QUIET = ReliabilitySettings(heartbeat_s=None)  # custody, no heartbeats


def control(kind: Kind, topic: str, payload: bytes = b"") -> Message:
    return Message(kind, origin=3, topic=topic, payload=payload)


def alert(counter: int, level: int = 5, topic: str = "rain", size: int = 4) -> Message:
    """A message as the application publishes it."""
    identity = message_id(3, counter)
    return Message(Kind.PUBLISH, level, 1, 0, 3, identity, 7, topic, bytes(size))


def kept(message: Message) -> Message:
    """The message as it is sent with custody."""
    return replace(message, flags=CUSTODY)


def sent_messages(actions: list[Action]) -> list[Message]:
    return [action.message for action in actions if isinstance(action, Send)]


# As in a star


def test_a_subscriber_is_ready_when_all_topics_are_confirmed() -> None:
    edge = Edge(ME, STAR, ("rain", "tilt"))
    assert not edge.ready
    assert edge.on_link_up("b1", 0) == [
        Send("b1", control(Kind.SUBSCRIBE, "rain")),
        Send("b1", control(Kind.SUBSCRIBE, "tilt")),
    ]
    edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="rain"), 1)
    assert not edge.ready
    edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="tilt"), 2)
    assert edge.ready


def test_a_sensor_is_ready_when_connected() -> None:
    edge = Edge(ME, STAR)
    assert not edge.ready
    assert edge.on_link_up("b1", 0) == []
    assert edge.ready


def test_in_a_star_a_client_only_subscribes_again_after_a_broken_link() -> None:
    edge = Edge(ME, STAR, ("rain",))
    edge.on_link_up("b1", 0)
    edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="rain"), 1)
    edge.on_message("b1", alert(1), 1)
    edge.publish(alert(2), 1)
    assert edge.advertise(["tilt"], 1) == []
    assert edge.on_link_down("b1", 2) == []
    assert not edge.ready
    assert edge.on_link_up("b1", 3) == [Send("b1", control(Kind.SUBSCRIBE, "rain"))]
    assert not edge.ready
    assert edge.next_deadline() is None


def test_publications_without_custody_go_to_the_last_broker_also_without_a_link() -> None:
    edge = Edge(ME, STAR)
    assert edge.publish(alert(1), 0) == [Send("b1", alert(1))]
    edge.on_link_up("b2", 1)
    assert edge.publish(alert(2), 1) == [Send("b2", alert(2))]
    edge.on_link_down("b2", 2)
    assert edge.publish(alert(3), 2) == [Send("b2", alert(3))]
    assert edge.left


def test_a_publication_is_delivered_once() -> None:
    edge = Edge(ME, STAR, ("rain",))
    edge.on_link_up("b1", 0)
    message = Message(Kind.PUBLISH, message_id=message_id(2, 1), topic="rain")
    assert edge.on_message("b1", message, 1) == [Deliver(message)]
    assert edge.on_message("b1", message, 2) == [Duplicate(message)]


@pytest.mark.parametrize("kind", [Kind.SUBSCRIBE, Kind.OVERLAY, Kind.MISSED, Kind.ADVERTISE])
def test_messages_meant_for_brokers_are_refused(kind: Kind) -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    (action,) = edge.on_message("b1", Message(kind, topic="rain"), 1)
    assert isinstance(action, Refuse)


def test_a_confirmation_of_another_topic_changes_nothing() -> None:
    edge = Edge(ME, STAR, ("rain",))
    edge.on_link_up("b1", 0)
    assert edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="tilt"), 1) == []
    assert not edge.ready


# What a sensor keeps in its outbox


def test_an_alert_is_pending_until_it_is_acknowledged() -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    assert edge.publish(alert(1), 1) == [Send("b1", kept(alert(1)))]
    assert (edge.pending, edge.left) == (1, False)
    assert edge.is_pending(message_id(3, 1))
    assert edge.on_message("b1", acknowledgement(1, alert(1)), 2) == [
        Acknowledged(message_id(3, 1))
    ]
    assert edge.on_message("b1", acknowledgement(1, alert(1)), 2) == []
    assert (edge.pending, edge.left) == (0, True)


def test_levels_without_custody_go_out_as_they_are() -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    assert sent_messages(edge.publish(alert(1, level=2), 1)) == [alert(1, level=2)]
    assert sent_messages(edge.publish(alert(2, level=3), 1)) == [kept(alert(2, level=3))]
    assert edge.pending == 1


def test_pending_publications_go_to_the_next_broker_the_most_urgent_first() -> None:
    edge = Edge(ME, QUIET)
    edge.publish(alert(1, level=3), 0)
    edge.on_link_up("b1", 0)
    edge.publish(alert(2, level=5), 1)
    edge.on_link_down("b1", 2)
    assert edge.publish(alert(3, level=3), 3) == []
    assert edge.on_link_up("b2", 4) == [
        Send("b2", control(Kind.ADVERTISE, "rain")),
        Send("b2", kept(alert(2, level=5))),
        Send("b2", kept(alert(1, level=3))),
        Send("b2", kept(alert(3, level=3))),
    ]


def test_an_unacknowledged_publication_is_sent_again_with_growing_pauses() -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    edge.publish(alert(1), 0)
    assert edge.next_deadline() == RETRY_S
    assert edge.on_deadline(RETRY_S - 1) == []
    assert sent_messages(edge.on_deadline(RETRY_S)) == [kept(alert(1))]
    assert edge.on_deadline(2 * RETRY_S) == []
    assert sent_messages(edge.on_deadline(3 * RETRY_S)) == [kept(alert(1))]
    edge.on_message("b1", acknowledgement(1, alert(1)), 200)
    assert edge.on_deadline(1e9) == []
    assert edge.next_deadline() is None


def test_without_a_link_nothing_is_sent_again() -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    edge.publish(alert(1), 0)
    edge.on_link_down("b1", 1)
    assert edge.next_deadline() is None
    assert edge.on_deadline(1e9) == []


def test_recently_acknowledged_publications_are_repeated_to_the_next_broker() -> None:
    edge = Edge(ME, ReliabilitySettings(heartbeat_s=None, retain_s=100))
    edge.on_link_up("b1", 0)
    for counter in range(1, MAX_REPEATED + 3):
        edge.publish(alert(counter), 0)
        edge.on_message("b1", acknowledgement(1, alert(counter)), counter)
    edge.on_link_down("b1", 70)
    repeated = [m for m in sent_messages(edge.on_link_up("b2", 70)) if m.kind is Kind.PUBLISH]
    assert repeated == [
        replace(alert(counter), flags=CUSTODY | REPEATED) for counter in range(3, MAX_REPEATED + 3)
    ]
    edge.on_link_down("b2", 71)
    late = [m for m in sent_messages(edge.on_link_up("b1", 150)) if m.kind is Kind.PUBLISH]
    assert [m.message_id for m in late] == [message_id(3, c) for c in range(51, MAX_REPEATED + 3)]


def test_a_large_message_is_not_repeated_and_pushes_nothing_out() -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    for message in (alert(1), alert(2, size=100_000)):
        edge.publish(message, 0)
        edge.on_message("b1", acknowledgement(1, message), 1)
    edge.on_link_down("b1", 2)
    again = [
        m.message_id for m in sent_messages(edge.on_link_up("b1", 3)) if m.kind is Kind.PUBLISH
    ]
    assert again == [message_id(3, 1)]


def test_restored_publications_are_sent_over_the_first_link() -> None:
    edge = Edge(ME, QUIET)
    assert edge.restore([kept(alert(1)), kept(alert(2))], 0) == []
    assert edge.pending == 2
    assert sent_messages(edge.on_link_up("b1", 1)) == [
        control(Kind.ADVERTISE, "rain"),
        kept(alert(1)),
        kept(alert(2)),
    ]


def test_publications_acknowledged_before_a_restart_are_repeated_over_the_first_link() -> None:
    edge = Edge(ME, QUIET)
    edge.repeat([alert(1)], 0)
    edge.restore([alert(2)], 0)
    assert edge.pending == 1
    repeated = replace(alert(1), flags=CUSTODY | REPEATED)
    assert sent_messages(edge.on_link_up("b1", 1)) == [
        control(Kind.ADVERTISE, "rain"),
        kept(alert(2)),
        repeated,
    ]


def test_a_full_outbox_drops_the_newest_of_the_least_urgent_and_logs_it() -> None:
    edge = Edge(ME, QUIET)
    half = MAX_PAYLOAD_BYTES // 2
    edge.publish(alert(1, level=3, size=half), 0)
    edge.publish(alert(2, level=3, size=half), 0)
    (note,) = edge.publish(alert(3, level=4, size=half), 0)
    assert isinstance(note, Note)
    assert note.event == "drop"
    assert note.details["id"] == f"{message_id(3, 2):016x}"
    again = [
        m.message_id & 0xFF
        for m in sent_messages(edge.on_link_up("b1", 1))
        if m.kind is Kind.PUBLISH
    ]
    assert again == [3, 1]


def test_a_publication_that_does_not_fit_is_sent_once_without_custody_and_logged() -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    edge.publish(alert(1, size=MAX_PAYLOAD_BYTES), 0)
    note, sending = edge.publish(alert(2, size=MAX_PAYLOAD_BYTES), 0)
    assert isinstance(note, Note)
    assert note.event == "overflow"
    assert sending == Send("b1", alert(2, size=MAX_PAYLOAD_BYTES))
    assert edge.pending == 1


def test_an_acknowledgement_that_does_not_name_its_copy_is_refused() -> None:
    edge = Edge(ME, QUIET)
    edge.on_link_up("b1", 0)
    edge.publish(alert(1), 0)
    (action,) = edge.on_message("b1", Message(Kind.ACK, message_id=message_id(3, 1)), 1)
    assert isinstance(action, Refuse)
    assert edge.pending == 1


def test_each_topic_is_advertised_once_on_each_link() -> None:
    edge = Edge(ME, QUIET)
    assert edge.advertise(["rain", "tilt", "rain"], 0) == []
    both = [control(Kind.ADVERTISE, "rain"), control(Kind.ADVERTISE, "tilt")]
    assert sent_messages(edge.on_link_up("b1", 1)) == both
    assert edge.advertise(["rain"], 2) == []
    assert sent_messages(edge.advertise(["snow"], 2)) == [control(Kind.ADVERTISE, "snow")]
    assert edge.on_message("b1", Message(Kind.ADVERTISED, topic="rain"), 3) == []
    edge.on_link_down("b1", 4)
    assert sent_messages(edge.on_link_up("b2", 5)) == [*both, control(Kind.ADVERTISE, "snow")]


def test_no_more_topics_are_advertised_than_a_broker_takes() -> None:
    edge = Edge(ME, QUIET)
    edge.advertise((f"t{i}" for i in range(2 * MAX_SUBSCRIPTIONS)), 0)
    assert len(sent_messages(edge.on_link_up("b1", 1))) == MAX_SUBSCRIPTIONS


# What a subscriber acknowledges


def test_a_subscriber_acknowledges_each_delivery_and_each_repetition() -> None:
    edge = Edge(ME, QUIET, ("rain",))
    edge.on_link_up("b1", 0)
    message = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=message_id(9, 1), topic="rain")
    answer = Send("b1", acknowledgement(3, message))
    assert edge.on_message("b1", message, 1) == [Deliver(message), answer]
    again = replace(message, flags=CUSTODY | REPEATED)
    assert edge.on_message("b1", again, 2) == [Duplicate(again), answer]


def test_an_alert_that_comes_again_after_thousands_of_others_is_recognised() -> None:
    edge = Edge(ME, QUIET, ("rain",))
    edge.on_link_up("b1", 0)
    first = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=message_id(9, 1), topic="rain")
    edge.on_message("b1", first, 0)
    for counter in range(2, 3000):
        routine = Message(Kind.PUBLISH, 1, message_id=message_id(9, counter), topic="rain")
        edge.on_message("b1", routine, 1)
    assert isinstance(edge.on_message("b1", first, 2)[0], Duplicate)


def test_a_subscriber_sends_a_digest_of_recent_deliveries_for_each_topic_after_a_break() -> None:
    edge = Edge(ME, ReliabilitySettings(heartbeat_s=None, retain_s=100), ("rain", "tilt"))
    assert len(sent_messages(edge.on_link_up("b1", 0))) == 2, (
        "a subscriber that was never connected has missed nothing"
    )
    for counter, at in ((1, 10.0), (2, 60.0), (3, 90.0)):
        identity = message_id(9, counter)
        received = Message(Kind.PUBLISH, 5, flags=CUSTODY, message_id=identity, topic="rain")
        edge.on_message("b1", received, at)
    edge.on_link_down("b1", 110)
    subscribe_rain, subscribe_tilt, rain, tilt = sent_messages(edge.on_link_up("b2", 120))
    assert (subscribe_rain.kind, subscribe_tilt.kind) == (Kind.SUBSCRIBE, Kind.SUBSCRIBE)
    assert (rain.kind, rain.topic, tilt) == (Kind.MISSED, "rain", control(Kind.MISSED, "tilt"))
    has = digest.decode(rain.payload)
    assert [counter for counter in (1, 2, 3, 4) if message_id(9, counter) in has] == [2, 3]


def test_a_restarted_subscriber_knows_its_deliveries_and_asks_for_the_rest() -> None:
    edge = Edge(ME, QUIET, ("rain",))
    before = [
        DeliveryRecord(message_id(9, 1), "rain", 5, -50.0),
        DeliveryRecord(message_id(9, 2), "rain", 1, -40.0),
    ]
    edge.resume(before)
    _, missed = sent_messages(edge.on_link_up("b1", 0))
    has = digest.decode(missed.payload)
    assert message_id(9, 1) in has
    assert message_id(9, 2) not in has, "brokers retain only publications with custody"
    for counter in (1, 2):
        message = Message(Kind.PUBLISH, 5, message_id=message_id(9, counter), topic="rain")
        assert edge.on_message("b1", message, 1) == [Duplicate(message)]


# Heartbeats


def test_a_silent_broker_is_asked_and_then_given_up() -> None:
    edge = Edge(ME, ReliabilitySettings(heartbeat_s=5), ("rain",))
    edge.on_link_up("b1", 0)
    question = [Send("b1", heartbeat_message(3, QUESTION))]
    assert edge.next_deadline() == 5
    assert edge.on_deadline(5) == question
    assert edge.on_deadline(10) == question
    (drop,) = edge.on_deadline(15)
    assert isinstance(drop, Drop)
    assert (edge.broker, edge.ready) == (None, False)
    assert edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="rain"), 16) == []
    assert edge.on_link_down("b1", 17) == []
    assert edge.next_deadline() is None


def test_a_broker_from_which_bytes_come_is_not_given_up() -> None:
    edge = Edge(ME, ReliabilitySettings(heartbeat_s=5))
    edge.on_link_up("b1", 0)
    edge.on_deadline(5)
    edge.on_deadline(10)
    edge.on_activity("b1", 12)
    assert edge.on_deadline(15) == []
    assert edge.broker == "b1"


def test_a_question_is_answered_unless_something_else_was_just_sent() -> None:
    edge = Edge(ME, ReliabilitySettings(heartbeat_s=5))
    edge.on_link_up("b1", 0)
    question = heartbeat_message(1, QUESTION)
    assert edge.on_message("b1", question, 1) == [Send("b1", heartbeat_message(3, ANSWER))]
    assert edge.on_message("b1", question, 2) == []
    assert edge.on_message("b1", heartbeat_message(1, ANSWER), 9) == []
