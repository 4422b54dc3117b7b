"""Joined publications in a captured stream: each has a row, and shared bytes are divided evenly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.protocols.messages import Messages, read_messages
from analysis.protocols.websocket import scan_frames
from analysis.streams.reassembly import reassemble
from nodes.protocol.joined import join, shares
from nodes.protocol.wire import Kind, Message, encode

HANDSHAKE = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"


def reading(number: int, size: int = 4) -> Message:
    return Message(
        Kind.PUBLISH, 1, 3, 0, number, number, 1000 + number, "slope", bytes(size), b"\xc0\0\0\0\1"
    )


def framed(data: bytes) -> bytes:
    assert 126 <= len(data) < 1 << 16
    return b"\x82\x7e" + len(data).to_bytes(2) + data


def read(data: bytes, step: int = 100) -> Messages:
    begin = np.arange(0, len(data), step)
    length = np.minimum(step, len(data) - begin)
    times = 10 * (1 + np.arange(len(begin)))
    stream = reassemble(data, begin, length, length, begin, times, opening=0)
    return read_messages(stream, scan_frames(stream.data, stream.unknown, stream.from_start))


@given(st.lists(st.integers(0, 400), min_size=3, max_size=9))
def test_every_byte_of_a_joined_message_belongs_to_one_of_its_publications(
    sizes: list[int],
) -> None:
    publications = [reading(number, size) for number, size in enumerate(sizes, 1)]
    data = encode(join(publications, 9))
    found = read(HANDSHAKE + framed(data))
    assert found.header["message_id"].tolist() == [one.message_id for one in publications]
    assert found.header["hops"].tolist() == [3] * len(sizes)
    assert found.is_publish.all()
    assert found.topics == ["slope"] * len(sizes)
    assert found.joined.tolist() == [len(sizes)] * len(sizes)
    assert found.payload_size.tolist() == sizes
    assert int(found.header_bytes.sum() + found.payload_size.sum()) == len(data)
    assert int(found.frame_bytes.sum()) == 4
    assert int(found.header_bytes.max() - found.header_bytes.min()) <= 1


def test_a_joined_publication_arrives_with_the_last_byte_of_the_whole_message() -> None:
    data = HANDSHAKE + framed(encode(join([reading(1), reading(2, 700), reading(3)], 9)))
    found = read(data)
    assert set(found.last_ns.tolist()) == {10 * -(-len(data) // 100)}
    assert set(found.first_ns.tolist()) == {10}


def test_a_cut_or_invalid_joined_message_stays_one_message() -> None:
    whole = framed(encode(join([reading(1, 200), reading(2, 200)], 9)))
    cut = read(HANDSHAKE + whole[:-50])
    strange = read(
        HANDSHAKE + framed(encode(Message(Kind.JOINED, topic="slope", payload=bytes(200))))
    )
    for found in (cut, strange):
        assert found.header["kind"].tolist() == [int(Kind.JOINED)]
        assert found.joined.tolist() == [1]


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_shares_are_fair_and_nothing_is_left_over(size: int, count: int) -> None:
    found = shares(size, count)
    assert len(found) == count
    assert sum(found) == size
    assert max(found) - min(found) <= 1
