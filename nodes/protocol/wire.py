"""The message header: one field table, from which every codec of the project is made.

    0       1       2          3      4       6              8        12           20             28
    +-------+-------+----------+------+-------+--------------+--------+------------+--------------+-------+---------+
    |version| kind  | priority | hops | flags | topic_length | origin | message_id | published_ns | topic | payload |
    +-------+-------+----------+------+-------+--------------+--------+------------+--------------+-------+---------+

Big-endian. One message is one WebSocket message, so the payload's length needs no field of its own.
If `flags` has PLACED, a publication's place follows the topic: the number of its coordinates in 1 byte, then 4 bytes
each (`nodes.protocol.space` says what they mean).
If it has ROUTED, a routing section follows, before the payload: its length in 2 bytes, then at least one byte that only
the overlay between brokers understands (which part of a range the receiver is to serve, for example).
The receiver of a publication with CUSTODY acknowledges it with ACK, when all nodes to which it forwarded it have it.
One with REPEATED was published before and is for the receiver alone: brokers do not forward it to each other.
The scapy layer (`testbed.capture.scapy_layer`) and the Spark decoder (`analysis.protocols.message_header`) are derived
from `FIELDS`.
"""

import struct
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

VERSION = 1
LOWEST_PRIORITY = 1
HIGHEST_PRIORITY = 5
# The Japanese warning levels: 5 emergency safety measures, 4 evacuation order, 3 evacuation of the elderly,
# 2 advisory, 1 early information.
LEVEL_NAMES = {5: "emergency", 4: "evacuate", 3: "prepare", 2: "advisory", 1: "routine"}


class Field(NamedTuple):
    """One fixed-width unsigned field of the header."""

    name: str
    size: int  # bytes
    meaning: str


FIELDS: tuple[Field, ...] = (
    Field("version", 1, "version of this format"),
    Field("kind", 1, "what the message is for, see Kind"),
    Field("priority", 1, "1 (routine) to 5 (emergency): the Japanese warning levels"),
    Field("hops", 1, "overlay links crossed when the message arrives over this one"),
    Field(
        "flags",
        2,
        "sum of: 1 a routing section, 2 custody, 4 repeated, 8 a place (below); else zero",
    ),
    Field("topic_length", 2, "bytes of UTF-8 topic after the fixed part"),
    Field("origin", 4, "number of the node that made the message"),
    Field("message_id", 8, "unique in a run: origin in the upper, a counter in the lower 32 bits"),
    Field("published_ns", 8, "publish time, nanoseconds since 1970 on the origin's clock"),
)

_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
HEADER = struct.Struct("!" + "".join(_CODES[field.size] for field in FIELDS))
HEADER_SIZE = HEADER.size
MAX_TOPIC_BYTES = 255
ROUTED, CUSTODY, REPEATED, PLACED = 1, 2, 4, 8  # in `flags`
SECTIONS = ROUTED | PLACED  # these say what follows the topic, and are set by it
MAX_DIMENSIONS = 8  # of a place
MAX_COORDINATE = 2**32 - 1
COORDINATE_BYTES = 4
MAX_PLACE_BYTES = 1 + MAX_DIMENSIONS * COORDINATE_BYTES
ROUTING_LENGTH = struct.Struct("!H")
MAX_ROUTING_BYTES = 0xFFFF
# What one message may be: control, queues and links all take exactly so much.
MAX_PAYLOAD_BYTES = 8_000_000
MAX_MESSAGE_BYTES = (
    HEADER_SIZE
    + MAX_TOPIC_BYTES
    + MAX_PLACE_BYTES
    + ROUTING_LENGTH.size
    + MAX_ROUTING_BYTES
    + MAX_PAYLOAD_BYTES
)
MAX_SUBSCRIPTIONS = 1024  # of one client


class Kind(IntEnum):
    """What a message is for."""

    HELLO = 1  # first on each link, both ways; payload: JSON {"name", "lab"}
    SUBSCRIBE = 2  # the sender subscribes to the topic
    SUBSCRIBED = 3  # the broker confirms it
    UNSUBSCRIBE = 4
    PUBLISH = 5
    OVERLAY = 6  # between brokers, about the overlay itself; payload: its own binary form
    ACK = 7  # acknowledges the message of this id; payload: which copy (`nodes.overlay.reliability.custody`)
    ADVERTISE = 8  # the sender is going to publish on the topic
    ADVERTISED = (
        9  # the broker confirms it: publications on the topic are forwarded at once from now on
    )
    MISSED = 10  # asks for recent publications on the topic that the sender has not; payload: what it has
    HEARTBEAT = 11  # the sender is alive
    JOINED = (
        12  # several publications of one topic, between brokers; payload: `nodes.protocol.joined`
    )


_KINDS = {int(kind): kind for kind in Kind}


class WireError(ValueError):
    """Bytes that are not a message of this format; the text says why."""


