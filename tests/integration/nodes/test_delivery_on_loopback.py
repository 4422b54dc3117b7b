"""Nodes with different delivery methods, as real processes at one broker; and clients that violate their method."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from nodes.protocol.labels import BITS, DmpqLabel
from nodes.protocol.wire import MAX_MESSAGE_BYTES, Kind, Message, encode
from nodes.runtime.config import Method
from nodes.runtime.label_extension import Offer, agreed
from support.nodes.link_pair import VARIANTS, title
from support.nodes.loopback_nodes import PATIENCE_S, Lab, RunningNode, introduce, received, until

SIZES = (1, 1_443, 30_000)
LARGE = 1_000_000


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def as_config(method: Method) -> dict[str, Any]:
    return {"method": method.method, "parameters": dict(method.parameters)}


def publish_all(sensor: RunningNode, topic: str) -> set[str]:
    """Publish a message of each level and size; return the ids."""
    sizes = [(level, size) for size in SIZES for level in (1, 2, 3, 4, 5)]
    return {
        sensor.publish(topic=topic, priority=level, size=size)
        for level, size in ((1, LARGE), *sizes)
    }


def test_one_broker_serves_links_of_different_methods_also_after_a_restart(
    lab: Lab,
) -> None:
    own = {
        f"{kind}{number}": as_config(variant)
        for number, variant in enumerate(VARIANTS)
        for kind in "sc"
    }
    broker = lab.node("broker", "b1", deliveries=own).go().ready()
    pairs = {
        title(variant): (
            lab.node("sensor", f"s{number}", delivery=own[f"s{number}"]),
            lab.node(
                "subscriber", f"c{number}", delivery=own[f"c{number}"], topics=[title(variant)]
            ),
        )
        for number, variant in enumerate(VARIANTS)
    }
    expected: dict[str, set[str]] = {topic: set() for topic in pairs}
    for start in (lambda: None, broker.kill):
        start()
        if broker.process.poll() is not None:
            until(lambda: not any(node.ask("status")["peers"] for node in lab.nodes[1:]))
            broker.start()
            broker.go().ready()
        for node in lab.nodes[1:]:
            node.go()
        for node in lab.nodes[1:]:
            node.ready()
        for topic, (sensor, _) in pairs.items():
            expected[topic] |= publish_all(sensor, topic)
        for topic, (_, subscriber) in pairs.items():
            until(lambda: len(received(subscriber)) >= len(expected[topic]))  # noqa: B023
    for topic, (sensor, subscriber) in pairs.items():
        assert sorted(received(subscriber)) == sorted(expected[topic]), topic
        sent = {record["id"]: record["size"] for record in sensor.events("publish")}
        assert all(record["size"] == sent[record["id"]] for record in subscriber.events("receive"))
    for node in lab.nodes:
        assert node.events("refuse", "drop") == []
        assert node.complaints.read_text() == ""


def closed_with(lab: Lab, name: str, *chunks: tuple[bytes, int], labels: bool = False) -> str:
    """Send HELLO and these chunks; return how the broker closes the connection."""
    address, offers = f"ws://127.0.0.1:{lab.port}/", [Offer()] if labels else None
    with connect(address, proxy=None, compression=None, extensions=offers) as connection:
        with suppress(ConnectionClosed):
            introduce(connection, name)
            for data, bits in chunks:
                if (label := agreed(connection.protocol)) is not None:
                    label.outgoing = bits
                    connection.send(data)
                else:
                    frame = bytearray(Frame(Opcode.BINARY, data).serialize(mask=True))
                    frame[0] |= bits << 4
                    connection.socket.sendall(frame)
            while True:
                connection.recv(timeout=PATIENCE_S)
        return f"{connection.close_code} {connection.close_reason}"


def test_a_broker_refuses_clients_with_invalid_chunks_and_serves_the_others(lab: Lab) -> None:
    in_bits = as_config(Method("dmpq-pc", {"label": "opcode"}))
    as_byte = as_config(Method("dmpq-pc", {"ack": "udp"}))
    own = {"x1": in_bits, "x2": as_byte, "s1": in_bits, "c1": as_byte}
    broker = lab.node("broker", "b1", deliveries=own).go().ready()
    whole = encode(Message(Kind.PUBLISH, topic="alert"))
    last = BITS[DmpqLabel.LAST]

    assert "x1 must offer x-testbed-label" in closed_with(lab, "x1")
    assert "reserved bits must be 0" in closed_with(lab, "x2", (b"B" + whole, last))
    assert "reserved bits" in closed_with(lab, "x2", (b"B" + whole, last), labels=True)
    assert "no label" in closed_with(lab, "x1", (whole, 0b001), labels=True)
    assert "without a first" in closed_with(lab, "x1", (whole, last), labels=True)
    assert "no label" in closed_with(lab, "x2", (whole, 0))
    assert "empty" in closed_with(lab, "x2", (b"", 0))
    assert "without a first" in closed_with(lab, "x2", (b"D" + whole, 0))
    piece = b"C" + bytes(MAX_MESSAGE_BYTES // 2)
    assert "more than" in closed_with(lab, "x2", *[(piece, 0)] * 3)
    assert len(until(lambda: nine_refusals(broker))) == 9

    sensor = lab.node("sensor", "s1", delivery=in_bits).go()
    subscriber = lab.node("subscriber", "c1", delivery=as_byte, topics=["alert"]).go().ready()
    identity = sensor.ready().publish(size=20_000)
    until(lambda: received(subscriber) == [identity])
    assert broker.complaints.read_text() == ""


def nine_refusals(broker: RunningNode) -> list[dict[str, Any]]:
    events = broker.events("refuse")
    return events if len(events) >= 9 else []


def test_a_mistake_in_the_method_of_a_client_is_one_sentence_and_exit_code_2(lab: Lab) -> None:
    wrong = {"s1": {"method": "fifo", "parameters": {"limit_bytes": 0}}}
    broker = lab.node("broker", "b1", deliveries=wrong)
    assert broker.process.wait(PATIENCE_S) == 2
    assert "limit_bytes is 0" in broker.complaints.read_text()
