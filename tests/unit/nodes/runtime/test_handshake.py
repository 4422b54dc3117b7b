"""HELLO with its proofs, and the backoff before the next attempt."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.wire import Kind, Message, decode, encode
from nodes.runtime.broker_selection import CAP_S, FIRST_S, Backoff
from nodes.runtime.handshake import (
    MAX_HELLO_BYTES,
    MAX_NAME,
    PROOF_HELLO_BYTES,
    Caller,
    HandshakeError,
    Host,
    Identity,
    new_nonce,
)

SECRET = b"of the slope"
SENSOR = Identity("s1", 2, "slope", SECRET)
BROKER = Identity("b1", 1, "slope", SECRET)


def hello_fields(message: bytes) -> dict[str, Any]:
    fields = json.loads(decode(message).payload)
    assert isinstance(fields, dict)
    return fields


def hello(**fields: Any) -> bytes:
    return encode(Message(Kind.HELLO, payload=json.dumps(fields).encode()))


def shake(
    caller: Identity = SENSOR, host: Identity = BROKER, meant: str = "b1"
) -> tuple[bytes, str]:
    """Carry out a whole handshake; return the host's answer and the name that it admitted."""
    one, other = Caller(caller, meant, new_nonce()), Host(host, new_nonce())
    claimed, answer = other.answer(one.first())
    assert claimed == caller.name
    return answer, other.admit(one.answer(answer))


def test_two_nodes_that_know_the_secret_admit_each_other() -> None:
    _, admitted = shake()
    assert admitted == "s1"


@given(st.text(min_size=1, max_size=MAX_NAME).filter(lambda name: name != "b1"), st.binary())
def test_any_name_and_any_secret_are_accepted_and_the_first_hello_fits(
    name: str, secret: bytes
) -> None:
    caller = Identity(name, 7, "slope", secret)
    assert len(Caller(caller, "b1", new_nonce()).first()) <= MAX_HELLO_BYTES
    _, admitted = shake(caller, Identity("b1", 1, "slope", secret))
    assert admitted == name


def test_the_second_hello_has_always_the_same_length() -> None:
    for card in (SENSOR, Identity("n" * MAX_NAME, 2**32 - 1, "slope", SECRET)):
        caller, host = Caller(card, "b1", new_nonce()), Host(BROKER, new_nonce())
        _, answer = host.answer(caller.first())
        assert len(caller.answer(answer)) == PROOF_HELLO_BYTES


def test_a_caller_refuses_a_host_that_does_not_know_the_secret() -> None:
    with pytest.raises(HandshakeError, match="b1 does not know the lab's secret"):
        shake(host=Identity("b1", 1, "slope", b"another"))


def test_a_host_refuses_a_caller_that_does_not_know_the_secret() -> None:
    host, guess = Host(BROKER, new_nonce()), Identity("s1", 2, "slope", b"a guess")
    caller = Caller(guess, "b1", new_nonce())
    _, answer = host.answer(caller.first())
    fields = hello_fields(answer)
    with pytest.raises(HandshakeError, match="b1 does not know"):
        caller.answer(answer)
    impostor = Host(Identity("b1", 1, "slope", b"a guess"), fields["nonce"])
    _, fitting = impostor.answer(caller.first())  # so that the caller continues
    with pytest.raises(HandshakeError, match="s1 does not know the lab's secret"):
        host.admit(caller.answer(fitting))


def test_a_recorded_handshake_is_refused_on_another_connection() -> None:
    caller, first_host = Caller(SENSOR, "b1", new_nonce()), Host(BROKER, new_nonce())
    _, answer = first_host.answer(caller.first())
    proof = caller.answer(answer)
    assert first_host.admit(proof) == "s1"
    later = Host(BROKER, new_nonce())
    later.answer(caller.first())
    with pytest.raises(HandshakeError, match="s1 does not know"):
        later.admit(proof)
    with pytest.raises(HandshakeError, match="b1 does not know"):
        Caller(SENSOR, "b1", new_nonce()).answer(answer)


def test_a_proof_is_bound_to_both_names() -> None:
    nonces = new_nonce(), new_nonce()
    caller, host = Caller(SENSOR, "b1", nonces[0]), Host(BROKER, nonces[1])
    _, answer = host.answer(caller.first())
    proof = caller.answer(answer)
    other = Host(BROKER, nonces[1])
    other.answer(hello(name="s2", lab="slope", nonce=nonces[0]))
    with pytest.raises(HandshakeError, match="s2 does not know"):
        other.admit(proof)


def test_the_hosts_proof_is_refused_as_the_callers() -> None:
    host = Host(BROKER, new_nonce())
    _, answer = host.answer(Caller(SENSOR, "b1", new_nonce()).first())
    with pytest.raises(HandshakeError, match="s1 does not know"):
        host.admit(hello(proof=hello_fields(answer)["proof"]))
    with pytest.raises(HandshakeError, match="s1 does not know"):
        host.admit(answer)


