"""Valid publications, their numbers, and how a sensor plays a timeline."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.wire import MAX_PAYLOAD_BYTES, decode, encode, message_id
from nodes.runtime.publisher import InvalidPublication, Publication, Publisher, publication
from nodes.runtime.sensor import Player, timeline


@pytest.mark.parametrize(
    ("topic", "priority", "size", "place", "sentence"),
    [
        ("", 1, 0, (), "topic is ''"),
        (None, 1, 0, (), "topic is None"),
        ("t" * 256, 1, 0, (), "topic of 256 bytes"),
        ("\ud800", 1, 0, (), "UTF-8"),
        ("t", 0, 0, (), "priority is 0; it goes from 1 to 5"),
        ("t", 6, 0, (), "priority is 6"),
        ("t", True, 0, (), "priority is True"),
        ("t", 1, -1, (), "size is -1"),
        ("t", 1, 1.5, (), "size is 1.5"),
        ("t", 1, MAX_PAYLOAD_BYTES + 1, (), "it goes from 0 to"),
        ("{4}t", 1, 0, (), "only subscriptions begin with {"),
        ("t", 1, 0, None, "place is None"),
        ("t", 1, 0, [1] * 9, "at most 8 coordinates"),
        ("t", 1, 0, [1.5], "coordinates go from 0"),
        ("t", 1, 0, [2**32], "coordinates go from 0"),
    ],
)
def test_invalid_publications_are_refused(
    topic: Any, priority: Any, size: Any, place: Any, sentence: str
) -> None:
    with pytest.raises(InvalidPublication, match=sentence):
        publication(topic, priority, size, place)


@given(st.integers(0, 3000), st.integers(0, 2**32 - 1))
def test_a_publication_has_the_size_asked_for_and_the_next_number(size: int, number: int) -> None:
    publisher = Publisher(number, last_counter=41)
    message = publisher.make(Publication("t", 3, size, (1, number)), published_ns=7)
    assert len(message.payload) == size
    assert message.message_id == message_id(number, 42)
    assert (message.hops, message.published_ns, message.priority) == (1, 7, 3)
    assert message.place == (1, number)
    assert decode(encode(message)) == message
    assert publisher.make(Publication("t", 3, size), 8).message_id == message_id(number, 43)


def action(at_ns: Any, **more: Any) -> dict[str, Any]:
    return {"at_ns": at_ns, "topic": "t", "priority": 1, "size": 1, **more}


def test_a_timeline_is_sorted_and_simultaneous_publications_keep_their_order() -> None:
    moments = timeline(100, [action(9, size=1), action(3, size=2), action(9, size=3)])
    assert [(moment.due_ns, moment.what.size) for moment in moments] == [
        (103, 2),
        (109, 1),
        (109, 3),
    ]


@pytest.mark.parametrize(
    ("start_ns", "actions", "sentence"),
    [
        (None, [], "play takes start_ns"),
        (0, {}, "play takes start_ns"),
        (0, [5], r"actions\[0\] needs at_ns, topic, priority, size"),
        (0, [action(0), {"at_ns": 0}], r"actions\[1\] needs"),
        (0, [action("soon")], r"actions\[0\]: at_ns is 'soon'"),
        (True, [], "play takes start_ns"),
        (0, [action(False)], r"actions\[0\]: at_ns is False"),
        (0, [action(-1)], r"actions\[0\]: start_ns \+ at_ns is -1; it goes from 0"),
        (
            2**63 - 1,
            [action(0), action(1)],
            r"actions\[1\]: start_ns \+ at_ns is 9223372036854775808",
        ),
        (0, [action(10**400)], r"actions\[0\]: start_ns \+ at_ns is 1000"),
        (0, [action(0, priority=7)], r"actions\[0\]: priority is 7"),
    ],
)
def test_a_timeline_with_a_mistake_names_the_place(
    start_ns: Any, actions: Any, sentence: str
) -> None:
    with pytest.raises(InvalidPublication, match=sentence):
        timeline(start_ns, actions)


def test_nothing_is_played_before_its_time_and_nothing_is_left_out() -> None:
    played: list[tuple[int, int]] = []
    watched: list[asyncio.Task[None]] = []

    async def play() -> None:
        player = Player(
            lambda what, due_ns: played.append((due_ns, time.time_ns())), watched.append
        )
        start = time.time_ns() + 10_000_000
        player.play(timeline(start, [action(at * 3_000_000) for at in range(-2, 8)]))
        assert player.to_come == 10
        while player.to_come:
            await asyncio.sleep(0.005)

    asyncio.run(play())
    assert len(played) == 10
    assert len(watched) == 1
    assert all(at >= due for due, at in played)


def test_after_stop_nothing_is_played() -> None:
    played: list[Publication] = []

    async def play() -> None:
        player = Player(lambda what, due_ns: played.append(what), lambda task: None)
        player.play(timeline(time.time_ns() + 20_000_000, [action(0)]))
        player.stop()
        assert player.to_come == 0
        await asyncio.sleep(0.04)

    asyncio.run(play())
    assert played == []


@pytest.mark.parametrize("step_ns", [-30_000_000, 3_600_000_000_000])
def test_the_player_follows_a_clock_that_is_set_while_a_timeline_plays(step_ns: int) -> None:
    played: list[int] = []

    async def play() -> None:
        began = time.monotonic_ns()
        due_ns = 1_000_000_000_000 + 20_000_000 + max(0, step_ns)

        def clock() -> int:
            """A clock that is set after 10 ms."""
            gone_ns = time.monotonic_ns() - began
            return 1_000_000_000_000 + gone_ns + (step_ns if gone_ns > 10_000_000 else 0)

        def publish(what: Publication, due_ns: int) -> None:
            played.append(clock() - due_ns)

        player = Player(publish, lambda task: None, clock)
        player.play(timeline(due_ns, [action(0)]))
        end = time.monotonic() + 60
        while player.to_come and time.monotonic() < end:
            await asyncio.sleep(0.005)

    asyncio.run(play())
    (late_ns,) = played
    assert late_ns >= 0
