"""HELLO, and the patience before the next try."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.runtime.backoff import CAP_S, FIRST_S, Backoff
from nodes.runtime.greeting import Unwelcome, check, hello
from nodes.wire import Kind, Message, encode


def test_a_hello_of_the_same_lab_is_welcome() -> None:
    assert check(hello("s1", 2, "slope"), "slope") == "s1"
    assert check(hello("b1", 1, "slope"), "slope", expected="b1") == "b1"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("hello", "a text message instead of HELLO"),
        (b"", "not a HELLO: 0 bytes"),
        (b"\x02" + hello("s1", 2, "slope")[1:], "version 2; this node speaks 1"),
        (encode(Message(Kind.SUBSCRIBE, topic="t")), "SUBSCRIBE before HELLO"),
        (encode(Message(Kind.HELLO, payload=b"{")), "HELLO without name and lab"),
        (encode(Message(Kind.HELLO, payload=b"5")), "HELLO without name and lab"),
        (encode(Message(Kind.HELLO, payload=b"\xff")), "HELLO without name and lab"),
        (encode(Message(Kind.HELLO, payload=b'{"name": 5, "lab": "slope"}')), "cannot be one"),
        (hello("", 2, "slope"), "cannot be one"),
        (hello("s1", 2, "valley"), "s1 is of the lab 'valley'; this is 'slope'"),
        (hello("b2", 2, "slope"), "b2 answered where b1 should be"),
    ],
)
def test_anything_else_is_not(said: bytes | str, reason: str) -> None:
    with pytest.raises(Unwelcome, match=reason):
        check(said, "slope", expected="b1")


@given(st.binary(max_size=200))
def test_any_payload_is_a_name_or_unwelcome(payload: bytes) -> None:
    with pytest.raises(Unwelcome):
        check(encode(Message(Kind.HELLO, payload=payload)), "slope")


def row(backoff: Backoff, length: int = 12) -> list[float]:
    return [backoff.next_wait() for _ in range(length)]


@given(st.integers())
def test_the_waits_grow_to_the_cap_and_depend_on_the_seed_only(seed: int) -> None:
    waits = row(Backoff(Random(seed)))
    assert waits == row(Backoff(Random(seed)))
    assert all(0 < wait <= CAP_S for wait in waits)
    assert waits[0] <= FIRST_S
    assert min(waits[7:]) >= CAP_S / 2


def test_only_a_link_that_lived_for_long_makes_the_next_wait_short_again() -> None:
    backoff = Backoff(Random(1))
    row(backoff)
    backoff.on_link_lost(lived_s=CAP_S)
    assert backoff.next_wait() >= CAP_S / 2
    backoff.on_link_lost(lived_s=CAP_S + 0.1)
    assert backoff.next_wait() <= FIRST_S
