"""The messages in a stream's frames: begin and end, header, and the times of their bytes.

Publications in a joined message are rows of their own (`apart`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.captures.clock import Clock
from analysis.protocols import message_header
from analysis.protocols.chunks import Heads, Pieces, heads_of, pieces_of
from analysis.protocols.overlay_messages import UNKNOWN, kinds_of
from analysis.protocols.websocket import FrameScan
from analysis.streams.stream import Stream
from nodes.protocol import joined, wire
from nodes.protocol.joined import shares
from nodes.protocol.wire import HEADER_SIZE, Kind

Array = npt.NDArray[Any]

# Joined messages (`nodes.protocol.joined`): their bytes, and the publications in them.


class JoinedPart(NamedTuple):
    """One publication of a joined message."""

    header: Array  # one row
    header_bytes: int  # with its length, topic, place and routing
    payload_size: int


def whole_message(stream: Stream, pieces: Pieces, message: int) -> bytes:
    """The unmasked bytes of a complete message."""
    return b"".join(
        message_header.unmask(
            stream.data[int(pieces.begin[piece]) : int(pieces.end[piece])],
            pieces.masks[piece].tobytes(),
        )
        for piece in range(int(pieces.first[message]), int(pieces.final[message]) + 1)
    )


def parts_of(data: bytes) -> list[JoinedPart]:
    """The publications in these bytes; none if this is no joined message."""
    try:
        payload = wire.decode(data).payload
        found = []
        for begin, end in joined.parts(payload):
            size = len(wire.decode(payload[begin:end]).payload)
            header = np.frombuffer(payload, message_header.LAYOUT, 1, begin)[0]
            found.append(JoinedPart(header, joined.LENGTH.size + end - begin - size, size))
    except wire.WireError:
        return []
    return found


# A sighting: one message on one link in one direction. A message has one for each link that it crosses.
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
        ("pieces", pa.int32()),
        ("packets", pa.int32()),
        ("label_bytes", pa.int64()),
        ("flags", pa.int32()),
        ("overlay_kind", pa.int32()),
        ("carried_kind", pa.int32()),
        ("joined", pa.int32()),
        ("stalled_ns", pa.int64()),
        ("repeated_ns", pa.int64()),
    ]
)
KIND_NAMES = {int(kind): kind.name for kind in Kind}


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """The node whose link a file captured, and the node of each address."""

    name: str
    address: int
    mac: int
    names: Mapping[int, str]  # address -> node
    numbers: Mapping[int, str]  # node number -> node
    shared: bool = False  # a router's link: packets have the addresses of the nodes behind it
    clocks: Mapping[int, Clock] = field(
        default_factory=dict
    )  # by node number; other nodes use the lab's clock

    def name_of(self, address: int) -> str:
        """The node with this address; for an unknown one the address itself."""
        if known := self.names.get(address):
            return known
        return ".".join(str(address >> shift & 0xFF) for shift in (24, 16, 8, 0))


@dataclass(frozen=True, slots=True)
class Messages:
    """The readable messages of one stream, as columns."""

    header: Array
    topics: list[str]
    first_ns: Array
    last_ns: Array
    complete: Array
    frames: Array
    pieces: Array  # chunks that carry it; a chunk with several messages counts for each
    packets: Array  # that first carried its bytes
    frame_bytes: Array  # seen bytes of WebSocket frames
    label_bytes: Array  # seen bytes of labels, and of lengths between several messages
    header_bytes: Array  # bytes of our header, topic, place and routing
    payload_size: Array  # as sent, by the lengths of its frames
    payload_seen: Array
    overlay_kinds: Array  # of OVERLAY messages, see `analysis.protocols.overlay_messages`
    carried_kinds: Array
    joined: Array  # publications in the same message; 1: it was alone
    stalled_ns: Array  # how much later it was complete because of retransmissions
    repeated_ns: Array  # how long after its last byte that byte was repeated; 0: never
    orphan_pieces: int  # chunks of messages without a beginning
    compressed: int  # WebSocket messages that an extension compressed

    @property
    def is_publish(self) -> Array:
        publish: Array = self.header["kind"] == int(Kind.PUBLISH)
        return publish


def read_messages(stream: Stream, found: FrameScan) -> Messages:
    """All messages with a readable header, in the order in which they begin."""
    pieces = pieces_of(stream, found)
    first = pieces.first
    inside: Array = np.minimum(pieces.end, len(stream.data))
    length = _sums(pieces.end - pieces.begin, first)
    heads = heads_of(stream, pieces, inside)
    header = message_header.headers(heads.data, heads.at, heads.masks)
    needed = HEADER_SIZE + header["topic_length"].astype(np.int64)
    good = message_header.readable(header, length) & (heads.seen(stream, needed) == needed)
    good &= ~pieces.doubtful | message_header.usual_flags(header)
    chunks = _sums(pieces.chunks, first)
    unread = ~good & (inside == pieces.end)[first]
    compressed = unread & pieces.compressible[first] & ~pieces.doubtful
    if not good.all():
        header, needed = header[good], needed[good]
    # The topic begins HEADER_SIZE bytes into the message: a multiple of four keeps the mask in place.
    turned = np.roll(heads.masks[good], -(HEADER_SIZE % 4), axis=1)
    sections = message_header.section_sizes(
        heads.data, heads.at[good], heads.masks[good], header, needed
    )
    header_bytes = needed + np.minimum(sections, length[good] - needed)
    seen = stream.covered(pieces.begin, inside)
    begins, ends = stream.segment(pieces.at), stream.segment(inside - 1)
    there = pieces.finished & (_sums(seen, first) == length)
    rows = np.flatnonzero(good)
    overlay_kinds, carried_kinds = _overlay_kinds(heads, header, rows, there[good], header_bytes)
    messages = Messages(
        header=header,
        topics=message_header.topics(
            heads.data, heads.at[good] + HEADER_SIZE, turned, needed - HEADER_SIZE
        ),
        first_ns=stream.seen_ns[begins[first[good]]],
        last_ns=stream.complete_ns[ends[pieces.final[good]]],
        complete=there[good],
        frames=(pieces.final - first + 1)[good],
        pieces=chunks[good],
        packets=_packets(begins, ends, first)[good],
        frame_bytes=_sums(pieces.frame_bytes, first)[good],
        label_bytes=_sums(pieces.label_bytes, first)[good],
        header_bytes=header_bytes,
        payload_size=length[good] - header_bytes,
        payload_seen=np.maximum(_sums(seen, first)[good] - header_bytes, 0),
        overlay_kinds=overlay_kinds,
        carried_kinds=carried_kinds,
        joined=np.ones(len(rows), np.int64),
        stalled_ns=stream.stalled_ns[ends[pieces.final[good]]],
        repeated_ns=stream.repeated_ns[ends[pieces.final[good]]],
        orphan_pieces=int(chunks[~good & pieces.doubtful].sum()),
        compressed=int(chunks[compressed].sum()) + pieces.strange,
    )
    several = np.flatnonzero((header["kind"] == int(Kind.JOINED)) & messages.complete)
    if not len(several):
        return messages
    whole = {row: whole_message(stream, pieces, int(rows[row])) for row in several.tolist()}
    return split_joined(messages, whole)


def split_joined(messages: Messages, whole: Mapping[int, bytes]) -> Messages:
    """Replace joined messages by their publications; `whole`: the bytes of joined messages, by row.

    Each is complete with the last byte of the joined message, and has a share of its overhead. A joined message that
    cannot be parsed stays as it is.
    """
    parts = {row: found for row, data in whole.items() if (found := parts_of(data))}
    counts = np.ones(len(messages.topics), np.int64)
    counts[list(parts)] = [len(found) for found in parts.values()]
    begins = np.cumsum(counts) - counts
    columns: dict[str, Any] = {
        field.name: np.repeat(getattr(messages, field.name), counts)
        for field in fields(messages)
        if isinstance(getattr(messages, field.name), np.ndarray)
    }
    topics = [
        topic for topic, count in zip(messages.topics, counts, strict=True) for _ in range(count)
    ]
    for row, found in parts.items():
        mine = slice(int(begins[row]), int(begins[row]) + len(found))
        columns["header"][mine] = np.array([part.header for part in found], message_header.LAYOUT)
        columns["joined"][mine] = len(found)
        for name in ("frame_bytes", "label_bytes", "header_bytes"):
            columns[name][mine] = shares(int(getattr(messages, name)[row]), len(found))
        columns["header_bytes"][mine] += [part.header_bytes for part in found]
        sizes = [part.payload_size for part in found]
        columns["payload_size"][mine] = columns["payload_seen"][mine] = sizes
    return replace(messages, topics=topics, **columns)


def _overlay_kinds(
    heads: Heads, header: Array, rows: Array, there: Array, payload_at: Array
) -> tuple[Array, Array]:
    """The kinds of the complete OVERLAY messages."""
    overlay_kinds, carried_kinds = np.full((2, len(rows)), UNKNOWN, np.int64)
    overlay = np.flatnonzero((header["kind"] == int(Kind.OVERLAY)) & there)
    if len(overlay):
        overlay_kinds[overlay], carried_kinds[overlay] = kinds_of(
            heads, rows[overlay], payload_at[overlay]
        )
    return overlay_kinds, carried_kinds


def _sums(column: Array, first: Array) -> Array:
    """Sum a column over the pieces of each message."""
    if len(first) == len(column):
        return column
    sums: Array = np.add.reduceat(column, first)
    return sums


def _packets(begins: Array, ends: Array, first: Array) -> Array:
    """Number of segments that carry each message; two of its pieces may be in one."""
    touched = ends - begins + 1
    if len(first) < len(begins):
        again = begins[1:] == ends[:-1]
        again[first[1:] - 1] = False
        touched[1:] -= again
    return _sums(touched, first)


class Sightings:
    """Collects the messages of all streams of a link as Arrow columns."""

    def __init__(self, place: LinkPlace) -> None:
        self.place = place
        self.parts: list[pa.StructArray] = []

    def add(self, messages: Messages, direction: str, source: int, target: int) -> None:
        """Add the messages of one stream from `source` to `target` (addresses)."""
        count = len(messages.topics)
        if not count:
            return
        header = messages.header
        numbers, kinds = self.place.numbers, KIND_NAMES
        columns = {
            "link": _repeated(self.place.name, count),
            "direction": _repeated(direction, count),
            "src": _repeated(self.place.name_of(source), count),
            "dst": _repeated(self.place.name_of(target), count),
            "kind": pa.array([kinds[kind] for kind in header["kind"].tolist()]),
            "origin": pa.array([numbers.get(n, f"#{n}") for n in header["origin"].tolist()]),
            "id": pa.array([f"{number:016x}" for number in header["message_id"].tolist()]),
            "topic": pa.array(messages.topics, pa.string()),
            "priority": header["priority"],
            "hops": header["hops"],
            "published_ns": published_at(header, self.place.clocks),
            "payload_bytes": messages.payload_size,
            "first_ns": messages.first_ns,
            "last_ns": messages.last_ns,
            "complete": messages.complete,
            "frames": messages.frames,
            "websocket_bytes": messages.frame_bytes,
            "header_bytes": messages.header_bytes,
            "pieces": messages.pieces,
            "packets": messages.packets,
            "label_bytes": messages.label_bytes,
            "flags": header["flags"],
            "overlay_kind": _known(messages.overlay_kinds),
            "carried_kind": _known(messages.carried_kinds),
            "joined": messages.joined,
            "stalled_ns": messages.stalled_ns,
            "repeated_ns": messages.repeated_ns,
        }
        self.parts.append(
            pa.StructArray.from_arrays(
                [_as(columns[field.name], field.type) for field in SIGHTING], fields=list(SIGHTING)
            )
        )

    def struct_array(self) -> pa.StructArray:
        return pa.concat_arrays(self.parts) if self.parts else pa.array([], SIGHTING)


def published_at(header: Array, clocks: Mapping[int, Clock]) -> Array:
    """Publish times by the lab machine's clock; `clocks`: of the origins, by number."""
    stamped: Array = header["published_ns"]
    if not clocks:
        return stamped
    times = stamped.astype(np.int64)
    for number in clocks.keys() & set(header["origin"].tolist()):
        mine = (header["origin"] == number) & (times > 0)
        times[mine] = clocks[number].to_lab_ns(times[mine])
    return times


def _repeated(text: str, count: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(count, np.int64)))


def _known(numbers: Array) -> pa.Array:
    return pa.array(numbers.astype(np.int32), mask=numbers == UNKNOWN)


def _as(column: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if pa.types.is_boolean(kind):
        return pa.array(column, kind)
    return pa.array(column.astype(kind.to_pandas_dtype()))
