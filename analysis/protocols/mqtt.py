"""Reads MQTT 3.1, 3.1.1 and 5 from captured bytes, one control packet after another. Strict: None for invalid packets.

It reads the kind of each packet, and of a PUBLISH its topic, flags, properties and payload.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.protocols.message_header import unmask
from analysis.protocols.websocket import MASK_BIT, FrameScan
from analysis.streams.stream import Stream

LENGTH_DIGITS = 4  # most bytes of a length, seven bits each
MOST_PROPERTIES = 1 << 16  # bytes; longer properties are implausible
LONGEST_HEAD = 1 << 18  # with a topic of 64 KiB and as many properties
NEWEST = 5
V311 = 4


class Kind(IntEnum):
    """The control packets of MQTT."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


_KINDS: Final = {int(kind): kind for kind in Kind}
_FLAGGED: Final = {Kind.PUBREL: 2, Kind.SUBSCRIBE: 2, Kind.UNSUBSCRIBE: 2}  # all others: 0
# The fewest and most bytes that can follow the length in version 3.1.1; version 5 may add to all but the pings.
_SIZES: Final[dict[Kind, tuple[int, int | None]]] = {
    Kind.CONNECT: (12, None),
    Kind.CONNACK: (2, 2),
    Kind.PUBLISH: (3, None),
    Kind.PUBACK: (2, 2),
    Kind.PUBREC: (2, 2),
    Kind.PUBREL: (2, 2),
    Kind.PUBCOMP: (2, 2),
    Kind.SUBSCRIBE: (6, None),
    Kind.SUBACK: (3, None),
    Kind.UNSUBSCRIBE: (5, None),
    Kind.UNSUBACK: (2, 2),
    Kind.PINGREQ: (0, 0),
    Kind.PINGRESP: (0, 0),
    Kind.DISCONNECT: (0, 0),
    Kind.AUTH: (0, 0),
}
_NEVER_LONGER: Final = frozenset((Kind.PINGREQ, Kind.PINGRESP))
_NAMES: Final = (b"\0\4MQTT", b"\0\6MQIsdp")  # at the beginning of a CONNECT
_BRIDGE = 0x80  # mosquitto sets this bit of the version on connections between brokers
# Properties of a PUBLISH (version 5, 2.2.2.2), and the size of their values; negative: the value has its own length.
_TEXT, _NUMBER, _TWO_TEXTS = -1, -2, -3
_PROPERTIES: Final = {
    0x01: 1,  # payload format
    0x02: 4,  # expiry
    0x03: _TEXT,  # content type
    0x08: _TEXT,  # response topic
    0x09: _TEXT,  # correlation data
    0x0B: _NUMBER,  # subscription
    0x23: 2,  # topic alias
    0x26: _TWO_TEXTS,  # user property
}
_ALIAS = 0x23


class Head(NamedTuple):
    """The fixed header of a packet. `end` may lie beyond the available bytes."""

    at: int
    kind: Kind
    flags: int
    body_at: int
    end: int

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3


class Publication(NamedTuple):
    """The variable header of a PUBLISH."""

    topic: str
    packet_id: int | None
    properties: int | None  # their bytes, with their length; None before version 5
    alias: int | None
    payload_at: int


def read_head(data: bytes, at: int, version: int | None) -> Head | None:
    """The packet that begins here; None if it is invalid, or if its header is incomplete."""
    if at >= len(data) or (kind := _KINDS.get(data[at] >> 4)) is None:
        return None
    flags = data[at] & 0x0F
    if not _flags_fit(kind, flags) or (found := read_length(data, at + 1)) is None:
        return None
    size, body_at = found
    if not _size_fits(kind, size, version is None or version >= NEWEST):
        return None
    return Head(at, kind, flags, body_at, body_at + size)


def _flags_fit(kind: Kind, flags: int) -> bool:
    if kind is not Kind.PUBLISH:
        return flags == _FLAGGED.get(kind, 0)
    qos, again = flags >> 1 & 3, flags & 8
    return qos < 3 and not (again and not qos)  # QoS 0 is never sent again


def _size_fits(kind: Kind, size: int, newest: bool) -> bool:
    least, most = _SIZES[kind]
    if kind is Kind.AUTH and not newest:
        return False
    if newest and kind not in _NEVER_LONGER:
        most = None
    return size >= least and (most is None or size <= most)


def read_length(data: bytes, at: int) -> tuple[int, int] | None:
    """A variable-length number of one to four bytes, and where it ends; None if it is invalid."""
    value = 0
    for digit in range(LENGTH_DIGITS):
        if at + digit >= len(data):
            return None
        byte = data[at + digit]
        value |= (byte & 0x7F) << 7 * digit
        if byte < 0x80:
            return value, at + digit + 1
    return None