def test_a_node_that_returns_the_nonce_or_the_name_of_its_peer_is_refused() -> None:
    nonce = new_nonce()
    with pytest.raises(HandshakeError, match="returns the nonce"):
        Host(BROKER, nonce).answer(hello(name="s1", lab="slope", nonce=nonce))
    with pytest.raises(HandshakeError, match="returns the nonce"):
        Caller(SENSOR, "b1", nonce).answer(hello(name="b1", lab="slope", nonce=nonce, proof="00"))
    with pytest.raises(HandshakeError, match="the name of this node itself"):
        Host(BROKER, nonce).answer(hello(name="b1", lab="slope", nonce=new_nonce()))


@pytest.mark.parametrize("proof", [{}, {"proof": None}])
def test_a_hello_without_a_proof_is_refused_by_both_sides(proof: dict[str, Any]) -> None:
    host = Host(BROKER, new_nonce())
    host.answer(hello(name="s1", lab="slope", nonce=new_nonce()))
    with pytest.raises(HandshakeError, match="s1 gives no proof"):
        host.admit(hello(**proof))
    with pytest.raises(HandshakeError, match="b1 gives no proof"):
        Caller(SENSOR, "b1", new_nonce()).answer(
            hello(name="b1", lab="slope", nonce=new_nonce(), **proof)
        )


@pytest.mark.parametrize("proof", [5, "", "ä", "\ud800", "00" * 32, ["00"], {"a": 1}, "0" * 3000])
def test_a_proof_of_any_other_kind_is_wrong(proof: Any) -> None:
    host = Host(BROKER, new_nonce())
    host.answer(hello(name="s1", lab="slope", nonce=new_nonce()))
    with pytest.raises(HandshakeError, match="s1 does not know the lab's secret"):
        host.admit(hello(proof=proof))


def test_a_proof_before_the_first_hello_is_refused() -> None:
    with pytest.raises(HandshakeError, match="a proof before the first HELLO"):
        Host(BROKER, new_nonce()).admit(hello(proof="00" * 32))


FIRST = Caller(SENSOR, "b1", new_nonce()).first()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("hello", "a text message instead of HELLO"),
        (b"", "not a HELLO: 0 bytes"),
        (b"\x02" + FIRST[1:], "version 2; this node speaks 1"),
        (encode(Message(Kind.SUBSCRIBE, topic="t")), "SUBSCRIBE before HELLO"),
        (encode(Message(Kind.HELLO, payload=b"{")), "HELLO without name, lab and nonce"),
        (encode(Message(Kind.HELLO, payload=b"5")), "HELLO without name, lab and nonce"),
        (encode(Message(Kind.HELLO, payload=b"\xff")), "HELLO without name, lab and nonce"),
        (encode(Message(Kind.HELLO, payload=b"[" * 4000)), "HELLO without name, lab and nonce"),
        (hello(name="s1", lab="slope"), "HELLO without name, lab and nonce"),
        (hello(name=5, lab="slope", nonce="00" * 16), "a name that cannot be one"),
        (hello(name="", lab="slope", nonce="00" * 16), "a name that cannot be one"),
        (hello(name="s1", lab="slope", nonce="00"), "a nonce that cannot be one"),
        (hello(name="s1", lab="slope", nonce=5), "a nonce that cannot be one"),
        (hello(name="s1", lab="valley", nonce="00" * 16), "of the lab 'valley'; this is 'slope'"),
        (hello(name="s1", lab=[1], nonce="00" * 16), r"of the lab '\[1\]'; this is 'slope'"),
    ],
)
def test_messages_other_than_a_valid_hello_are_refused(message: bytes | str, reason: str) -> None:
    with pytest.raises(HandshakeError, match=reason):
        Host(BROKER, new_nonce()).answer(message)
    with pytest.raises(HandshakeError, match=reason):
        Caller(SENSOR, "b1", new_nonce()).answer(message)


def test_another_broker_than_the_one_that_was_called_is_refused() -> None:
    with pytest.raises(HandshakeError, match="b1 answered where b2 should be"):
        shake(meant="b2")


@given(st.binary(max_size=200))
def test_a_hello_with_any_random_payload_is_refused(payload: bytes) -> None:
    message = encode(Message(Kind.HELLO, payload=payload))
    with pytest.raises(HandshakeError):
        Host(BROKER, new_nonce()).answer(message)
    with pytest.raises(HandshakeError):
        Caller(SENSOR, "b1", new_nonce()).answer(message)


def row(backoff: Backoff, length: int = 12) -> list[float]:
    return [backoff.next_wait() for _ in range(length)]


@given(st.integers())
def test_the_waits_grow_to_the_cap_and_depend_on_the_seed_only(seed: int) -> None:
    waits = row(Backoff(Random(seed)))
    assert waits == row(Backoff(Random(seed)))
    assert all(0 < wait <= CAP_S for wait in waits)
    assert waits[0] <= FIRST_S
    assert min(waits[7:]) >= CAP_S / 2


def test_only_a_link_that_was_up_for_long_makes_the_next_wait_short_again() -> None:
    backoff = Backoff(Random(1))
    row(backoff)
    backoff.on_link_lost(lived_s=CAP_S)
    assert backoff.next_wait() >= CAP_S / 2
    backoff.on_link_lost(lived_s=CAP_S + 0.1)
    assert backoff.next_wait() <= FIRST_S
