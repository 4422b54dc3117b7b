"""Heartbeats: what they cost at most, which peers are found dead, and which never are."""

import heapq

from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.overlay.reliability.heartbeat import (
    ANSWER,
    EXCHANGE_COST,
    FRAME,
    QUESTION,
    Due,
    Heartbeats,
    awaits_answer,
    heartbeat_message,
)
from nodes.overlay.reliability.settings import ReliabilitySettings
from nodes.protocol.wire import CUSTODY, Kind, Message, encode

PEERS = [f"b{i}" for i in range(40)]


def test_a_silent_peer_is_probed_twice_and_then_declared_dead() -> None:
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5))
    heartbeats.up("b1", 0)
    assert heartbeats.next_deadline() == 5
    assert heartbeats.due(4.9) == Due()
    assert heartbeats.due(5) == Due(ask=("b1",))
    assert heartbeats.due(9.9) == Due()
    assert heartbeats.due(10) == Due(ask=("b1",))
    assert heartbeats.due(15) == Due(dead=("b1",))
    assert heartbeats.next_deadline() is None


def test_any_received_message_is_a_sign_of_life() -> None:
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5))
    heartbeats.up("b1", 0)
    heartbeats.due(5)
    heartbeats.due(10)
    heartbeats.received("b1", 14)
    assert heartbeats.due(15) == Due()
    assert heartbeats.due(19) == Due(ask=("b1",))


def test_a_sign_of_life_that_is_reported_twice_counts_once() -> None:
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5))
    heartbeats.up("b1", 0)
    for at in (5, 10, 15):
        heartbeats.received("b1", 0)
        dead = heartbeats.due(at).dead
    assert dead == ("b1",)


def test_a_link_that_is_gone_is_not_watched() -> None:
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5))
    heartbeats.up("b1", 0)
    heartbeats.down("b1")
    heartbeats.down("b1")
    heartbeats.received("b1", 1)
    heartbeats.sent("b1", 1)
    assert heartbeats.next_deadline() is None
    assert heartbeats.due(100) == Due()


def test_without_heartbeats_no_peer_is_probed() -> None:
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=None))
    heartbeats.up("b1", 0)
    assert heartbeats.next_deadline() is None
    assert heartbeats.due(1e9) == Due()
    assert heartbeats.must_answer("b1", 0), (
        "a peer that asks all the same is alive and waits for an answer"
    )


def test_a_question_is_answered_unless_something_is_on_its_way_already() -> None:
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5))
    assert heartbeats.must_answer("b2", 0)
    heartbeats.up("b1", 0)
    assert heartbeats.must_answer("b1", 1)
    heartbeats.sent("b1", 1)
    assert not heartbeats.must_answer("b1", 5.9)
    assert heartbeats.must_answer("b1", 6)


@given(delay=st.floats(0.001, 4), asks_at=st.floats(5, 100), sent_at=st.floats(0, 100))
def test_a_node_whose_probe_is_not_answered_receives_another_message_after_it(
    delay: float, asks_at: float, sent_at: float
) -> None:
    """One node probes at `asks_at`, after 5 s without a message; the other sent something at `sent_at`."""
    came_at = sent_at + delay
    if asks_at - 5 < came_at <= asks_at or sent_at > asks_at + delay:
        return  # then it would not have probed; or this was sent after the probe came
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5))
    heartbeats.up("b1", 0)
    heartbeats.sent("b1", sent_at)
    assert heartbeats.must_answer("b1", asks_at + delay) or came_at > asks_at


def test_question_answer_and_acknowledgement_are_as_large_as_their_cost_says() -> None:
    messages = [heartbeat_message(7, QUESTION), heartbeat_message(7, ANSWER)]
    assert {message.kind for message in messages} == {Kind.HEARTBEAT}
    head_and_mask = 6
    sizes = [len(encode(message)) + head_and_mask + FRAME for message in messages]
    assert sum(sizes) + FRAME == EXCHANGE_COST


def test_with_many_links_a_peer_is_probed_later_but_dies_as_soon_after_the_first_probe() -> None:
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5, heartbeat_budget=EXCHANGE_COST))
    for number in range(20):
        heartbeats.up(f"b{number}", 0)
    for number in range(1, 20):
        heartbeats.received(f"b{number}", 10)
    assert heartbeats.interval == 20
    assert heartbeats.due(20) == Due(ask=("b0",))
    assert heartbeats.due(25) == Due(ask=("b0",))
    assert heartbeats.due(30) == Due(
        ask=tuple(f"b{number}" for number in range(1, 20)), dead=("b0",)
    )