def begins_with_connect(data: bytes) -> int | None:
    """The version in a CONNECT at the beginning; None if this is no CONNECT."""
    head = read_head(data, 0, None)
    if head is None or head.kind is not Kind.CONNECT:
        return None
    for name in _NAMES:
        if data.startswith(name, head.body_at) and len(data) > head.body_at + len(name):
            return data[head.body_at + len(name)] & ~_BRIDGE
    return None


def begins_with_connack(data: bytes) -> int | None:
    """The version that a CONNACK implies (3.1 shows as 3.1.1); None if this is no CONNACK."""
    head = read_head(data, 0, None)
    if head is None or head.kind is not Kind.CONNACK or head.end > len(data):
        return None
    acknowledged, reason = data[head.body_at], data[head.body_at + 1]
    if acknowledged > 1:
        return None
    if head.end - head.body_at == 2:
        return V311 if reason <= 5 else None
    properties = read_length(data, head.body_at + 2)
    whole = properties is not None and sum(properties) == head.end
    return NEWEST if whole and (reason == 0 or reason >= 0x80) else None


def read_publication(data: bytes, head: Head, version: int) -> Publication | None:
    """Read a PUBLISH; None if it is invalid in this version, or if its variable header is incomplete."""
    at, end = head.body_at + 2, min(head.end, len(data))
    topic_end = at + int.from_bytes(data[head.body_at : at])
    after = topic_end + (2 if head.qos else 0)
    topic = _topic(data[at:topic_end]) if after <= end else None
    packet_id = int.from_bytes(data[topic_end:after]) if head.qos else None
    if topic is None or packet_id == 0:
        return None
    if version < NEWEST:
        return Publication(topic, packet_id, None, None, after) if topic else None
    found = read_length(data, after)
    if found is None or sum(found) > end or found[0] > MOST_PROPERTIES:
        return None
    payload_at = sum(found)
    alias = read_alias(data, found[1], payload_at)
    if alias is None or not (topic or alias):
        return None
    return Publication(topic, packet_id, payload_at - after, alias or None, payload_at)


def read_alias(data: bytes, at: int, end: int) -> int | None:
    """The topic alias in the properties of a PUBLISH, 0 without one; None if the properties are invalid."""
    alias = 0
    while at < end:
        name = data[at]
        size = _value_size(data, at + 1, end, name)
        if size is None or at + 1 + size > end:
            return None
        if name == _ALIAS:
            alias = int.from_bytes(data[at + 1 : at + 1 + size])
            if not alias:
                return None
        at += 1 + size
    return alias


def _value_size(data: bytes, at: int, end: int, name: int) -> int | None:
    """Size of a property's value; None for an unknown property."""
    kind = _PROPERTIES.get(name)
    if kind is None or kind >= 0:
        return kind
    if kind == _NUMBER:
        found = read_length(data[at : min(end, at + LENGTH_DIGITS)], 0)
        return None if found is None else found[1]
    size = 0
    for _ in range(2 if kind == _TWO_TEXTS else 1):
        size += 2 + int.from_bytes(data[at + size : at + size + 2])
    return size


