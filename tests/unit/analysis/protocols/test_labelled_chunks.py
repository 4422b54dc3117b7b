"""Divided and merged messages in a stream, read without knowing the method that sent them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.protocols.chunks import BY_BITS, BY_BYTE, Role
from analysis.protocols.messages import Messages, read_messages
from analysis.protocols.websocket import scan_frames
from analysis.streams.reassembly import Stream
from nodes.protocol import wire
from nodes.protocol.labels import BITS, DmpqLabel, Form, levelled
from support.captures.labelled_streams import STYLES, Truth, Writer, stream_in_segments, write_mixed
from support.runs.star_runs import SWITCHED, frame

mixtures = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "style": st.sampled_from(STYLES),
        "dv": st.sampled_from([40, 150, 1443]),
        "mask": st.sampled_from([b"", b"\x01\x20\x7e\x43"]),
    }
)


def made(
    seed: int, style: str, dv: int, mask: bytes, highest: int = 127
) -> tuple[Writer, list[Truth]]:
    """Eight messages. Bytes up to 127 cannot be the beginning of a frame, so the expected result is known."""
    chance = random.Random(seed)
    messages = [
        wire.Message(
            wire.Kind.PUBLISH if chance.random() < 0.8 else wire.Kind.SUBSCRIBE,
            priority=chance.randint(1, 5),
            origin=chance.randint(0, highest),
            message_id=number,
            published_ns=chance.randint(0, highest),
            topic="x" * chance.choice([0, 5, 60]),
            payload=bytes(chance.choices(range(highest + 1), k=chance.choice([0, 3, 50, 700]))),
        )
        for number in range(8)
    ]
    return write_mixed(chance, messages, style, dv, mask)


def read(stream: Stream) -> Messages:
    return read_messages(stream, scan_frames(stream.data, stream.unknown, stream.from_start))


def by_number(found: Messages) -> dict[int, dict[str, int]]:
    names = ("payload_size", "complete", "pieces", "frames", "packets", "frame_bytes")
    names += ("label_bytes", "first_ns", "last_ns")
    columns = {name: getattr(found, name).tolist() for name in names}
    numbers = found.header["message_id"].tolist()
    assert len(numbers) == len(set(numbers)), "a message was read twice"
    return {
        number: {name: column[row] for name, column in columns.items()}
        for row, number in enumerate(numbers)
    }


def complete(found: Messages) -> set[int]:
    return {number for number, row in by_number(found).items() if row["complete"]}


def test_each_label_has_its_role_and_no_other_byte_has_one():
    labels = {int(label) for label in DmpqLabel}
    labels |= {levelled(form, level) for form in Form for level in range(1, 6)}
    assert {label for label in range(256) if BY_BYTE[label][0]} == labels | {wire.VERSION}
    assert {bits for bits in range(8) if BY_BITS[bits][0] != Role.STRANGE} == set(BITS.values())


@given(mixtures, st.lists(st.integers(0, 2**20), max_size=40))
def test_every_message_is_read_with_its_pieces_bytes_packets_and_times(how, cuts):
    writer, truths = made(**how, highest=255)
    begin = len(SWITCHED)
    stream = stream_in_segments(SWITCHED + writer.data, cuts)
    found = read(stream)
    rows = by_number(found)
    assert set(rows) == {truth.message.message_id for truth in truths}
    assert (found.orphan_pieces, found.compressed) == (0, 0)
    assert found.header["message_id"].tolist() == [
        truth.message.message_id for truth in sorted(truths, key=lambda truth: truth.ranges[0])
    ]
    assert found.topics == [truths[n].message.topic for n in found.header["message_id"].tolist()]
    starts = stream.starts.tolist()
    for truth in truths:
        positions = [begin + at for low, high in truth.ranges for at in range(low, high)]
        segments = {max(s for s in starts if s <= at) for at in positions}
        assert rows[truth.message.message_id] == {
            "payload_size": len(truth.message.payload),
            "complete": True,
            "pieces": len(truth.frames),
            "frames": len(truth.frames),
            "packets": len(segments),
            "frame_bytes": truth.frame_bytes,
            "label_bytes": truth.label_bytes,
            "first_ns": min(segments) + 1,
            "last_ns": max(segments) + 1,
        }


@settings(max_examples=200)
@given(mixtures, st.data())
def test_messages_before_and_after_a_hole_are_read_and_none_is_invented(how, data):
    writer, truths = made(**how)
    size = len(writer.data)
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low + 1, size))
    hole = (len(SWITCHED) + low, len(SWITCHED) + high)
    found = read(stream_in_segments(SWITCHED + writer.data, [], hole))
    whole = complete(found)
    for truth in truths:
        if truth.ranges[-1][1] <= low or truth.frames[0] >= high:
            assert truth.message.message_id in whole
        if any(low < end <= high for _, end in truth.ranges):  # the last byte of a piece is lost
            assert truth.message.message_id not in whole
    rows = by_number(found)
    assert set(rows) <= {truth.message.message_id for truth in truths}
    for number, row in rows.items():
        if row["complete"]:
            assert row["payload_size"] == len(truths[number].message.payload)


@given(mixtures, st.integers(0, 2**20))
def test_a_capture_that_begins_in_the_middle_has_all_messages_that_begin_later(how, cut):
    writer, truths = made(**how)
    cut %= len(writer.data)
    found = read(stream_in_segments(writer.data[cut:], [], from_start=False))
    whole = complete(found)
    for truth in truths:
        if truth.frames[0] >= cut:
            assert truth.message.message_id in whole
        if truth.ranges[0][1] <= cut:
            assert truth.message.message_id not in whole


@given(mixtures, st.integers(0, 2**20))
def test_a_capture_that_ends_in_the_middle_has_the_rest_as_incomplete(how, cut):
    writer, truths = made(**how)
    cut %= len(writer.data)
    found = read(stream_in_segments(SWITCHED + writer.data[:cut], []))
    rows = by_number(found)
    assert complete(found) == {t.message.message_id for t in truths if t.ranges[-1][1] <= cut}
    assert all(truths[number].ranges[0][0] < cut for number in rows)


@pytest.mark.parametrize("mask", [b"", b"mask"])
@pytest.mark.parametrize(
    "label", [DmpqLabel.PIECE, DmpqLabel.URGENT_PIECE, levelled(Form.PIECE, 2)], ids=str
)
def test_pieces_without_a_beginning_are_counted_and_make_no_message(label, mask):
    last = {
        DmpqLabel.PIECE: DmpqLabel.LAST,
        DmpqLabel.URGENT_PIECE: DmpqLabel.URGENT_LAST,
        levelled(Form.PIECE, 2): levelled(Form.LAST, 2),
    }[label]
    whole = frame(wire.encode(wire.Message(wire.Kind.PUBLISH, message_id=9)), mask)
    rest = frame(bytes([label]) + b"p" * 90, mask) * 3 + frame(bytes([last]) + b"l" * 5, mask)
    found = read(stream_in_segments(b"...cut off" + rest + whole, [], from_start=False))
    assert found.orphan_pieces == 4
    assert complete(found) == {9}


def test_pieces_in_the_bits_without_a_beginning_are_orphans_and_not_compressed():
    piece, last = BITS[DmpqLabel.PIECE] << 4 | 0x82, BITS[DmpqLabel.LAST] << 4 | 0x82
    data = frame(b"p" * 200, first=piece) * 2 + frame(b"l" * 5, first=last)
    found = read(stream_in_segments(b"rest" + data, [], from_start=False))
    assert (found.orphan_pieces, found.compressed, found.topics) == (3, 0, [])


@given(st.integers(1, 60), st.sampled_from(["letters", "bits", "levels"]))
def test_a_header_may_lie_in_many_small_pieces(dv, style):
    message = wire.Message(wire.Kind.PUBLISH, topic="a/long/topic", payload=b"payload")
    writer, (truth,) = write_mixed(random.Random(1), [message], style, dv, b"abcd")
    found = read(stream_in_segments(SWITCHED + writer.data, range(0, 300, 7)))
    assert found.topics == ["a/long/topic"]
    assert found.pieces.tolist() == [len(truth.frames)]
    assert found.complete.tolist() == [True]


def test_a_chunk_in_several_frames_is_one_piece():
    message = wire.Message(wire.Kind.PUBLISH, message_id=3, topic="t", payload=bytes(100))
    data = wire.encode(message)
    opening = frame(bytes([DmpqLabel.PIECE]) + data[:10], b"abcd", 0x02) + frame(
        data[10:50], b"wxyz", 0x80
    )
    ending = frame(bytes([DmpqLabel.LAST]) + data[50:], b"abcd")
    found = read(stream_in_segments(SWITCHED + opening + ending, []))
    assert (found.frames.tolist(), found.pieces.tolist()) == ([3], [2])
    assert (found.complete.tolist(), found.topics) == ([True], ["t"])


@pytest.mark.parametrize(
    "payload",
    [
        bytes([levelled(Form.SEVERAL, 1)]),  # nothing in it
        bytes([levelled(Form.SEVERAL, 1), 0]),  # half a length
        bytes([levelled(Form.SEVERAL, 1), 255, 255]) + bytes(40),  # longer than its chunk
        bytes([levelled(Form.SEVERAL, 1), 0, 30]) + b"?" * 30,  # no message
        bytes([DmpqLabel.LAST]) + b"?" * 40,  # an end without a beginning
        b"",
    ],
)
def test_broken_chunks_are_left_unread_and_the_next_message_is_found(payload):
    good = wire.encode(wire.Message(wire.Kind.PUBLISH, message_id=4))
    found = read(stream_in_segments(SWITCHED + frame(payload) + frame(b"A" + good), []))
    assert complete(found) == {4}


@given(st.binary(max_size=400), st.booleans(), mixtures)
def test_noise_before_labelled_chunks_stops_nothing(noise, from_start, how):
    writer, _ = made(**how)
    found = read(stream_in_segments(noise + writer.data, [], from_start=from_start))
    assert (found.payload_seen >= 0).all()
    assert (found.payload_seen <= found.payload_size).all()
