"""The message header: what goes in comes out, any bytes are a message or an error, and the format stays as it is."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.joined import join
from nodes.protocol.labels import DmpqLabel, Form, levelled
from nodes.protocol.wire import (
    FIELDS,
    HEADER_SIZE,
    MAX_COORDINATE,
    MAX_DIMENSIONS,
    MAX_TOPIC_BYTES,
    PLACED,
    ROUTED,
    SECTIONS,
    VERSION,
    Kind,
    Message,
    WireError,
    decode,
    encode,
    message_id,
)
from testbed.capture.scapy_layer import TestbedHeader, TestbedLabel

TESTS = Path(__file__).parents[3]
GOLDEN = TESTS / "golden" / "nodes" / "messages.txt"
DOCS = TESTS.parent / "docs" / "explanation" / "nodes.md"

topics = st.text(st.characters(exclude_categories=["Cs"]), max_size=63)
messages = st.builds(
    Message,
    kind=st.sampled_from(Kind),
    priority=st.integers(1, 5),
    hops=st.integers(0, 255),
    flags=st.integers(0, 0xFFFF).map(lambda bits: bits & ~SECTIONS),
    origin=st.integers(0, 2**32 - 1),
    message_id=st.integers(0, 2**64 - 1),
    published_ns=st.integers(0, 2**64 - 1),
    topic=topics,
    payload=st.binary(max_size=200),
    routing=st.binary(max_size=60),
    place=st.lists(st.integers(0, MAX_COORDINATE), max_size=MAX_DIMENSIONS).map(tuple),
)


@given(messages)
def test_a_message_survives_the_wire(message: Message) -> None:
    assert decode(encode(message)) == message


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        assert encode(decode(data)) == data


@given(messages, st.data())
def test_a_damaged_message_is_another_message_or_a_wire_error(
    message: Message, data: st.DataObject
) -> None:
    good = bytearray(encode(message))
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] ^= data.draw(st.integers(1, 255))
    with suppress(WireError):
        assert encode(decode(bytes(good))) == bytes(good)


@given(messages, st.integers(0, HEADER_SIZE - 1))
def test_a_cut_header_is_refused(message: Message, length: int) -> None:
    with pytest.raises(WireError, match="the header alone has"):
        decode(encode(message)[:length])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (Message(Kind.PUBLISH, priority=0), "priority 0"),
        (Message(Kind.PUBLISH, priority=6), "priority 6"),
        (Message(Kind.PUBLISH, hops=256), "does not fit"),
        (Message(Kind.PUBLISH, origin=-1), "does not fit"),
        (Message(Kind.PUBLISH, message_id=2**64), "does not fit"),
        (Message(Kind.PUBLISH, topic="x" * (MAX_TOPIC_BYTES + 1)), "at most 255"),
        (Message(Kind.PUBLISH, topic="\ud800"), "UTF-8"),
        (Message(Kind.PUBLISH, flags=ROUTED), "by the section itself"),
        (Message(Kind.PUBLISH, flags=PLACED), "by the section itself"),
        (Message(Kind.PUBLISH, place=(1,) * 9), "9 coordinates; at most 8"),
        (Message(Kind.PUBLISH, place=(1, -1)), "a coordinate does not fit"),
        (Message(Kind.PUBLISH, place=(2**32,)), "a coordinate does not fit"),
        (Message(Kind.PUBLISH, routing=bytes(65_536)), "at most 65535"),
    ],
)
def test_a_message_that_cannot_be_encoded_is_refused_with_a_reason(
    wrong: Message, why: str
) -> None:
    with pytest.raises(WireError, match=why):
        encode(wrong)


@pytest.mark.parametrize(
    ("offset", "value", "why"),
    [
        (0, VERSION + 1, "version 2; this node speaks 1"),
        (1, 99, "unknown kind 99"),
        (2, 0, "priority 0"),
        (7, 200, "topic of 200 bytes"),
        (6, 1, "topic of 257 bytes"),
        (28, 0xFF, "not UTF-8"),
    ],
)
def test_a_wrong_field_is_named(offset: int, value: int, why: str) -> None:
    data = bytearray(encode(Message(Kind.PUBLISH, topic="t", payload=b"p")))
    data[offset] = value
    with pytest.raises(WireError, match=why):
        decode(bytes(data))


def test_the_bytes_of_each_kind_are_as_agreed() -> None:
    lines = []
    for kind in Kind:
        message = Message(
            kind,
            priority=min(kind, 5),
            hops=2,
            origin=7,
            message_id=message_id(7, 9),
            published_ns=1_700_000_000_123_456_789,
            topic="slope/警報",
            payload=b"payload",
        )
        lines.append(f"{kind.name} {encode(message).hex()}\n")
        if kind is Kind.PUBLISH:
            routed = replace(message, routing=b"to:1")
            lines.append(f"{kind.name}+routing {encode(routed).hex()}\n")
            placed = replace(message, place=(0, 1, MAX_COORDINATE))
            lines.append(f"{kind.name}+place {encode(placed).hex()}\n")
            both = replace(placed, routing=b"to:1")
            lines.append(f"{kind.name}+place+routing {encode(both).hex()}\n")
        if kind is Kind.JOINED:
            one = replace(message, kind=Kind.PUBLISH, priority=1, routing=b"to:1")
            both = join([one, replace(one, message_id=message_id(7, 10), priority=2)], 7)
            lines.append(f"{kind.name}+two {encode(both).hex()}\n")
    assert "".join(lines) == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("section", "why"),
    [(b"", "promises one"), (b"\0", "promises one"), (b"\0\0", "of 0"), (b"\0\2x", "of 2")],
)
def test_a_routing_section_that_is_not_there_is_refused(section: bytes, why: str) -> None:
    data = bytearray(encode(Message(Kind.PUBLISH, topic="t")) + section)
    data[5] = ROUTED
    with pytest.raises(WireError, match=why):
        decode(bytes(data))


@pytest.mark.parametrize(
    ("section", "why"),
    [
        (b"", "promises one"),
        (b"\0", "with 0 coordinates"),
        (b"\1\0\0\0", "with 1 coordinates"),
        (b"\x09" + bytes(36), "with 9 coordinates"),
        (b"\xff" + bytes(1020), "with 255 coordinates"),
    ],
)
def test_a_place_that_is_not_there_or_none_at_all_is_refused(section: bytes, why: str) -> None:
    data = bytearray(encode(Message(Kind.PUBLISH, topic="t")) + section)
    data[5] = PLACED
    with pytest.raises(WireError, match=why):
        decode(bytes(data))


def test_each_hop_makes_a_message_one_older_and_nothing_else() -> None:
    message = Message(Kind.PUBLISH, hops=1, topic="t", payload=b"p")
    assert message.forwarded() == replace(message, hops=2)
    assert replace(message, hops=255).forwarded().hops == 255


@given(messages)
def test_scapy_reads_what_the_nodes_read(message: Message) -> None:
    data = encode(message)
    packet = TestbedHeader(data)
    assert packet.version == VERSION
    assert packet.topic_length == len(packet.topic)
    seen = Message(
        Kind(packet.kind),
        packet.priority,
        packet.hops,
        packet.flags & ~SECTIONS,
        packet.origin,
        packet.message_id,
        packet.published_ns,
        packet.topic.decode(),
        bytes(packet.payload),
        packet.routing or b"",
        tuple(packet.place or ()),
    )
    assert seen == message
    assert bytes(packet) == data


def test_scapy_has_the_fields_of_the_table_in_their_order() -> None:
    names = [field.name for field in TestbedHeader.fields_desc]
    sections = ["dimensions", "place", "routing_length", "routing"]
    assert names == [*(field.name for field in FIELDS), "topic", *sections]


def test_the_documentation_shows_the_table_as_it_is() -> None:
    offset, rows = 0, []
    for field in FIELDS:
        rows.append(f"| {offset} | {field.size} | `{field.name}` | {field.meaning} |")
        offset += field.size
    assert "\n".join(rows) in DOCS.read_text()


def test_the_scapy_layer_of_labels_knows_whole_messages_and_pieces() -> None:
    message = encode(Message(Kind.PUBLISH, priority=5, topic="slope", payload=b"rain"))
    for label in (DmpqLabel.URGENT, DmpqLabel.WHOLE, levelled(Form.WHOLE, 5)):
        chunk = TestbedLabel(bytes([label]) + message)
        assert chunk[TestbedHeader].topic == b"slope"
        assert bytes(chunk) == bytes([label]) + message
    piece = TestbedLabel(bytes([levelled(Form.PIECE, 3)]) + message)
    assert not piece.haslayer(TestbedHeader)
    assert piece.sprintf("%label%") == "PIECE level 3"
