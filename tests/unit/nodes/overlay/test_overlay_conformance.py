"""The rules for every overlay method: runs on each registered one."""

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
from nodes.overlay.broker import subscriptions
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message, encode

STATION = Station("b1", 1, (BrokerName("b2", 2), BrokerName("b3", 3)))
BROKERS = {"b2", "b3"}

event_lists = st.lists(
    st.tuples(
        st.sampled_from(["up", "down", "away", "lost", "message", "message", "time", "leave"]),
        st.sampled_from(["b2", "b3", "s1", "c1", "c2"]),
        st.builds(
            Message,
            kind=st.sampled_from(Kind),
            priority=st.integers(1, 5),
            hops=st.integers(1, 255),
            flags=st.sampled_from([0, CUSTODY, REPEATED, CUSTODY | REPEATED]),
            message_id=st.integers(0, 9),
            topic=st.sampled_from(["", "a", "b", "zero\0byte", "{3}a", "{1 0-5}a", "{4 2-}a"]),
            payload=st.binary(max_size=4),
            routing=st.one_of(st.just(b""), st.binary(max_size=2)),
            place=st.lists(st.integers(0, 9), max_size=2).map(tuple),
        ),
    ),
    max_size=40,
)


def feed(core: Overlay, events: list[tuple[str, str, Message]]) -> list[list[Action]]:
    """Feed these events to the core; links come up before they are used and stay unique."""
    up: set[str] = set()
    answers = []
    for now, (what, peer, message) in enumerate(events):
        if what == "time":
            answers.append(core.on_deadline(now))
        elif what == "leave":
            answers.append(core.leave(now))
        elif what == "up" and peer not in up:
            up.add(peer)
            answers.append(core.on_link_up(peer, now))
        elif what in ("down", "away") and peer in up:
            up.discard(peer)
            answers.append(core.on_link_down(peer, now, orderly=what == "away"))
        elif what == "lost" and peer in BROKERS:
            up.discard(peer)
            answers.append(core.on_unreachable(peer, now))
        elif what == "message" and peer in up:
            answers.append(core.on_message(peer, message, now))
        for action in answers[-1] if answers else []:
            if isinstance(action, Send):
                assert action.peer in up | BROKERS, "a message to a client without a link"
        deadline = core.next_deadline()
        assert deadline is None or isinstance(deadline, float)
    return answers


def settle(core: Overlay, now: float) -> list[Action]:
    """Let time pass until the core has done what its clients asked for; return all its actions meanwhile."""
    actions: list[Action] = []
    while not core.ready:
        deadline = core.next_deadline()
        assert deadline is not None, "the core has no deadline, and is not ready"
        now = max(now, deadline)
        actions += core.on_deadline(now)
    return actions


@pytest.mark.parametrize("method", METHODS)
@given(events=event_lists)
@settings(deadline=None, max_examples=25)
def test_the_same_events_and_seed_give_the_same_actions(
    method: str, events: list[tuple[str, str, Message]]
) -> None:
    first = feed(METHODS[method](STATION, {}, Random(7)), events)
    again = feed(METHODS[method](STATION, {}, Random(7)), events)
    assert first == again


@pytest.mark.parametrize("method", METHODS)
@given(events=event_lists)
@settings(deadline=None, max_examples=25)
def test_actions_can_be_carried_out(method: str, events: list[tuple[str, str, Message]]) -> None:
    for actions in feed(METHODS[method](STATION, {}, Random(7)), events):
        for action in actions:
            match action:
                case Send(_, message) | Deliver(message) | Duplicate(message):
                    encode(message)
                case Refuse(_, reason):
                    assert reason


@pytest.mark.parametrize("method", METHODS)
def test_a_subscriber_gets_publications_of_a_sensor_on_the_same_broker(method: str) -> None:
    core = METHODS[method](STATION, {}, Random(7))
    core.on_link_up("s1", 0.0)
    core.on_link_up("c1", 1.0)
    confirmed = core.on_message("c1", Message(Kind.SUBSCRIBE, topic="alert"), 2.0)
    confirmed += settle(core, 2.0)
    assert any(
        isinstance(action, Send) and action.peer == "c1" and action.message.kind is Kind.SUBSCRIBED
        for action in confirmed
    )
    published = Message(Kind.PUBLISH, priority=5, message_id=1, topic="alert", payload=b"go")
    sent = core.on_message("s1", published, 60.0) + settle(core, 60.0)
    assert Send("c1", published.forwarded()) in sent
    assert not any(isinstance(action, Send) and action.peer == "s1" for action in sent)


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_that_does_not_exist_is_named(method: str) -> None:
    with pytest.raises(ValueError, match=f"{method} has no parameter 'colour'"):
        METHODS[method](STATION, {"colour": "red"}, Random(7))


