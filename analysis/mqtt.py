"""MQTT 3.1, 3.1.1 and 5 on captured bytes: one control packet after another. Strict: what is no packet is None.

Only what a capture has to tell is read: which packet, and of a PUBLISH its topic, flags, properties and payload.
"""

from enum import IntEnum
from typing import Final, NamedTuple

LENGTH_DIGITS = 4  # bytes that a length may have, seven bits each
MOST_PROPERTIES = 1 << 16  # bytes; nobody describes a message at greater length
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
_FLAGGED: Final = {Kind.PUBREL: 2, Kind.SUBSCRIBE: 2, Kind.UNSUBSCRIBE: 2}  # of all others 0
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
_NAMES: Final = (b"\0\4MQTT", b"\0\6MQIsdp")  # with which a CONNECT begins
_BRIDGE = 0x80  # mosquitto marks connections between brokers so in the version

# Properties that a PUBLISH may have (version 5, 2.2.2.2), and how long their values are; some tell themselves.
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
    """How a packet begins. `end` may lie beyond the bytes that are there."""

    at: int
    kind: Kind
    flags: int
    body_at: int
    end: int

    @property
    def qos(self) -> int:
        return self.flags >> 1 & 3


class Publication(NamedTuple):
    """What a PUBLISH says before its payload."""

    topic: str
    packet_id: int | None
    properties: int | None  # their bytes, with their length; None before version 5
    alias: int | None
    payload_at: int


def read_head(data: bytes, at: int, version: int | None) -> Head | None:
    """The packet that begins here; None if none can, or if its first bytes are not all there."""
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
    return qos < 3 and not (again and not qos)  # what nobody confirms is not sent again


def _size_fits(kind: Kind, size: int, newest: bool) -> bool:
    least, most = _SIZES[kind]
    if kind is Kind.AUTH and not newest:
        return False
    if newest and kind not in _NEVER_LONGER:
        most = None
    return size >= least and (most is None or size <= most)


def read_length(data: bytes, at: int) -> tuple[int, int] | None:
    """A number of one to four bytes, and where it ends; None if that is none."""
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
    """The version that a client names with its first bytes; None if they are no CONNECT."""
    head = read_head(data, 0, None)
    if head is None or head.kind is not Kind.CONNECT:
        return None
    for name in _NAMES:
        if data.startswith(name, head.body_at) and len(data) > head.body_at + len(name):
            return data[head.body_at + len(name)] & ~_BRIDGE
    return None


def begins_with_connack(data: bytes) -> int | None:
    """The version that a broker's answer shows (3.1 shows as 3.1.1); None if this is no CONNACK."""
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
    """Of a PUBLISH; None if it is none in this version, or if what is before its payload is not all there."""
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
    """The topic alias among the properties of a PUBLISH, 0 without one; None if these are no properties."""
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
    """How long the value of a property is; None if there is no such property."""
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