def _topic(raw: bytes) -> str | None:
    """The topic of a publication: UTF-8 without wildcards."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return None if any(mark in text for mark in "#+\0") else text


# The MQTT packets of a stream, plain or inside WebSocket frames, with their times.
#
# A reader that begins in the middle, or after lost bytes, tries the beginnings of TCP segments: senders nearly always
# begin a packet there. A candidate is accepted if its packets end where a segment ends, or are several in a row.


Array = npt.NDArray[Any]
ENOUGH = 3  # packets in a row
DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Content:
    """MQTT bytes, and their places in the stream: runs, one after the other."""

    stream: Stream
    data: bytes
    runs: Array  # where each begins in `data`,
    places: Array  # and where in the stream
    unknown: tuple[tuple[int, int], ...] = ()
    plain: bool = True

    def place(self, at: Array) -> Array:
        """The places of these bytes in the stream."""
        run = np.searchsorted(self.runs, at, "right") - 1
        where: Array = self.places[run] + at - self.runs[run]
        return where

    def seen(self, begin: Array, end: Array) -> Array:
        """Number of captured bytes of each range; the content of frames is complete by construction."""
        inside = np.minimum(end, len(self.data))
        if self.plain:
            return self.stream.covered(begin, np.maximum(begin, inside))
        there: Array = np.maximum(inside - begin, 0)
        return there

    def known(self, begin: Array, end: Array) -> Array:
        """Whether each range was captured completely: the capture may truncate packets."""
        if not self.unknown:
            return np.ones(len(begin), bool)
        begins, ends = (np.array(side, np.int64) for side in zip(*self.unknown, strict=True))
        before = np.searchsorted(begins, end - 1, "right") - 1
        return (end <= begin) | (before < 0) | (ends[before] <= begin)


def plain(stream: Stream) -> Content:
    """The stream as plain MQTT."""
    zero = np.zeros(1, np.int64)
    return Content(stream, stream.data, zero, zero, stream.unknown)


def in_frames(stream: Stream, found: FrameScan, end: int) -> Content:
    """The payload of WebSocket frames, up to this place."""
    parts: list[bytes] = []
    places: list[int] = []
    for at, payload_at, frame_end in found.frames:
        if payload_at >= end:
            break
        payload = stream.data[payload_at : min(frame_end, end)]
        masked = stream.data[at + 1] & MASK_BIT
        mask = stream.data[payload_at - 4 : payload_at]
        parts.append(unmask(payload, mask) if masked else payload)
        places.append(payload_at)
        if frame_end > end:
            break
    runs = np.cumsum([0, *map(len, parts)])[: max(1, len(parts))]
    return Content(stream, b"".join(parts), runs, np.array(places or [0], np.int64), plain=False)


class Packet(NamedTuple):
    """A control packet; of all but a PUBLISH, `payload_at` is its end."""

    head: Head
    payload_at: int
    publication: Publication | None = None
    topic: str | None = None


@dataclass(slots=True)
class Found:
    """The packets up to `stopped`; if `lost`, the next packet must be searched from there."""

    packets: list[Packet] = field(default_factory=list)
    stopped: int = 0
    lost: bool = False


def opening_version(data: bytes) -> int | None:
    """The MQTT version of a stream that begins with these bytes; None if it is not MQTT."""
    return begins_with_connect(data) or begins_with_connack(data)


def likely_version(stream: Stream) -> int | None:
    """The MQTT version that explains a stream without its beginning best; None if none does."""
    found = {
        version: _published(MqttReader(version).read(plain(stream), lost=True).packets)
        for version in (NEWEST, V311)
    }
    best = NEWEST if found[NEWEST] >= found[V311] else V311
    return best if found[best] else None


def _published(packets: list[Packet]) -> int:
    """Bytes of publications in these packets."""
    return sum(
        packet.head.end - packet.head.at for packet in packets if packet.publication is not None
    )


class MqttReader:
    """Reads one stream, possibly in parts. It remembers topic aliases (version 5)."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.topics: dict[int, str] = {}

    def read(
        self, content: Content, at: int = 0, *, lost: bool = False, final: bool = True
    ) -> Found:
        """All packets from here on; if not final, only those that no later byte changes."""
        return _Pass(self, content, final).run(at, lost)

    def named(self, packet: Packet) -> Packet:
        """The packet with its topic, if the alias is known."""
        published = packet.publication
        if published is None:
            return packet
        if published.alias and published.topic:
            self.topics[published.alias] = published.topic
        return packet._replace(topic=published.topic or self.topics.get(published.alias or 0))


class _Unsure(Exception):
    """The result depends on bytes that are not there yet."""


