"""A broker refuses clients that break the protocol, subscribe too much or do not know the secret, and serves others."""

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
from support.nodes.loopback_nodes import PATIENCE_S, Lab, card, introduce, received, until
from testbed.control import ControlError


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def unknown_peer(lab: Lab, *messages: bytes | str) -> str:
    """Connect, send these messages, wait for the end; return how the broker closed the connection."""
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as connection:
        return exchange(connection, *messages)


def client(lab: Lab, name: str, *messages: bytes | str) -> str:
    """The same for a client that knows the secret."""
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as connection:
        introduce(connection, name)
        return exchange(connection, *messages)


def exchange(connection: ClientConnection, *messages: bytes | str) -> str:
    with suppress(ConnectionClosed):
        for message in messages:
            connection.send(message)
        while True:
            connection.recv(timeout=PATIENCE_S)
    return f"{connection.close_code} {connection.close_reason}"


def exactly(events: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    assert len(events) <= number
    return events if len(events) == number else []


def test_a_broker_refuses_unknown_peers_and_serves_its_clients(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    good = Caller(card("x1"), "b1", new_nonce()).first()
    assert "text message" in unknown_peer(lab, "hello?")
    assert "not a HELLO: 3 bytes" in unknown_peer(lab, b"\0\1\2")
    assert "this node speaks 1" in unknown_peer(lab, b"\x09" + good[1:])
    other = Caller(replace(card("x1"), lab="valley"), "b1", new_nonce()).first()
    assert "is of the lab 'valley'; this is 'slope'" in unknown_peer(lab, other)
    assert "PUBLISH before HELLO" in unknown_peer(lab, encode(Message(Kind.PUBLISH, topic="alert")))
    assert "without name" in unknown_peer(lab, encode(Message(Kind.HELLO, payload=b"[" * 3_000)))
    assert "x1 gives no proof" in unknown_peer(lab, good, good[:28] + b"{}")
    assert "x1 does not know" in unknown_peer(lab, good, good[:28] + b'{"proof": "00"}')
    assert "PUBLISH before HELLO" in unknown_peer(lab, good, encode(Message(Kind.PUBLISH)))
    for too_long in (MAX_HELLO_BYTES + 1, MAX_MESSAGE_BYTES + 1):
        assert unknown_peer(lab, bytes(too_long)).startswith("1009")
        assert unknown_peer(lab, good, bytes(too_long)).startswith("1009")
    endless = b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * BEFORE_PROOF_BYTES
    for noise in (os.urandom(5000) + b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"", endless):
        with (
            socket.create_connection(("127.0.0.1", lab.port)) as connection,
            suppress(ConnectionError),
        ):
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(5000):
                pass

    identity = sensor.publish()
    until(lambda: received(subscriber) == [identity])
    refused = until(lambda: exactly(broker.events("refuse"), 16))
    reasons = [record["reason"] for record in refused]
    assert sum("no WebSocket handshake: " in reason for reason in reasons) == 3
    assert broker.complaints.read_text() == ""
    until(lambda: broker.ask("status")["peers"] == ["c1", "s1"])


def test_a_broker_refuses_clients_that_break_the_protocol_and_serves_the_others(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    assert client(lab, "x1", b"garbage").startswith("1002 7 bytes")
    assert client(lab, "x1", "text").startswith("1002 a text message")
    hello = Caller(card("x1"), "b1", new_nonce()).first()
    assert "HELLO has no place" in client(lab, "x1", hello)
    assert client(lab, "x1", bytes(MAX_MESSAGE_BYTES + 1)).startswith("1009")

    identity = sensor.publish()
    until(lambda: received(subscriber) == [identity])
    refused = until(lambda: exactly(broker.events("refuse"), 4))
    assert all(record["peer"] == "x1" for record in refused)
    assert broker.complaints.read_text() == ""
    until(lambda: broker.ask("status")["peers"] == ["c1", "s1"])


def test_a_broker_accepts_a_large_message_right_behind_the_proof(lab: Lab) -> None:
    _, _, subscriber = lab.trio()
    large = Message(Kind.PUBLISH, topic="alert", message_id=7, payload=bytes(1_000_000))
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as connection:
        caller = Caller(card("x1"), "b1", new_nonce())
        connection.send(caller.first())
        proof = caller.answer(connection.recv(timeout=PATIENCE_S))
        frames = [
            Frame(Opcode.BINARY, data).serialize(mask=True) for data in (proof, encode(large))
        ]
        connection.socket.sendall(b"".join(frames))
        until(lambda: received(subscriber) == ["0000000000000007"])


def test_a_broker_stops_although_a_client_never_sends_anything(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    with socket.create_connection(("127.0.0.1", lab.port)):
        assert broker.stop() == 0


def test_a_second_connection_of_a_node_replaces_the_first(lab: Lab) -> None:
    broker, _, _ = lab.trio()
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as older:
        introduce(older, "x1")
        until(lambda: "x1" in broker.ask("status")["peers"])
        with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as newer:
            introduce(newer, "x1")
            assert "replaced by a newer connection" in exchange(older)
            assert broker.ask("status")["peers"] == ["c1", "s1", "x1"]


def test_sensors_refuse_a_broker_that_does_not_know_the_secret(lab: Lab) -> None:
    def impostor(connection: ServerConnection) -> None:
        _, answer = Host(card("b1", secret="a guess"), new_nonce()).answer(connection.recv())
        connection.send(answer)
        connection.recv()

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


def test_a_full_queue_drops_the_newest_message_and_logs_it(lab: Lab) -> None:
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


def test_a_broker_refuses_a_client_with_too_many_subscriptions(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    subscriptions = [
        encode(Message(Kind.SUBSCRIBE, topic=f"t{i}")) for i in range(MAX_SUBSCRIPTIONS + 1)
    ]
    assert "1002 more than 1024 subscriptions" in client(lab, "x1", *subscriptions)
    (refused,) = broker.events("refuse")
    assert (refused["peer"], refused["reason"]) == ("x1", "more than 1024 subscriptions")
