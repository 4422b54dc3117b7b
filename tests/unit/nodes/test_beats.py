"""Signs of life: what they cost at most, who is found dead, and who never is."""

import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.overlay.beats import ANSWER, BEAT_COST, QUESTION, Beats, Due, beat
from nodes.overlay.promises import Promises
from nodes.wire import Kind, encode

PEERS = [f"b{i}" for i in range(40)]


def test_a_silent_peer_is_asked_twice_and_then_dead() -> None:
    beats = Beats(Promises(beat_s=5))
    beats.up("b1", 0)
    assert beats.next_deadline() == 5
    assert beats.due(4.9) == Due()
    assert beats.due(5) == Due(ask=("b1",))
    assert beats.due(9.9) == Due()
    assert beats.due(10) == Due(ask=("b1",))
    assert beats.due(15) == Due(dead=("b1",))
    assert beats.next_deadline() is None


def test_whatever_is_heard_is_a_sign_of_life() -> None:
    beats = Beats(Promises(beat_s=5))
    beats.up("b1", 0)
    beats.due(5)
    beats.due(10)
    beats.heard("b1", 14)
    assert beats.due(15) == Due()
    assert beats.due(19) == Due(ask=("b1",))


def test_the_same_sign_told_twice_is_no_new_one() -> None:
    beats = Beats(Promises(beat_s=5))
    beats.up("b1", 0)
    for at in (5, 10, 15):
        beats.heard("b1", 0)
        dead = beats.due(at).dead
    assert dead == ("b1",)


def test_a_link_that_is_gone_is_not_watched() -> None:
    beats = Beats(Promises(beat_s=5))
    beats.up("b1", 0)
    beats.down("b1")
    beats.down("b1")
    beats.heard("b1", 1)
    beats.sent("b1", 1)
    assert beats.next_deadline() is None
    assert beats.due(100) == Due()


def test_without_beats_nobody_is_asked() -> None:
    beats = Beats(Promises(beat_s=None))
    beats.up("b1", 0)
    assert beats.next_deadline() is None
    assert beats.due(1e9) == Due()
    assert beats.must_answer("b1", 0), "a peer that asks all the same is alive and wants to know"


def test_a_question_is_answered_unless_something_is_on_its_way_already() -> None:
    beats = Beats(Promises(beat_s=5))
    assert beats.must_answer("b2", 0)
    beats.up("b1", 0)
    assert beats.must_answer("b1", 1)
    beats.sent("b1", 1)
    assert not beats.must_answer("b1", 5.9)
    assert beats.must_answer("b1", 6)


@given(delay=st.floats(0.001, 4), asks_at=st.floats(5, 100), sent_at=st.floats(0, 100))
def test_who_gets_no_answer_hears_something_else_after_asking(
    delay: float, asks_at: float, sent_at: float
) -> None:
    """The asker asks at `asks_at` because it heard nothing for 5 s before; the other sent something at `sent_at`."""
    came_at = sent_at + delay
    if asks_at - 5 < came_at <= asks_at or sent_at > asks_at + delay:
        return  # then it would not have asked; or this was sent after the question came
    beats = Beats(Promises(beat_s=5))
    beats.up("b1", 0)
    beats.sent("b1", sent_at)
    assert beats.must_answer("b1", asks_at + delay) or came_at > asks_at


@pytest.mark.parametrize("payload", [QUESTION, ANSWER])
def test_a_beat_is_as_large_as_its_cost_says_at_most(payload: bytes) -> None:
    message = beat(7, payload)
    assert message.kind is Kind.BEAT
    frame_and_mask, ip_and_tcp = 6, 52
    assert len(encode(message)) + frame_and_mask + ip_and_tcp <= BEAT_COST


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[float, str, str]]:
    """Links that come, go and speak, in the order of time."""
    events = draw(
        st.lists(
            st.tuples(
                st.floats(0, 300, allow_nan=False),
                st.sampled_from(["up", "up", "down", "heard"]),
                st.sampled_from(PEERS),
            ),
            max_size=60,
        )
    )
    return sorted(events, key=lambda event: event[0])


@given(
    stories(),
    st.floats(0.1, 20),
    st.integers(10, 1000),
    st.dictionaries(st.sampled_from(PEERS), st.floats(0, 0.99)),
)
@settings(deadline=None, max_examples=100)
def test_questions_keep_to_the_budget_the_silent_die_in_time_and_who_answers_lives(
    story: list[tuple[float, str, str]], beat_s: float, budget: int, answering: dict[str, float]
) -> None:
    """`answering`: peers that answer each question, after this part of the interval."""
    beats = Beats(Promises(beat_s=beat_s, beat_budget=budget))
    widest = max(beat_s, len(PEERS) * BEAT_COST / budget)  # the longest that an interval can be
    answers: list[tuple[float, str]] = []
    heard: dict[str, float] = {}
    ups = questions = 0

    def look(now: float) -> None:
        nonlocal questions
        ask, dead = beats.due(now)
        questions += len(ask)
        for peer in ask:
            if peer in answering:
                heapq.heappush(answers, (now + answering[peer] * beats.interval, peer))
        for peer in dead:
            assert peer not in answering
            assert now - heard.pop(peer) <= 3 * widest + 1e-6
        for at in heard.values():
            assert now - at <= 3 * widest + 1e-6, "silent for so long, and not dead"

    def pass_time(until: float) -> None:
        while True:
            moments = [answers[0][0]] if answers else []
            if (deadline := beats.next_deadline()) is not None:
                moments.append(deadline)
            if not moments or min(moments) > until:
                return
            now = min(moments)
            while answers and answers[0][0] <= now:
                _, peer = heapq.heappop(answers)
                if peer in heard:
                    heard[peer] = now
                    beats.heard(peer, now)
            look(now)

    for now, what, peer in story:
        pass_time(now)
        if what == "up" and peer not in heard:
            ups += 1
            heard[peer] = now
            beats.up(peer, now)
        elif what == "down" and peer in heard:
            del heard[peer]
            beats.down(peer)
        elif what == "heard" and peer in heard:
            heard[peer] = now
            beats.heard(peer, now)
        look(now)
        assert questions * BEAT_COST <= budget * now + ups * BEAT_COST + 1e-6
    pass_time(400)
    assert questions * BEAT_COST <= budget * 400 + ups * BEAT_COST + 1e-6
