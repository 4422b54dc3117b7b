"""Guests of a broker that break the rules, want too much or come from elsewhere: it goes on without them."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from loopback_lab import PATIENCE_S, Lab, received, until
from nodes.runtime.greeting import hello
from nodes.wire import (
    MAX_MESSAGE_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_SUBSCRIPTIONS,
    Kind,
    Message,
    encode,
)
from testbed.control import ControlError


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def stranger(lab: Lab, *messages: bytes | str) -> str:
    """Connect, say these things, wait for the end; how the broker ended it."""
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as line:
        return say(line, *messages)


def say(line: ClientConnection, *messages: bytes | str) -> str:
    with suppress(ConnectionClosed):
        for message in messages:
            line.send(message)
        while True:
            line.recv(timeout=PATIENCE_S)
    return f"{line.close_code} {line.close_reason}"


def fourteen(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert len(events) <= 14
    return events if len(events) == 14 else []


def test_hostile_guests_are_shown_the_door_and_the_broker_goes_on(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    good = hello("x1", 99, "slope")
    assert "text message" in stranger(lab, "hello?")
    assert "not a HELLO: 3 bytes" in stranger(lab, b"\0\1\2")
    assert "this node speaks 1" in stranger(lab, b"\x09" + good[1:])
    assert "is of the lab 'valley'; this is 'slope'" in stranger(lab, hello("x1", 99, "valley"))
    assert "PUBLISH before HELLO" in stranger(lab, encode(Message(Kind.PUBLISH, topic="alert")))
    assert "without name and lab" in stranger(
        lab, encode(Message(Kind.HELLO, payload=b"[" * 100_000))
    )
    assert stranger(lab, good, b"garbage").startswith("1002 7 bytes")
    assert stranger(lab, good, "text").startswith("1002 a text message")
    assert "HELLO has no place" in stranger(lab, good, good)
    assert stranger(lab, good, bytes(MAX_MESSAGE_BYTES + 1)).startswith("1009")
    assert stranger(lab, bytes(MAX_MESSAGE_BYTES + 1)).startswith("1009")
    for noise in (os.urandom(5000) + b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", lab.port)) as line, suppress(ConnectionError):
            line.sendall(noise)
            line.shutdown(socket.SHUT_WR)
            while line.recv(5000):
                pass

    identity = sensor.publish()
    until(lambda: received(subscriber) == [identity])
    reasons = [refused["reason"] for refused in until(lambda: fourteen(broker.events("refuse")))]
    assert sum(f"exceeds limit of {MAX_MESSAGE_BYTES} bytes" in reason for reason in reasons) == 2
    assert sum("no WebSocket handshake: " in reason for reason in reasons) == 3
    assert broker.complaints.read_text() == ""
    assert broker.ask("status")["peers"] == ["c1", "s1"]


def test_a_guest_that_never_speaks_does_not_keep_the_broker_from_stopping(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    with socket.create_connection(("127.0.0.1", lab.port)):
        assert broker.stop() == 0


def test_a_node_that_comes_twice_replaces_itself(lab: Lab) -> None:
    broker, _, _ = lab.trio()
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as older:
        older.send(hello("x1", 99, "slope"))
        until(lambda: "x1" in broker.ask("status")["peers"])
        with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as newer:
            newer.send(hello("x1", 99, "slope"))
            assert "replaced by a newer connection" in say(older)
            assert newer.recv(timeout=PATIENCE_S)  # HELLO
            assert broker.ask("status")["peers"] == ["c1", "s1", "x1"]


def test_a_broker_of_another_lab_is_refused_by_its_guests(lab: Lab) -> None:
    def impostor(line: ServerConnection) -> None:
        line.recv()
        line.send(hello("b1", 1, "valley"))
        line.recv()

    with serve(impostor, "127.0.0.1", lab.port, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            sensor = lab.node("sensor", "s1").go()
            (refused,) = until(lambda: sensor.events("refuse"))
            assert "is of the lab 'valley'" in refused["reason"]
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
    assert "1002 more than 1024 subscriptions" in stranger(lab, hello("x1", 99, "slope"), *wishes)
    (refused,) = broker.events("refuse")
    assert (refused["peer"], refused["reason"]) == ("x1", "more than 1024 subscriptions")
