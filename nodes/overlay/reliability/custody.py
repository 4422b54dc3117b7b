"""ACK: the acknowledgement of a publication with custody, and which copy of it is acknowledged.

A broker may get several copies of one publication: for several parts of the overlay, with different routing sections;
or with the same section, when the copy went round while the brokers did not agree on the route. A checksum of hops and
routing section identifies the copy. A copy that is sent again has the same checksum.
"""

import struct
from zlib import crc32

from nodes.protocol.wire import CUSTODY, FIELDS, HEADER, Kind, Message, WireError

_CHECKSUM = struct.Struct("!I")
_KIND, _FLAGS = (
    next(place for place, field in enumerate(FIELDS) if field.name == name)
    for name in ("kind", "flags")
)


def has_custody(message: Message) -> bool:
    """Whether it is a publication that its receiver acknowledges with ACK."""
    return message.kind is Kind.PUBLISH and bool(message.flags & CUSTODY)


def encoded_with_custody(data: bytes) -> bool:
    """The same of an encoded message."""
    header = HEADER.unpack_from(data)
    return header[_KIND] == Kind.PUBLISH and bool(header[_FLAGS] & CUSTODY)


def copy_checksum(message: Message) -> int:
    """The checksum that identifies this copy of a publication."""
    return crc32(message.routing, message.hops)


def acknowledgement(number: int, message: Message) -> Message:
    """The acknowledgement of this copy by the node of this number."""
    return Message(
        Kind.ACK,
        origin=number,
        message_id=message.message_id,
        payload=_CHECKSUM.pack(copy_checksum(message)),
    )


def acknowledged_copy(ack: Message) -> int:
    """The checksum of the copy that an ACK acknowledges; WireError if its payload has another length."""
    if len(ack.payload) != _CHECKSUM.size:
        raise WireError(f"ACK with {len(ack.payload)} bytes of payload; it has {_CHECKSUM.size}")
    checksum: int = _CHECKSUM.unpack(ack.payload)[0]
    return checksum