@dataclass(frozen=True, slots=True)
class Message:
    """One overlay message. `flags` never has ROUTED or PLACED here: the sections themselves set them on the wire."""

    kind: Kind
    priority: int = LOWEST_PRIORITY
    hops: int = 1
    flags: int = 0
    origin: int = 0
    message_id: int = 0
    published_ns: int = 0
    topic: str = ""
    payload: bytes = b""
    routing: bytes = b""
    place: tuple[int, ...] = ()  # of a publication: its coordinates, none if it has no place

    @property
    def control(self) -> bool:
        """Whether it is about the link and its subscriptions; it goes before everything else."""
        return self.kind not in (Kind.PUBLISH, Kind.JOINED) and not self.upkeep

    @property
    def upkeep(self) -> bool:
        """Whether it maintains the overlay between brokers; it is repeated, and alerts do not wait for it."""
        return self.kind is Kind.OVERLAY

    @property
    def wire_flags(self) -> int:
        """`flags` as it stands in the bytes."""
        return self.flags | (ROUTED if self.routing else 0) | (PLACED if self.place else 0)

    def forwarded(self) -> "Message":
        """The same message as it leaves for its next hop."""
        return replace(self, hops=min(self.hops + 1, 255))


def message_id(origin: int, counter: int) -> int:
    """A run-wide unique id without coordination."""
    return (origin & 0xFFFFFFFF) << 32 | (counter & 0xFFFFFFFF)


def encode_topic(topic: str) -> bytes:
    """Topic to bytes; WireError if it cannot stand in a message."""
    try:
        data = topic.encode()
    except UnicodeEncodeError:
        raise WireError(f"topic {topic!r} cannot be written as UTF-8") from None
    if len(data) > MAX_TOPIC_BYTES:
        raise WireError(f"topic of {len(data)} bytes; at most {MAX_TOPIC_BYTES} fit")
    return data


def encode(message: Message) -> bytes:
    """Message to bytes; WireError if a field's value does not fit."""
    topic = encode_topic(message.topic)
    if not LOWEST_PRIORITY <= message.priority <= HIGHEST_PRIORITY:
        raise WireError(f"priority {message.priority}; it goes from 1 to 5")
    if message.flags & SECTIONS:
        raise WireError("the flag for a section is set by the section itself")
    if len(message.routing) > MAX_ROUTING_BYTES:
        raise WireError(f"routing of {len(message.routing)} bytes; at most {MAX_ROUTING_BYTES} fit")
    routing = b""
    if message.routing:
        routing = ROUTING_LENGTH.pack(len(message.routing)) + message.routing
    place = _encode_place(message.place) if message.place else b""
    try:
        header = HEADER.pack(
            VERSION,
            message.kind,
            message.priority,
            message.hops,
            message.wire_flags,
            len(topic),
            message.origin,
            message.message_id,
            message.published_ns,
        )
    except struct.error as error:
        raise WireError(f"a field does not fit: {error}") from None
    return header + topic + place + routing + message.payload


def _encode_place(place: tuple[int, ...]) -> bytes:
    if len(place) > MAX_DIMENSIONS:
        raise WireError(f"a place with {len(place)} coordinates; at most {MAX_DIMENSIONS} fit")
    try:
        return struct.pack(f"!B{len(place)}I", len(place), *place)
    except struct.error as error:
        raise WireError(f"a coordinate does not fit: {error}") from None


def decode(data: bytes) -> Message:
    """Bytes to message; WireError for anything else."""
    if len(data) < HEADER_SIZE:
        raise WireError(f"{len(data)} bytes; the header alone has {HEADER_SIZE}")
    version, kind, priority, hops, flags, topic_length, origin, identity, published_ns = (
        HEADER.unpack_from(data)
    )
    if version != VERSION:
        raise WireError(f"version {version}; this node speaks {VERSION}")
    known = _KINDS.get(kind)
    if known is None:
        raise WireError(f"unknown kind {kind}")
    if not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise WireError(f"priority {priority}; it goes from 1 to 5")
    end = HEADER_SIZE + topic_length
    if topic_length > MAX_TOPIC_BYTES or end > len(data):
        raise WireError(f"topic of {topic_length} bytes in a message of {len(data)}")
    try:
        topic = data[HEADER_SIZE:end].decode()
    except UnicodeDecodeError:
        raise WireError("topic is not UTF-8") from None
    place, end = _place(data, end) if flags & PLACED else ((), end)
    routing, end = _routing(data, end) if flags & ROUTED else (b"", end)
    return Message(
        known,
        priority,
        hops,
        flags & ~SECTIONS,
        origin,
        identity,
        published_ns,
        topic,
        data[end:],
        routing,
        place,
    )


def _place(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The place that begins here, and where it ends."""
    if at >= len(data):
        raise WireError(f"no place in a message of {len(data)} bytes that promises one")
    count = data[at]
    end = at + 1 + count * COORDINATE_BYTES
    if not 1 <= count <= MAX_DIMENSIONS or end > len(data):
        raise WireError(f"a place with {count} coordinates in a message of {len(data)} bytes")
    return struct.unpack_from(f"!{count}I", data, at + 1), end


def _routing(data: bytes, at: int) -> tuple[bytes, int]:
    """The routing section that begins here, and where it ends."""
    begin = at + ROUTING_LENGTH.size
    if begin > len(data):
        raise WireError(f"no routing section in a message of {len(data)} bytes that promises one")
    (length,) = ROUTING_LENGTH.unpack_from(data, at)
    if not length or begin + length > len(data):
        raise WireError(f"routing of {length} bytes in a message of {len(data)}")
    return data[begin : begin + length], begin + length