class _Pass:
    """One pass over the content, packet by packet."""

    def __init__(self, reader: MqttReader, content: Content, final: bool) -> None:
        self.reader, self.content, self.final = reader, content, final
        self.data = content.data
        self.unknown_begins = [begin for begin, _ in content.unknown]
        self.unknown_ends = [end for _, end in content.unknown]
        stream = content.stream
        self.segments: list[int] = stream.starts.tolist() if content.plain else []
        ends = set((stream.starts + stream.lengths).tolist()) if content.plain else set()
        self.segment_ends = ends if final else ends - {len(self.data)}

    def run(self, at: int, lost: bool) -> Found:
        found = Found()
        try:
            while at < len(self.data):
                if lost:
                    at, lost = self._next(at), False
                    continue
                packet = self._packet(at)
                if packet is None:
                    at, lost = at + 1, True
                    continue
                if packet.head.end > len(self.data) and not self.final:
                    break
                found.packets.append(self.reader.named(packet))
                at = packet.head.end
        except _Unsure as unsure:
            at = unsure.args[0]
        found.stopped, found.lost = at, lost
        return found

    def _packet(self, at: int) -> Packet | None:
        packet = self._known_packet(at)
        if packet is None and not self.final and at + LONGEST_HEAD > len(self.data):
            raise _Unsure(at)
        return packet

    def _known_packet(self, at: int) -> Packet | None:
        head = read_head(self.data, at, self.reader.version)
        if head is None:
            return None
        if head.kind is not Kind.PUBLISH:
            known = not self._is_unknown(at, min(head.end, len(self.data)))
            return Packet(head, head.end) if known else None
        published = read_publication(self.data, head, self.reader.version)
        if published is None or self._is_unknown(at, published.payload_at):
            return None
        return Packet(head, published.payload_at, published)

    def _next(self, at: int) -> int:
        """The next segment that begins with packets; the end if there is none."""
        for place in self.segments[bisect_left(self.segments, at) :]:
            try:
                if self._can_begin(place):
                    return place
            except _Unsure as unsure:
                raise _Unsure(place) from unsure
        return len(self.data)

    def _can_begin(self, at: int) -> bool:
        for _ in range(ENOUGH):
            packet = self._packet(at)
            if packet is None:
                return False
            at = packet.head.end
            if at in self.segment_ends:
                return True
        return True

    def _is_unknown(self, begin: int, end: int) -> bool:
        before = bisect_right(self.unknown_begins, end - 1) - 1
        return before >= 0 and self.unknown_ends[before] > begin


def digest(payload: bytes) -> str:
    """A digest that identifies the payload on other links."""
    return blake2b(payload, digest_size=DIGEST_BYTES).hexdigest()


# Rows: one control packet on one link in one direction.


MQTT = pa.struct(
    [
        *((name, pa.string()) for name in ("link", "direction", "src", "dst")),
        ("version", pa.int32()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("qos", pa.int32()),
        ("retain", pa.bool_()),
        ("dup", pa.bool_()),
        ("packet_id", pa.int32()),
        *((name, pa.int64()) for name in ("payload_bytes", "header_bytes", "properties_bytes")),
        ("digest", pa.string()),
        *((name, pa.int64()) for name in ("first_ns", "last_ns")),
        ("complete", pa.bool_()),
        ("packets", pa.int32()),
    ]
)


class Cost(NamedTuple):
    """The captured bytes and the number of packets of a stream."""

    mqtt_bytes: int
    payload_bytes: int
    mqtt_messages: int
    mqtt_control: int


def rows_of(
    content: Content, packets: list[Packet], about: dict[str, Any]
) -> tuple[pa.StructArray, Cost]:
    """Rows of these packets, and their cost; `about`: columns that are the same in all rows."""
    stream = content.stream
    edges = np.array([(p.head.at, p.payload_at, p.head.end) for p in packets], np.int64)
    begin, payload_at, end = edges.reshape(-1, 3).T
    headed, carried = content.seen(begin, payload_at), content.seen(payload_at, end)
    whole: Array = headed + carried == end - begin
    known: Array = whole & content.known(payload_at, end)
    last = content.place(np.minimum(end, len(content.data)) - 1)
    first_piece, last_piece = stream.segment(content.place(begin)), stream.segment(last)
    published = np.array([p.publication is not None for p in packets], bool)
    rows = [
        {
            **about,
            "kind": packet.head.kind.name,
            "payload_bytes": packet.head.end - packet.payload_at,
            "header_bytes": packet.payload_at - packet.head.at,
            "first_ns": first_ns,
            "last_ns": last_ns,
            "complete": complete,
            "packets": touched,
            **_of_publication(packet, content.data if readable else None),
        }
        for packet, first_ns, last_ns, complete, readable, touched in zip(
            packets,
            stream.seen_ns[first_piece].tolist(),
            stream.complete_ns[last_piece].tolist(),
            whole.tolist(),
            known.tolist(),
            (last_piece - first_piece + 1).tolist(),
            strict=True,
        )
    ]
    count = int(published.sum())
    cost = Cost(int(headed.sum()), int(carried.sum()), count, len(packets) - count)
    return pa.array(rows, MQTT), cost


def _of_publication(packet: Packet, data: bytes | None) -> dict[str, Any]:
    """The columns of a PUBLISH; `data` None: its payload was not captured completely."""
    published = packet.publication
    if published is None:
        return {}
    head = packet.head
    return {
        "topic": packet.topic,
        "qos": head.qos,
        "retain": bool(head.flags & 1),
        "dup": bool(head.flags & 8),
        "packet_id": published.packet_id,
        "properties_bytes": published.properties,
        "digest": None if data is None else digest(data[packet.payload_at : head.end]),
    }
