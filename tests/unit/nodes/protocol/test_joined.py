"""Several publications as one message: what goes in comes out, and hostile bytes are refused with a reason."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.joined import LONGEST_PART, MOST_PARTS, join, parts, split
from nodes.protocol.wire import (
    CUSTODY,
    HEADER_SIZE,
    REPEATED,
    Kind,
    Message,
    WireError,
    decode,
    encode,
)
from testbed.capture.scapy_layer import TestbedHeader, TestbedJoined

TOPIC = "slope/water"
READING = Message(Kind.PUBLISH, 1, 2, 0, 7, 1, 5, TOPIC, b"1.25", b"\xc0\0\0\0\1")

readings = st.builds(
    Message,
    kind=st.just(Kind.PUBLISH),
    priority=st.integers(1, 5),
    hops=st.integers(0, 255),
    flags=st.sampled_from([0, REPEATED]),
    origin=st.integers(0, 2**32 - 1),
    message_id=st.integers(0, 2**64 - 1),
    published_ns=st.integers(0, 2**64 - 1),
    topic=st.just(TOPIC),
    payload=st.binary(max_size=50),
    routing=st.binary(max_size=20),
    place=st.lists(st.integers(0, 2**32 - 1), max_size=3).map(tuple),
)
several = st.lists(readings, min_size=2, max_size=12)


@given(several)
def test_joined_publications_can_be_split_again(publications: list[Message]) -> None:
    joined = decode(encode(join(publications, 3)))
    assert split(joined) == publications
    assert joined.priority == max(one.priority for one in publications)
    assert (joined.kind, joined.topic, joined.origin) == (Kind.JOINED, TOPIC, 3)
    assert not joined.control
    assert not joined.upkeep


@given(several)
def test_the_bytes_are_one_head_and_each_publication_behind_its_length(
    publications: list[Message],
) -> None:
    joined = join(publications, 3)
    sizes = [len(encode(one)) for one in publications]
    assert [end - begin for begin, end in parts(joined.payload)] == sizes
    assert len(encode(joined)) == HEADER_SIZE + len(TOPIC) + sum(2 + size for size in sizes)


@given(several)
def test_scapy_shows_the_parts(publications: list[Message]) -> None:
    data = encode(join(publications, 3))
    packet = TestbedHeader(data)
    assert bytes(packet) == data
    shown = packet[TestbedJoined].parts
    assert [bytes(one.message) for one in shown] == [encode(one) for one in publications]
    assert [one.message.message_id for one in shown] == [one.message_id for one in publications]


@given(st.binary(max_size=200))
def test_any_bytes_are_parts_or_a_wire_error(payload: bytes) -> None:
    joined = Message(Kind.JOINED, topic=TOPIC, payload=payload)
    with suppress(WireError):
        assert join(split(joined), 0).payload == payload
    assert bytes(TestbedHeader(encode(joined)).payload) == payload


@given(several, st.data())
def test_damaged_bytes_are_other_parts_or_a_wire_error(
    publications: list[Message], data: st.DataObject
) -> None:
    good = bytearray(join(publications, 3).payload)
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] ^= data.draw(st.integers(1, 255))
    damaged = Message(Kind.JOINED, topic=TOPIC, payload=bytes(good))
    with suppress(WireError):
        assert join(split(damaged), 3).payload == bytes(good)


def part(message: Message) -> bytes:
    data = encode(message)
    return len(data).to_bytes(2) + data


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "0 parts in a JOINED; it has 2 to 1024"),
        (part(READING), "1 parts in a JOINED"),
        (b"\0\0" * (MOST_PARTS + 5), "more than 1024 parts"),
        (part(READING) * 2 + b"\0", "a length is cut"),
        (part(READING) + part(READING)[:-1], "is cut"),
        (b"\0\3abc" * 2, "the header alone has 28"),
        (part(READING) + part(Message(Kind.JOINED, topic=TOPIC)), "JOINED in a JOINED"),
        (part(READING) + part(Message(Kind.OVERLAY, topic=TOPIC)), "OVERLAY in a JOINED"),
        (part(READING) + part(replace(READING, flags=CUSTODY)), "travels alone"),
        (part(READING) + part(replace(READING, topic="other")), "topic 'other' in a JOINED"),
    ],
)
def test_publications_not_joined_by_the_rules_are_refused_with_a_reason(
    payload: bytes, why: str
) -> None:
    with pytest.raises(WireError, match=why):
        split(Message(Kind.JOINED, topic=TOPIC, payload=payload))


@pytest.mark.parametrize(
    ("publications", "why"),
    [
        ([READING], "1 parts"),
        ([READING, replace(READING, payload=bytes(LONGEST_PART))], "at most 65535"),
        ([READING, replace(READING, flags=CUSTODY)], "travels alone"),
        ([READING, replace(READING, kind=Kind.ACK)], "only publications"),
    ],
)
def test_messages_that_cannot_be_joined_are_refused(publications: list[Message], why: str) -> None:
    with pytest.raises(WireError, match=why):
        join(publications, 1)
