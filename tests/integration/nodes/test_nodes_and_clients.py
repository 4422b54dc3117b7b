"""Clients of a broker that break the rules, want too much or come from elsewhere: the broker goes on without them."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from loopback_lab import PATIENCE_S, Lab, card, introduce, received, until
from nodes.protocol.wire import (
    MAX_MESSAGE_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_SUBSCRIPTIONS,
    Kind,
    Message,
    encode,
)
from nodes.runtime.connection import BEFORE_PROOF_BYTES
from nodes.runtime.handshake import MAX_HELLO_BYTES, Caller, Host, new_nonce
from testbed.control import ControlError


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def stranger(lab: Lab, *messages: bytes | str) -> str:
    """Connect, send these messages, wait for the end; return how the broker closed the connection."""
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as line:
        return say(line, *messages)


def guest(lab: Lab, name: str, *messages: bytes | str) -> str:
    """The same for a client that knows the secret."""
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as line:
        introduce(line, name)
        return say(line, *messages)


def say(line: ClientConnection, *messages: bytes | str) -> str:
    with suppress(ConnectionClosed):
        for message in messages:
            line.send(message)
        while True:
            line.recv(timeout=PATIENCE_S)
    return f"{line.close_code} {line.close_reason}"


def as_many(events: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    assert len(events) <= number
    return events if len(events) == number else []


def test_strangers_are_shown_the_door_and_the_broker_goes_on(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    good = Caller(card("x1"), "b1", new_nonce()).first()
    assert "text message" in stranger(lab, "hello?")
    assert "not a HELLO: 3 bytes" in stranger(lab, b"\0\1\2")
    assert "this node speaks 1" in stranger(lab, b"\x09" + good[1:])
    other = Caller(replace(card("x1"), lab="valley"), "b1", new_nonce()).first()
    assert "is of the lab 'valley'; this is 'slope'" in stranger(lab, other)
    assert "PUBLISH before HELLO" in stranger(lab, encode(Message(Kind.PUBLISH, topic="alert")))
    assert "without name" in stranger(lab, encode(Message(Kind.HELLO, payload=b"[" * 3_000)))
    assert "x1 gives no proof" in stranger(lab, good, good[:28] + b"{}")
    assert "x1 does not know" in stranger(lab, good, good[:28] + b'{"proof": "00"}')
    assert "PUBLISH before HELLO" in stranger(lab, good, encode(Message(Kind.PUBLISH)))
    for too_long in (MAX_HELLO_BYTES + 1, MAX_MESSAGE_BYTES + 1):
        assert stranger(lab, bytes(too_long)).startswith("1009")
        assert stranger(lab, good, bytes(too_long)).startswith("1009")
    endless = b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * BEFORE_PROOF_BYTES
    for noise in (os.urandom(5000) + b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"", endless):
        with socket.create_connection(("127.0.0.1", lab.port)) as line, suppress(ConnectionError):
            line.sendall(noise)
            line.shutdown(socket.SHUT_WR)
            while line.recv(5000):
                pass

    identity = sensor.publish()
    until(lambda: received(subscriber) == [identity])
    refused = until(lambda: as_many(broker.events("refuse"), 16))
    reasons = [record["reason"] for record in refused]
    assert sum("no WebSocket handshake: " in reason for reason in reasons) == 3
    assert broker.complaints.read_text() == ""
    assert broker.ask("status")["peers"] == ["c1", "s1"]


def test_guests_that_break_the_rules_are_shown_the_door_and_the_broker_goes_on(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    assert guest(lab, "x1", b"garbage").startswith("1002 7 bytes")
    assert guest(lab, "x1", "text").startswith("1002 a text message")
    hello = Caller(card("x1"), "b1", new_nonce()).first()
    assert "HELLO has no place" in guest(lab, "x1", hello)
    assert guest(lab, "x1", bytes(MAX_MESSAGE_BYTES + 1)).startswith("1009")

    identity = sensor.publish()
    until(lambda: received(subscriber) == [identity])
    refused = until(lambda: as_many(broker.events("refuse"), 4))
    assert all(record["peer"] == "x1" for record in refused)
    assert broker.complaints.read_text() == ""
    assert broker.ask("status")["peers"] == ["c1", "s1"]


def test_messages_right_behind_the_proof_are_taken_however_large(lab: Lab) -> None:
    _, _, subscriber = lab.trio()
    large = Message(Kind.PUBLISH, topic="alert", message_id=7, payload=bytes(1_000_000))
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as line:
        caller = Caller(card("x1"), "b1", new_nonce())
        line.send(caller.first())
        proof = caller.answer(line.recv(timeout=PATIENCE_S))
        frames = [
            Frame(Opcode.BINARY, data).serialize(mask=True) for data in (proof, encode(large))
        ]
        line.socket.sendall(b"".join(frames))
        until(lambda: received(subscriber) == ["0000000000000007"])


def test_a_guest_that_never_speaks_does_not_keep_the_broker_from_stopping(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    with socket.create_connection(("127.0.0.1", lab.port)):
        assert broker.stop() == 0


def test_a_node_that_comes_twice_replaces_itself(lab: Lab) -> None:
    broker, _, _ = lab.trio()
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as older:
        introduce(older, "x1")
        until(lambda: "x1" in broker.ask("status")["peers"])
        with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as newer:
            introduce(newer, "x1")
            assert "replaced by a newer connection" in say(older)
            assert broker.ask("status")["peers"] == ["c1", "s1", "x1"]


def test_a_broker_that_does_not_know_the_secret_is_refused_by_its_guests(lab: Lab) -> None:
    def impostor(line: ServerConnection) -> None:
        _, answer = Host(card("b1", secret="a guess"), new_nonce()).answer(line.recv())
        line.send(answer)
        line.recv()

    with serve(impostor, "127.0.0.1", lab.port, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            sensor = lab.node("sensor", "s1").go()
            (refused,) = until(lambda: sensor.events("refuse"))
            assert refused["reason"] == "b1 does not know the lab's secret"
            assert not sensor.ask("status")["ready"]
            assert sensor.stop() == 0
        finally:
            server.shutdown()
            thread.join()


def test_a_full_queue_drops_the_newest_and_says_so(lab: Lab) -> None:
    delivery = {"method": "fifo", "parameters": {"limit_bytes": 1000}}
    sensor = lab.node("sensor", "s1", delivery=delivery).go()  # there is no broker
    kept = sensor.publish(size=800)
    with pytest.raises(ControlError, match=r"message .* was dropped: 833 bytes do not fit"):
        sensor.publish(size=800)
    (drop,) = sensor.events("drop")
    assert "do not fit" in drop["reason"]
    assert [record["id"] for record in sensor.events("publish")] == [kept, drop["id"]]
    assert sensor.ask("status")["queued"] == 1


def test_the_largest_payload_passes_and_one_byte_more_is_refused_at_once(lab: Lab) -> None:
    _, sensor, subscriber = lab.trio()
    identity = sensor.publish(size=MAX_PAYLOAD_BYTES)
    until(lambda: received(subscriber) == [identity])
    with pytest.raises(ControlError, match=f"it goes from 0 to {MAX_PAYLOAD_BYTES} bytes"):
        sensor.publish(size=MAX_PAYLOAD_BYTES + 1)
    assert len(sensor.events("publish")) == 1


def test_a_subscriber_becomes_ready_however_small_the_queues_are(lab: Lab) -> None:
    narrow = {"delivery": {"method": "fifo", "parameters": {"limit_bytes": 1}}}
    lab.node("broker", "b1", **narrow).go()
    topics = [f"slope/{i}/" + "t" * 200 for i in range(500)]
    subscriber = lab.node("subscriber", "c1", topics=topics, **narrow).go().ready()
    assert not subscriber.events("drop")


def test_a_guest_that_wants_too_much_is_refused(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    wishes = [encode(Message(Kind.SUBSCRIBE, topic=f"t{i}")) for i in range(MAX_SUBSCRIPTIONS + 1)]
    assert "1002 more than 1024 subscriptions" in guest(lab, "x1", *wishes)
    (refused,) = broker.events("refuse")
    assert (refused["peer"], refused["reason"]) == ("x1", "more than 1024 subscriptions")
