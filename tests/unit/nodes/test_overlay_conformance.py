"""What every overlay promises, whichever it is: runs on each registered method."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.overlay import METHODS
from nodes.overlay.base import (
    Action,
    BrokerName,
    Deliver,
    Duplicate,
    Overlay,
    Refuse,
    Send,
    Station,
)
from nodes.wire import MAX_SUBSCRIPTIONS, Kind, Message, encode

STATION = Station("b1", 1, (BrokerName("b2", 2),))

happenings = st.lists(
    st.tuples(
        st.sampled_from(["up", "down", "message", "time"]),
        st.sampled_from(["b2", "s1", "c1", "c2"]),
        st.builds(
            Message,
            kind=st.sampled_from(Kind),
            priority=st.integers(1, 5),
            hops=st.integers(1, 255),
            message_id=st.integers(0, 9),
            topic=st.sampled_from(["", "a", "b"]),
            payload=st.binary(max_size=4),
        ),
    ),
    max_size=40,
)


def happen(core: Overlay, story: list[tuple[str, str, Message]]) -> list[list[Action]]:
    """Let the story happen to the core; links come up before they are used and stay unique."""
    up: set[str] = set()
    answers = []
    for now, (what, peer, message) in enumerate(story):
        if what == "time":
            answers.append(core.on_deadline(now))
        elif what == "up" and peer not in up:
            up.add(peer)
            answers.append(core.on_link_up(peer, now))
        elif what == "down" and peer in up:
            up.discard(peer)
            answers.append(core.on_link_down(peer, now))
        elif what == "message" and peer in up:
            answers.append(core.on_message(peer, message, now))
        for action in answers[-1] if answers else []:
            if isinstance(action, Send | Refuse):
                assert action.peer in up, "an action for a link that is not there"
        deadline = core.next_deadline()
        assert deadline is None or isinstance(deadline, float)
    return answers


@pytest.mark.parametrize("method", METHODS)
@given(story=happenings)
@settings(deadline=None)
def test_the_same_story_and_seed_give_the_same_actions(
    method: str, story: list[tuple[str, str, Message]]
) -> None:
    first = happen(METHODS[method](STATION, {}, Random(7)), story)
    again = happen(METHODS[method](STATION, {}, Random(7)), story)
    assert first == again


@pytest.mark.parametrize("method", METHODS)
@given(story=happenings)
@settings(deadline=None)
def test_actions_can_be_carried_out(method: str, story: list[tuple[str, str, Message]]) -> None:
    for actions in happen(METHODS[method](STATION, {}, Random(7)), story):
        for action in actions:
            match action:
                case Send(_, message) | Deliver(message) | Duplicate(message):
                    encode(message)
                case Refuse(_, reason):
                    assert reason


@pytest.mark.parametrize("method", METHODS)
def test_a_subscriber_on_the_same_broker_gets_what_a_sensor_publishes(method: str) -> None:
    core = METHODS[method](STATION, {}, Random(7))
    core.on_link_up("s1", 0.0)
    core.on_link_up("c1", 1.0)
    confirmed = core.on_message("c1", Message(Kind.SUBSCRIBE, topic="alert"), 2.0)
    assert any(
        isinstance(action, Send) and action.peer == "c1" and action.message.kind is Kind.SUBSCRIBED
        for action in confirmed
    )
    published = Message(Kind.PUBLISH, priority=5, message_id=1, topic="alert", payload=b"go")
    sent = core.on_message("s1", published, 3.0)
    assert Send("c1", published.forwarded()) in sent
    assert not any(isinstance(action, Send) and action.peer == "s1" for action in sent)


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_that_does_not_exist_is_named(method: str) -> None:
    with pytest.raises(ValueError, match=f"{method} has no parameter 'colour'"):
        METHODS[method](STATION, {"colour": "red"}, Random(7))


@pytest.mark.parametrize("method", METHODS)
def test_one_guest_cannot_subscribe_without_end(method: str) -> None:
    core = METHODS[method](STATION, {}, Random(7))
    core.on_link_up("c1", 0.0)
    core.on_link_up("c2", 0.0)

    def subscribe(peer: str, topic: str) -> list[Action]:
        return core.on_message(peer, Message(Kind.SUBSCRIBE, topic=topic), 1.0)

    def refused(actions: list[Action]) -> bool:
        return any(isinstance(action, Refuse) for action in actions)

    assert not any(refused(subscribe("c1", f"t{i}")) for i in range(MAX_SUBSCRIPTIONS))
    assert not refused(subscribe("c1", "t0")), "a repetition is no more than before"
    assert refused(subscribe("c1", "one more"))
    assert not refused(subscribe("c2", "one more")), "another guest has its own number"
    core.on_message("c1", Message(Kind.UNSUBSCRIBE, topic="t0"), 2.0)
    assert not refused(subscribe("c1", "one more"))
    core.on_link_down("c1", 3.0)
    core.on_link_up("c1", 4.0)
    assert not refused(subscribe("c1", "another"))
