"""Nodes with different delivery methods, as real processes at one broker; and clients that violate theirs."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from link_pair import VARIANTS, title
from loopback_lab import PATIENCE_S, Lab, RunningNode, introduce, received, until
from nodes.protocol.labels import BITS, DmpqLabel
from nodes.protocol.wire import MAX_MESSAGE_BYTES, Kind, Message, encode
from nodes.runtime.config import Method
from nodes.runtime.label_extension import Offer, agreed

SIZES = (1, 1_443, 30_000)
LARGE = 1_000_000


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def written(method: Method) -> dict[str, Any]:
    return {"method": method.method, "parameters": dict(method.parameters)}


def publish_all(sensor: RunningNode, topic: str) -> set[str]:
    """Publish a message of each level and size; return the ids."""
    sizes = [(level, size) for size in SIZES for level in (1, 2, 3, 4, 5)]
    return {
        sensor.publish(topic=topic, priority=level, size=size)
        for level, size in ((1, LARGE), *sizes)
    }


def test_links_of_different_methods_meet_at_one_broker_also_when_it_was_started_again(
    lab: Lab,
) -> None:
    own = {
        f"{kind}{number}": written(variant)
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
        sent = {line["id"]: line["size"] for line in sensor.events("publish")}
        assert all(line["size"] == sent[line["id"]] for line in subscriber.events("receive"))
    for node in lab.nodes:
        assert node.events("refuse", "drop") == []
        assert node.complaints.read_text() == ""


def ended(lab: Lab, name: str, *chunks: tuple[bytes, int], labels: bool = False) -> str:
    """Send HELLO and these chunks; return how the broker closes the connection."""
    address, offers = f"ws://127.0.0.1:{lab.port}/", [Offer()] if labels else None
    with connect(address, proxy=None, compression=None, extensions=offers) as line:
        with suppress(ConnectionClosed):
            introduce(line, name)
            for data, bits in chunks:
                if (label := agreed(line.protocol)) is not None:
                    label.outgoing = bits
                    line.send(data)
                else:
                    frame = bytearray(Frame(Opcode.BINARY, data).serialize(mask=True))
                    frame[0] |= bits << 4
                    line.socket.sendall(frame)
            while True:
                line.recv(timeout=PATIENCE_S)
        return f"{line.close_code} {line.close_reason}"


def test_guests_whose_chunks_are_none_are_shown_the_door_and_the_broker_goes_on(lab: Lab) -> None:
    in_bits = written(Method("dmpq-pc", {"label": "opcode"}))
    as_byte = written(Method("dmpq-pc", {"ack": "udp"}))
    own = {"x1": in_bits, "x2": as_byte, "s1": in_bits, "c1": as_byte}
    broker = lab.node("broker", "b1", deliveries=own).go().ready()
    whole = encode(Message(Kind.PUBLISH, topic="alert"))
    last = BITS[DmpqLabel.LAST]

    assert "x1 must offer x-testbed-label" in ended(lab, "x1")
    assert "reserved bits must be 0" in ended(lab, "x2", (b"B" + whole, last))
    assert "reserved bits" in ended(lab, "x2", (b"B" + whole, last), labels=True)
    assert "no label" in ended(lab, "x1", (whole, 0b001), labels=True)
    assert "without a first" in ended(lab, "x1", (whole, last), labels=True)
    assert "no label" in ended(lab, "x2", (whole, 0))
    assert "empty" in ended(lab, "x2", (b"", 0))
    assert "without a first" in ended(lab, "x2", (b"D" + whole, 0))
    piece = b"C" + bytes(MAX_MESSAGE_BYTES // 2)
    assert "more than" in ended(lab, "x2", *[(piece, 0)] * 3)
    assert len(until(lambda: nine(broker))) == 9

    sensor = lab.node("sensor", "s1", delivery=in_bits).go()
    subscriber = lab.node("subscriber", "c1", delivery=as_byte, topics=["alert"]).go().ready()
    identity = sensor.ready().publish(size=20_000)
    until(lambda: received(subscriber) == [identity])
    assert broker.complaints.read_text() == ""


def nine(broker: RunningNode) -> list[dict[str, Any]]:
    events = broker.events("refuse")
    return events if len(events) >= 9 else []


def test_a_method_of_a_guest_with_a_mistake_is_one_sentence_and_exit_code_2(lab: Lab) -> None:
    wrong = {"s1": {"method": "fifo", "parameters": {"limit_bytes": 0}}}
    broker = lab.node("broker", "b1", deliveries=wrong)
    assert broker.process.wait(PATIENCE_S) == 2
    assert "limit_bytes is 0" in broker.complaints.read_text()
