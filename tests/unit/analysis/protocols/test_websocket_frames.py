"""WebSocket frames on captured bytes; the independent reader is `websockets`' own parser."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame as TheirFrame
from websockets.frames import Opcode
from websockets.protocol import SERVER, Protocol, State

from analysis.protocols.message_header import unmask
from analysis.protocols.messages import read_messages
from analysis.protocols.websocket import scan_frames
from analysis.streams.reassembly import Stream, reassemble
from nodes.protocol import wire
from support.runs.star_runs import SWITCHED, UPGRADE, frame, frames

masks = st.one_of(st.just(b""), st.binary(min_size=4, max_size=4))
topics = st.text(max_size=20).filter(lambda text: not text.endswith("\0"))
messages = st.builds(
    wire.Message,
    kind=st.sampled_from(list(wire.Kind)),
    priority=st.integers(1, 5),
    hops=st.integers(0, 255),
    origin=st.integers(0, 2**32 - 1),
    message_id=st.integers(0, 2**64 - 1),
    published_ns=st.integers(0, 2**63 - 1),
    topic=topics,
    payload=st.one_of(st.binary(max_size=40), st.integers(0, 70_000).map(bytes)),
    routing=st.one_of(st.just(b""), st.binary(max_size=40), st.integers(0, 400).map(bytes)),
    place=st.lists(st.integers(0, wire.MAX_COORDINATE), max_size=wire.MAX_DIMENSIONS).map(tuple),
)


def stream_of(
    data: bytes, holes: tuple[tuple[int, int], ...] = (), from_start: bool = True
) -> Stream:
    """A stream with one segment between two holes. The segment that begins at n is seen at time n + 1."""
    edges = [0, *itertools.chain.from_iterable(holes), len(data)]
    pieces = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    starts = np.array([a for a, _ in pieces], np.int64)
    sizes = np.array([b - a for a, b in pieces], np.int64)
    return reassemble(data, starts, sizes, sizes, starts, starts + 1, 0 if from_start else None)


def read(stream: Stream) -> list[tuple[object, ...]]:
    """(id, topic, payload size, complete) of each message."""
    found = read_messages(stream, scan_frames(stream.data, stream.unknown, stream.from_start))
    return list(
        zip(
            found.header["message_id"].tolist(),
            found.topics,
            found.payload_size.tolist(),
            found.complete.tolist(),
            strict=True,
        )
    )


def expected(sent: list[wire.Message]) -> list[tuple[object, ...]]:
    return [(m.message_id, m.topic, len(m.payload), True) for m in sent]


@given(st.lists(st.tuples(messages, masks), max_size=6), st.sampled_from([b"", UPGRADE, SWITCHED]))
def test_all_messages_are_read_masked_or_not_short_or_long(sent, handshake):
    data = handshake + b"".join(frame(wire.encode(m), mask) for m, mask in sent)
    assert read(stream_of(data)) == expected([m for m, _ in sent])


@given(messages, masks, st.lists(st.integers(1, 60), max_size=5), st.booleans())
def test_a_message_in_several_frames_is_one_message_even_with_a_ping_between(
    message, mask, cuts, ping
):
    data = frames(wire.encode(message), cuts, mask)
    whole = scan_frames(data, (), True)
    if ping and whole.continued:
        second = whole.frames[1][0]
        data = data[:second] + frame(b"ping", mask, 0x89) + data[second:]
    after = frame(wire.encode(message), mask)
    assert read(stream_of(UPGRADE + data + after)) == expected([message, message])


@given(
    st.lists(
        st.tuples(
            messages, st.binary(min_size=4, max_size=4), st.lists(st.integers(1, 60), max_size=3)
        ),
        max_size=4,
    )
)
def test_an_independent_websocket_reader_agrees_on_every_frame(sent):
    data = b"".join(frames(wire.encode(m), cuts, mask) for m, mask, cuts in sent)
    theirs = Protocol(SERVER, state=State.OPEN, max_size=None)
    theirs.receive_data(data)
    parsed = [event for event in theirs.events_received() if isinstance(event, TheirFrame)]
    found = scan_frames(b"GET / HTTP/1.1\r\n\r\n" + data, (), True)
    base = 18
    payloads = [
        unmask(data[begin - base : end - base], data[begin - base - 4 : begin - base])
        for _, begin, end in found.frames
    ]
    assert payloads == [bytes(f.data) for f in parsed]
    assert all(f.opcode in (Opcode.BINARY, Opcode.CONT) for f in parsed)


@given(st.lists(messages, min_size=2, max_size=5), st.data())
def test_after_a_loss_in_the_capture_the_messages_behind_it_are_found_again(sent, data):
    pieces = [frame(wire.encode(m)) for m in sent]
    lost = data.draw(st.integers(0, len(sent) - 2))
    begin = sum(len(piece) for piece in pieces[:lost])
    stream = stream_of(b"".join(pieces), holes=((begin, begin + len(pieces[lost])),))
    got = read(stream)
    rest = [m for number, m in enumerate(sent) if number != lost]
    assert [row for row in got if row[3]][-1:] == expected(rest)[-1:]
    assert set(expected(rest[:lost])) <= set(got)


@given(messages, messages, st.integers(1, 200))
def test_a_capture_that_begins_in_the_middle_finds_the_next_message(first, second, cut):
    one, two = frame(wire.encode(first)), frame(wire.encode(second))
    data = (one + two)[min(cut, len(one)) :]
    assert expected([second])[0] in read(stream_of(data, from_start=False))


@given(messages.filter(lambda m: len(m.payload) > 0), masks)
def test_a_message_whose_end_was_not_seen_is_there_but_not_complete(message, mask):
    data = frame(wire.encode(message), mask)[:-1]
    assert read(stream_of(data)) == [
        (message.message_id, message.topic, len(message.payload), False)
    ]


def test_times_are_of_the_first_byte_and_of_the_moment_all_bytes_up_to_the_last_were_seen():
    message = wire.Message(wire.Kind.PUBLISH, topic="rain", payload=bytes(100))
    data = frame(wire.encode(message)) * 2
    half = len(data) // 2
    starts = np.array([0, half, 60], np.int64)  # the end of the first message comes last
    sizes = np.array([60, half, half - 60], np.int64)
    stream = reassemble(data, starts, sizes, sizes, starts, np.array([5, 6, 90]), 0)
    found = read_messages(stream, scan_frames(stream.data, stream.unknown, True))
    assert found.first_ns.tolist() == [5, 6]
    assert found.last_ns.tolist() == [90, 90]


def test_compressed_messages_are_counted_and_not_guessed_at():
    data = UPGRADE + frame(b"compressed", first=0xC2) * 2 + frame(b"bye", first=0x88)
    stream = stream_of(data)
    found = scan_frames(data, (), True)
    messages = read_messages(stream, found)
    assert (messages.compressed, messages.orphan_pieces) == (2, 0)
    assert (messages.topics, len(found.control_frames)) == ([], 1)


def test_an_upgrade_that_never_ended_has_no_messages():
    assert scan_frames(b"GET / HTTP/1.1\r\nHost", (), True).frames == []


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_can_be_walked(data, from_start):
    stream = stream_of(data, from_start=from_start)
    for identity, _, size, _ in read(stream):
        assert identity >= 0
        assert size >= 0