@pytest.mark.parametrize("method", METHODS)
def test_reliability_is_chosen_by_parameters(method: str) -> None:
    METHODS[method](STATION, {"custody_from": 5, "retain_s": 60, "heartbeat_s": 2}, Random(7))
    with pytest.raises(ValueError, match=f"{method}'s custody_from is 'always'"):
        METHODS[method](STATION, {"custody_from": "always"}, Random(7))


@pytest.mark.parametrize("method", METHODS)
def test_the_topics_of_one_client_are_limited(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 20
    monkeypatch.setattr(subscriptions, "MAX_SUBSCRIPTIONS", most)
    core = METHODS[method](STATION, {}, Random(7))
    core.on_link_up("c1", 0.0)
    core.on_link_up("c2", 0.0)

    def refuses(peer: str, topic: str, kind: Kind = Kind.SUBSCRIBE) -> bool:
        """Send a message to the core; return whether the core refused it."""
        actions = core.on_message(peer, Message(kind, topic=topic), 1.0)
        return any(isinstance(action, Refuse) for action in actions)

    assert not any(refuses("c1", f"t{i}") for i in range(most))
    assert not refuses("c1", "t0"), "a repeated subscription does not count twice"
    assert refuses("c1", "one more")
    assert not refuses("c2", "one more"), "another client has its own limit"
    refuses("c1", "t0", Kind.UNSUBSCRIBE)
    assert not refuses("c1", "one more")
    core.on_link_down("c1", 3.0)
    core.on_link_up("c1", 4.0)
    assert not refuses("c1", "another")
    assert not any(refuses("c2", f"t{i}", Kind.PUBLISH) for i in range(most))
    assert refuses("c2", "one more", Kind.ADVERTISE)


INVALID = [
    ("s1", Message(Kind.OVERLAY, payload=b"x")),
    ("s1", Message(Kind.PUBLISH, topic="a", routing=b"x")),
    ("s1", Message(Kind.SUBSCRIBED, topic="a")),
    ("s1", Message(Kind.HELLO)),
    ("s1", Message(Kind.ACK, payload=b"x")),
    ("s1", Message(Kind.HEARTBEAT, payload=b"hello")),
    ("s1", Message(Kind.MISSED, topic="a")),
    ("s1", Message(Kind.PUBLISH, flags=REPEATED, topic="a")),
    ("s1", Message(Kind.SUBSCRIBE, topic="{4 9-0}a")),
    ("s1", Message(Kind.SUBSCRIBE, topic="{4")),
    ("s1", Message(Kind.PUBLISH, topic="{4}a")),
    ("s1", Message(Kind.ADVERTISE, topic="{4}a")),
    ("s1", Message(Kind.SUBSCRIBE, topic="{4}" + subscriptions.ANCHOR_TOPIC)),
    ("b2", Message(Kind.SUBSCRIBE, topic="a")),
    ("b2", Message(Kind.PUBLISH, topic="a")),
    ("b2", Message(Kind.PUBLISH, topic="a", routing=b"\xff")),
    ("b2", Message(Kind.OVERLAY, payload=b"\xff")),
    ("b2", Message(Kind.MISSED, topic="a")),
]


@pytest.mark.parametrize("method", METHODS)
def test_a_peer_that_sends_invalid_messages_is_refused(method: str) -> None:
    for peer, message in INVALID:
        core = METHODS[method](STATION, {}, Random(7))
        core.on_link_up(peer, 0.0)
        refusals = [a for a in core.on_message(peer, message, 1.0) if isinstance(a, Refuse)]
        assert [each.peer for each in refusals] == [peer], message


@pytest.mark.parametrize("method", [name for name in METHODS if name != "star"])
def test_a_topic_that_cannot_be_a_key_is_refused(method: str) -> None:
    core = METHODS[method](STATION, {}, Random(7))
    core.on_link_up("c1", 0.0)
    for kind in (Kind.SUBSCRIBE, Kind.ADVERTISE, Kind.PUBLISH):
        (refusal,) = core.on_message("c1", Message(kind, topic="zero\0byte"), 1.0)
        assert isinstance(refusal, Refuse)
    assert core.ready
