"""The messages in a stream's frames: where each begins and ends, what its header says, and when its bytes were seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis import decode
from analysis.streams import Stream
from analysis.websocket import Frame, Walk, head_of
from nodes.wire import HEADER_SIZE, MAX_TOPIC_BYTES, Kind

Array = npt.NDArray[Any]

# One message on one link in one direction: each message shows once for each link it crosses.
SIGHTING = pa.struct(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        ("src", pa.string()),
        ("dst", pa.string()),
        ("kind", pa.string()),
        ("priority", pa.int32()),
        ("hops", pa.int32()),
        ("origin", pa.string()),
        ("id", pa.string()),
        ("topic", pa.string()),
        ("payload_bytes", pa.int64()),
        ("published_ns", pa.int64()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
        ("complete", pa.bool_()),
        ("frames", pa.int32()),
        ("websocket_bytes", pa.int64()),
        ("header_bytes", pa.int64()),
    ]
)
KIND_NAMES = {int(kind): kind.name for kind in Kind}


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """Whose link a file belongs to, and who is behind each address."""

    name: str
    address: int
    mac: int
    names: Mapping[int, str]  # address -> node
    numbers: Mapping[int, str]  # node number -> node
    shared: bool = False  # a router's: its packets carry the addresses of the nodes behind it


@dataclass(frozen=True, slots=True)
class Messages:
    """The readable messages of one stream, as columns."""

    header: Array
    topics: list[str]
    first_ns: Array
    last_ns: Array
    complete: Array
    frames: Array
    frame_bytes: Array  # seen bytes of WebSocket's own
    header_bytes: Array  # seen bytes of our header and topic
    payload_size: Array  # as sent, as far as the frames tell
    payload_seen: Array

    @property
    def is_publish(self) -> Array:
        publish: Array = self.header["kind"] == int(Kind.PUBLISH)
        return publish


def read_messages(stream: Stream, found: Walk) -> Messages:
    """All messages whose header can be read, those in one frame first."""
    whole = _whole(stream, found.whole)
    if not found.divided:
        return whole
    parts = [_divided(stream, frames, last) for frames, last in found.divided]
    return _joined([whole, *(part for part in parts if part is not None)])


def _whole(stream: Stream, frames: list[tuple[int, int, int]]) -> Messages:
    """Messages in one frame each (at, payload_at, end), read all at once."""
    columns = np.array(frames, np.int64).reshape(-1, 3)
    at: Array = columns[:, 0]
    payload_at: Array = columns[:, 1]
    end: Array = columns[:, 2]
    masks = decode.masks(stream.data, at, payload_at)
    inside: Array = np.minimum(end, len(stream.data))
    header = decode.headers(stream.data, payload_at, masks)
    topic_length = header["topic_length"].astype(np.int64)
    payload_begin = payload_at + HEADER_SIZE + topic_length
    good = decode.readable(header, end - payload_at) & (payload_begin <= len(stream.data))
    good &= (
        stream.covered(payload_at, np.minimum(payload_begin, inside)) == HEADER_SIZE + topic_length
    )
    at, payload_at, end, masks, inside, header, topic_length, payload_begin = (
        column[good]
        for column in (at, payload_at, end, masks, inside, header, topic_length, payload_begin)
    )
    # The topic begins HEADER_SIZE bytes into the payload: a multiple of four keeps the mask in place.
    turned = np.roll(masks, -(HEADER_SIZE % 4), axis=1)
    return Messages(
        header=header,
        topics=decode.topics(stream.data, payload_at + HEADER_SIZE, turned, topic_length),
        first_ns=stream.first_seen(at),
        last_ns=stream.seen_up_to(inside),
        complete=(end <= len(stream.data)) & (stream.covered(at, inside) == end - at),
        frames=np.ones(len(at), np.int64),
        frame_bytes=payload_at - at,
        header_bytes=payload_begin - payload_at,
        payload_size=end - payload_begin,
        payload_seen=stream.covered(payload_begin, inside),
    )


def _divided(stream: Stream, frames: list[Frame], last: bool) -> Messages | None:
    """One message in several frames; None if its header cannot be read."""
    at, end, begin = (
        np.array([getattr(frame, name) for frame in frames], np.int64)
        for name in ("at", "end", "payload_at")
    )
    inside = np.minimum(end, len(stream.data))
    head = head_of(stream.data, frames, HEADER_SIZE + MAX_TOPIC_BYTES)
    size = int((end - begin).sum())
    if len(head) < HEADER_SIZE:
        return None
    header = np.frombuffer(head[:HEADER_SIZE], decode.LAYOUT)
    needed = HEADER_SIZE + int(header["topic_length"][0])
    if not decode.readable(header, np.array([size]))[0] or len(head) < needed:
        return None
    seen = int(stream.covered(begin, inside).sum())
    covered = seen == size and bool((end <= len(stream.data)).all())
    return Messages(
        header=header,
        topics=[head[HEADER_SIZE:needed].decode(errors="replace")],
        first_ns=stream.first_seen(at[:1]),
        last_ns=stream.seen_up_to(inside[-1:]),
        complete=np.array([last and covered]),
        frames=np.array([len(frames)]),
        frame_bytes=np.array([(begin - at).sum()]),
        header_bytes=np.array([min(needed, seen)]),
        payload_size=np.array([size - needed]),
        payload_seen=np.array([max(0, seen - needed)]),
    )


def _joined(parts: list[Messages]) -> Messages:
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Messages.__slots__
        if name != "topics"
    }
    return Messages(topics=[topic for part in parts for topic in part.topics], **columns)


class Sightings:
    """Collects the messages of all streams of a link as Arrow columns."""

    def __init__(self, place: LinkPlace) -> None:
        self.place = place
        self.parts: list[pa.StructArray] = []

    def add(self, messages: Messages, direction: str, source: int, target: int) -> None:
        """The messages of one stream from `source` to `target` (addresses)."""
        count = len(messages.topics)
        if not count:
            return
        header = messages.header
        numbers, kinds = self.place.numbers, KIND_NAMES
        columns = {
            "link": _repeated(self.place.name, count),
            "direction": _repeated(direction, count),
            "src": _repeated(self._name(source), count),
            "dst": _repeated(self._name(target), count),
            "kind": pa.array([kinds[kind] for kind in header["kind"].tolist()]),
            "origin": pa.array([numbers.get(n, f"#{n}") for n in header["origin"].tolist()]),
            "id": pa.array([f"{number:016x}" for number in header["message_id"].tolist()]),
            "topic": pa.array(messages.topics, pa.string()),
            "priority": header["priority"],
            "hops": header["hops"],
            "published_ns": header["published_ns"],
            "payload_bytes": messages.payload_size,
            "first_ns": messages.first_ns,
            "last_ns": messages.last_ns,
            "complete": messages.complete,
            "frames": messages.frames,
            "websocket_bytes": messages.frame_bytes,
            "header_bytes": messages.header_bytes,
        }
        self.parts.append(
            pa.StructArray.from_arrays(
                [_as(columns[field.name], field.type) for field in SIGHTING], fields=list(SIGHTING)
            )
        )

    def struct_array(self) -> pa.StructArray:
        return pa.concat_arrays(self.parts) if self.parts else pa.array([], SIGHTING)

    def _name(self, address: int) -> str:
        if known := self.place.names.get(address):
            return known
        return ".".join(str(address >> shift & 0xFF) for shift in (24, 16, 8, 0))


def _repeated(text: str, count: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(count, np.int64)))


def _as(column: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if pa.types.is_boolean(kind):
        return pa.array(column, kind)
    return pa.array(column.astype(kind.to_pandas_dtype()))
