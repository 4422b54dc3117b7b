"""TAKEN: the answer to a publication with custody, and which copy of it is meant.

A broker may get the same publication several times, for several parts of the overlay, with other routing sections; or
once more with the same one, when it has gone round while the brokers did not agree on the way. A checksum of hops and
routing section tells the copies apart. One that is sent again is the same copy.
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
    """Whether it is a publication that is answered with TAKEN."""
    return message.kind is Kind.PUBLISH and bool(message.flags & CUSTODY)


def encoded_with_custody(data: bytes) -> bool:
    """The same of an encoded message."""
    header = HEADER.unpack_from(data)
    return header[_KIND] == Kind.PUBLISH and bool(header[_FLAGS] & CUSTODY)


def copy_checksum(message: Message) -> int:
    """What tells this copy of a publication from others."""
    return crc32(message.routing, message.hops)


def acknowledgement(number: int, message: Message) -> Message:
    """The answer of the node of this number to this copy."""
    return Message(
        Kind.TAKEN,
        origin=number,
        message_id=message.message_id,
        payload=_CHECKSUM.pack(copy_checksum(message)),
    )


def acknowledged_copy(ack: Message) -> int:
    """The mark of the copy that a TAKEN means; WireError if it does not say."""
    if len(ack.payload) != _CHECKSUM.size:
        raise WireError(f"TAKEN with {len(ack.payload)} bytes of payload; it has {_CHECKSUM.size}")
    checksum: int = _CHECKSUM.unpack(ack.payload)[0]
    return checksum
