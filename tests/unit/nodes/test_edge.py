"""Sensors and subscribers at the edge, and their memory of what they have seen."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.base import BrokerName, Deliver, Duplicate, Refuse, Send, Station
from nodes.overlay.edge import Edge
from nodes.overlay.seen import MAX_ORIGINS, WINDOW, Seen
from nodes.wire import Kind, Message, message_id

ME = Station("c1", 3, (BrokerName("b1", 1),))


def subscribe(topic: str) -> Message:
    return Message(Kind.SUBSCRIBE, origin=3, topic=topic)


def test_a_subscriber_is_ready_when_all_topics_are_confirmed() -> None:
    edge = Edge(ME, "b1", ("rain", "tilt"))
    assert not edge.ready
    assert edge.on_link_up("b1", 0) == [
        Send("b1", subscribe("rain")),
        Send("b1", subscribe("tilt")),
    ]
    edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="rain"), 1)
    assert not edge.ready
    edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="tilt"), 2)
    assert edge.ready


def test_a_sensor_is_ready_when_connected() -> None:
    edge = Edge(ME, "b1", ())
    assert not edge.ready
    assert edge.on_link_up("b1", 0) == []
    assert edge.ready


def test_after_a_break_a_subscriber_subscribes_again() -> None:
    edge = Edge(ME, "b1", ("rain",))
    edge.on_link_up("b1", 0)
    edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="rain"), 1)
    assert edge.on_link_down("b1", 2) == []
    assert not edge.ready
    assert edge.on_link_up("b1", 3) == [Send("b1", subscribe("rain"))]
    assert not edge.ready


def test_what_is_published_goes_to_the_home_broker_also_without_a_link() -> None:
    message = Message(Kind.PUBLISH, topic="rain")
    assert Edge(ME, "b1", ()).publish(message, 0) == [Send("b1", message)]


def test_a_publication_is_delivered_once() -> None:
    edge = Edge(ME, "b1", ("rain",))
    edge.on_link_up("b1", 0)
    message = Message(Kind.PUBLISH, message_id=message_id(2, 1), topic="rain")
    assert edge.on_message("b1", message, 1) == [Deliver(message)]
    assert edge.on_message("b1", message, 2) == [Duplicate(message)]


def test_a_broker_that_subscribes_at_the_edge_is_refused() -> None:
    edge = Edge(ME, "b1", ())
    (action,) = edge.on_message("b1", Message(Kind.SUBSCRIBE, topic="rain"), 1)
    assert isinstance(action, Refuse)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, WINDOW - 1)), max_size=60))
def test_within_the_window_every_repetition_is_recognised(ids: list[tuple[int, int]]) -> None:
    seen, model = Seen(), set()
    for origin, counter in ids:
        assert seen.add(message_id(origin, counter)) == ((origin, counter) not in model)
        model.add((origin, counter))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=60))
def test_what_is_new_is_never_taken_for_a_repetition(counters: list[int]) -> None:
    seen, model = Seen(), set()
    for counter in counters:
        new = seen.add(message_id(1, counter))
        assert new or counter in model
        model.add(counter)


def test_made_up_origins_do_not_fill_the_memory_and_who_speaks_is_not_forgotten() -> None:
    seen = Seen()
    assert seen.add(message_id(0, 1))
    assert seen.add(message_id(1, 1))
    for origin in range(2, 3 * MAX_ORIGINS):
        assert seen.add(message_id(origin, 1))
        assert not seen.add(message_id(0, 1))
    assert seen.origins == MAX_ORIGINS
    assert seen.add(message_id(1, 1))  # so long ago that it counts as new


def test_a_confirmation_of_what_nobody_asked_for_changes_nothing() -> None:
    edge = Edge(ME, "b1", ("rain",))
    edge.on_link_up("b1", 0)
    assert edge.on_message("b1", Message(Kind.SUBSCRIBED, topic="tilt"), 1) == []
    assert not edge.ready
