"""The trace records of a stream the same values that the analysis reads from its bytes."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.protocols.messages import read_messages
from analysis.protocols.websocket import scan_frames
from analysis.streams.reassembly import reassemble
from nodes.delivery.base import Chunk
from nodes.protocol import wire
from nodes.protocol.joined import join
from support.captures.scheduled_streams import chunks_of, framed
from testbed.backends.simulated.capture import DirectionCapture
from testbed.backends.simulated.link_layer import Flow, Kind, Packet
from testbed.backends.simulated.node import EPOCH_NS
from testbed.backends.simulated.stream_contents import frame_head
from testbed.backends.simulated.trace import MESSAGES, link_row

MASK = b"\1\2\3\4"
REQUEST = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("fifo", {}),
    ("pq-pc", {}),
    ("dmpq-pc", {"dv": 20}),
    ("dmpq-pc", {"dv": 1000, "label": "opcode"}),
    ("preemptive", {}),
    ("preemptive", {"dv": 30}),
]
contents = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from([0, 10, 90, 1415, 3000])), min_size=1, max_size=10
)


def messages(wanted: list[tuple[int, int]]) -> list[wire.Message]:
    """Some of them joined."""
    alone = [
        wire.Message(
            wire.Kind.PUBLISH,
            priority=priority,
            origin=1,
            message_id=number,
            published_ns=number,
            topic="landslide/alert",
            payload=bytes(size),
            routing=bytes(number % 3 * 40),
            place=(number,) * (number % 4),
        )
        for number, (priority, size) in enumerate(wanted)
    ]
    together = [join(alone[at : at + 3], 4) for at in range(len(alone) - 2)]
    return [one for pair in zip_longest(alone, together) for one in pair if one is not None]


def written(chunks: list[Chunk], masked: bool) -> tuple[Flow, bytes]:
    """The flow with the notes that were taken while its stream was written, and the bytes of the stream."""
    flow = Flow("gauge", "broker", ())
    data = REQUEST
    flow.ledger.note_protocol(0, len(REQUEST))
    for chunk, frame in zip(chunks, framed(chunks, MASK if masked else b""), strict=True):
        head = frame_head(len(chunk.data), masked)
        assert head + len(chunk.data) == len(frame)
        flow.ledger.note(len(data), chunk, head)
        data += frame
    return flow, data


@pytest.mark.parametrize(("method", "parameters"), METHODS, ids=str)
@settings(max_examples=40, deadline=None)
@given(
    wanted=contents,
    mss=st.sampled_from([100, 1448]),
    burst=st.integers(1, 6),
    masked=st.booleans(),
    unseen=st.integers(0, 3),
    order=st.randoms(use_true_random=False),
)
def test_each_message_is_seen_where_and_when_the_analysis_sees_it(
    method: str,
    parameters: Mapping[str, Any],
    wanted: list[tuple[int, int]],
    mss: int,
    burst: int,
    masked: bool,
    unseen: int,
    order: Any,
) -> None:
    flow, data = written(chunks_of(method, parameters, messages(wanted), burst), masked)
    starts = list(range(0, len(data), mss))
    starts = starts[: max(len(starts) - unseen, 1)]  # the run ended before the rest came
    passing = starts + order.sample(starts, len(starts) // 4)  # some a second time ...
    passing[1:] = sorted(
        passing[1:], key=lambda start: start + order.choice((0, 0, 3 * mss))
    )  # late
    capture, times = (
        DirectionCapture("gauge", "up"),
        [4_000_000 * (n + 1) for n in range(len(passing))],
    )
    for start, at in zip(passing, times, strict=True):
        capture.see(Packet(flow, Kind.DATA, start, min(mss, len(data) - start)), at)
    rows: dict[str, list[Any]] = {name: [] for name in MESSAGES.names}
    totals = link_row(capture, {1: "gauge"}, rows)

    begin = np.array(passing)
    length = np.minimum(mss, len(data) - begin)
    seen = np.array(times) + EPOCH_NS
    stream = reassemble(data, begin, length, length, begin, seen, opening=0)
    read = read_messages(stream, scan_frames(stream.data, stream.unknown, stream.from_start))
    assert rows["id"] == [f"{number:016x}" for number in read.header["message_id"].tolist()]
    for mine, theirs in (
        ("first_ns", read.first_ns),
        ("last_ns", read.last_ns),
        ("complete", read.complete),
        ("frames", read.frames),
        ("pieces", read.pieces),
        ("packets", read.packets),
        ("websocket_bytes", read.frame_bytes),
        ("label_bytes", read.label_bytes),
        ("joined", read.joined),
        ("stalled_ns", read.stalled_ns),
        ("repeated_ns", read.repeated_ns),
        ("hops", read.header["hops"]),
    ):
        assert rows[mine] == theirs.tolist(), mine
    whole = read.complete  # of the others, it is not sure where a section ends that was cut off
    assert np.array(rows["header_bytes"])[whole].tolist() == read.header_bytes[whole].tolist()
    assert np.array(rows["payload_bytes"])[whole].tolist() == read.payload_size[whole].tolist()
    assert totals["retransmitted_bytes"] == int(length.sum()) - stream.covered_bytes
    if whole.all():
        assert totals["payload_bytes"] == int(read.payload_seen.sum())
    assert totals["missing_bytes"] == 0
