"""Readings that wait for others to the same node: how long, how many, and what happens to them."""

from collections.abc import Container
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.collection.aggregation import MOST_BYTES, Bundles
from nodes.protocol.joined import split
from nodes.protocol.wire import Kind, Message, encode

READING = Message(Kind.PUBLISH, topic="slope", payload=b"1.25")


def reading(number: int, **other: Any) -> Message:
    return replace(READING, origin=number, message_id=number, **other)


def always(topic: str, there: Container[int], since: float, until: float, now: float) -> bool:
    return True


def never(topic: str, there: Container[int], since: float, until: float, now: float) -> bool:
    return False


def test_no_reading_waits_if_no_other_is_expected() -> None:
    bundles = Bundles(9, 1.0, never)
    bundles.add(2, reading(1), 0.0)
    assert bundles.leaving(0.0) == [(2, reading(1))]
    assert not bundles


def test_readings_to_one_node_leave_together_when_the_first_one_has_waited_long_enough() -> None:
    bundles = Bundles(9, 1.0, always)
    bundles.add(2, reading(1), 0.0)
    bundles.add(2, reading(2), 0.9)
    bundles.add(3, reading(3), 0.5)
    assert bundles.next_deadline() == 1.0
    assert bundles.leaving(0.99) == []
    [(node, joined)] = bundles.leaving(1.0)
    assert (node, joined.kind, joined.origin) == (2, Kind.JOINED, 9)
    assert split(joined) == [reading(1), reading(2)]
    assert bundles.next_deadline() == 1.5


def test_topics_are_not_joined_with_each_other() -> None:
    bundles = Bundles(9, 1.0, always)
    bundles.add(2, reading(1), 0.0)
    bundles.add(2, reading(2, topic="valley"), 0.0)
    assert [message.kind for _, message in bundles.leaving(1.0)] == [Kind.PUBLISH] * 2


def test_a_reading_that_has_arrived_is_not_expected() -> None:
    bundles = Bundles(9, 1.0, lambda topic, there, since, until, now: not {1, 2} <= set(there))  # type: ignore[call-overload]
    bundles.add(2, reading(1), 0.0)
    assert bundles.leaving(0.1) == []
    bundles.add(2, reading(2), 0.2)
    assert len(bundles.leaving(0.2)) == 1


def test_readings_for_a_dead_node_are_returned() -> None:
    bundles = Bundles(9, 1.0, always)
    bundles.add(2, reading(1), 0.0)
    bundles.add(3, reading(2), 0.0)
    assert bundles.give_back(2) == [reading(1)]
    assert bundles.everything() == [(3, reading(2))]


@given(st.lists(st.integers(0, 3 * MOST_BYTES // 2), max_size=30))
def test_a_bundle_is_never_too_long_and_nothing_is_lost(sizes: list[int]) -> None:
    bundles = Bundles(9, 1.0, always)
    out = []
    for number, size in enumerate(sizes):
        out += bundles.add(2, reading(number, payload=bytes(size)), 0.0)
    out += [message for _, message in bundles.everything()]
    found = [part for one in out for part in (split(one) if one.kind is Kind.JOINED else [one])]
    assert sorted(part.origin for part in found) == list(range(len(sizes)))
    for message in out:
        if message.kind is Kind.JOINED:
            assert len(encode(message)) <= MOST_BYTES + 100