def twenty_links() -> Heartbeats:
    """Twenty links on which something was received at 0, so that a peer may be silent until 20."""
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=5, heartbeat_budget=EXCHANGE_COST))
    for number in range(20):
        heartbeats.up(f"b{number}", -1)
    for number in range(20):
        heartbeats.received(f"b{number}", 0)
    return heartbeats


def test_a_peer_with_a_pending_answer_is_probed_sooner() -> None:
    heartbeats = twenty_links()
    heartbeats.sent("b0", 1)
    heartbeats.sent("b1", 2, awaits=True)
    heartbeats.sent("b1", 4, awaits=True)
    assert heartbeats.due(6.9) == Due()
    assert heartbeats.due(7) == Due(ask=("b1",))
    assert heartbeats.due(12) == Due(ask=("b1",))
    assert heartbeats.due(17) == Due(dead=("b1",))


def test_a_question_and_a_publication_with_custody_are_answered() -> None:
    assert awaits_answer(heartbeat_message(1, QUESTION))
    assert not awaits_answer(heartbeat_message(1, ANSWER))
    assert awaits_answer(Message(Kind.PUBLISH, flags=CUSTODY))
    assert not awaits_answer(Message(Kind.PUBLISH))
    assert not awaits_answer(Message(Kind.OVERLAY))


def test_any_message_of_a_peer_with_a_pending_answer_is_a_sign_of_life() -> None:
    heartbeats = twenty_links()
    heartbeats.sent("b1", 2, awaits=True)
    heartbeats.received("b1", 6)
    assert heartbeats.due(19.9) == Due()
    assert "b1" not in heartbeats.due(20).ask
    assert "b1" in heartbeats.due(26).ask


def test_a_sign_of_life_from_before_the_question_is_no_answer() -> None:
    heartbeats = twenty_links()
    heartbeats.sent("b1", 2, awaits=True)
    heartbeats.received("b1", 1)
    assert heartbeats.due(7) == Due(ask=("b1",))


@st.composite
def link_events(draw: st.DrawFn) -> list[tuple[float, str, str]]:
    """Links that come, go and carry messages, in the order of time."""
    events = draw(
        st.lists(
            st.tuples(
                st.floats(0, 300, allow_nan=False),
                st.sampled_from(["up", "up", "down", "received"]),
                st.sampled_from(PEERS),
            ),
            max_size=60,
        )
    )
    return sorted(events, key=lambda event: event[0])


@given(
    link_events(),
    st.floats(0.1, 20),
    st.integers(10, 1000),
    st.dictionaries(st.sampled_from(PEERS), st.floats(0, 0.99)),
)
@settings(deadline=None, max_examples=100)
def test_probes_keep_to_the_budget_and_find_silent_peers_and_no_others_dead_in_time(
    link_operations: list[tuple[float, str, str]],
    heartbeat_s: float,
    budget: int,
    answering: dict[str, float],
) -> None:
    """`answering`: peers that answer each probe, after this part of `heartbeat_s`."""
    heartbeats = Heartbeats(ReliabilitySettings(heartbeat_s=heartbeat_s, heartbeat_budget=budget))
    widest = max(heartbeat_s, len(PEERS) * EXCHANGE_COST / budget)  # an interval at most
    longest = widest + 2 * heartbeat_s + 1e-6
    answers: list[tuple[float, str]] = []
    received: dict[str, float] = {}
    ups = questions = 0

    def look(now: float) -> None:
        nonlocal questions
        ask, dead = heartbeats.due(now)
        questions += len(ask)
        for peer in ask:
            if peer in answering:
                heapq.heappush(answers, (now + answering[peer] * heartbeat_s, peer))
        for peer in dead:
            assert peer not in answering
            assert now - received.pop(peer) <= longest
        for at in received.values():
            assert now - at <= longest, "silent for so long, and not dead"

    def pass_time(until: float) -> None:
        while True:
            moments = [answers[0][0]] if answers else []
            if (deadline := heartbeats.next_deadline()) is not None:
                moments.append(deadline)
            if not moments or min(moments) > until:
                return
            now = min(moments)
            while answers and answers[0][0] <= now:
                _, peer = heapq.heappop(answers)
                if peer in received:
                    received[peer] = now
                    heartbeats.received(peer, now)
            look(now)

    for now, what, peer in link_operations:
        pass_time(now)
        if what == "up" and peer not in received:
            ups += 1
            received[peer] = now
            heartbeats.up(peer, now)
        elif what == "down" and peer in received:
            del received[peer]
            heartbeats.down(peer)
        elif what == "received" and peer in received:
            received[peer] = now
            heartbeats.received(peer, now)
        look(now)
        assert questions * EXCHANGE_COST <= budget * now + 2 * ups * EXCHANGE_COST + 1e-6
    pass_time(400)
    assert questions * EXCHANGE_COST <= budget * 400 + 2 * ups * EXCHANGE_COST + 1e-6
