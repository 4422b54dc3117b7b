"""Graph messages as bytes: the number of the kind, then the fields in their order. Big-endian, nothing optional.

    key       2 bytes of length, then the key          contact   key, 4 bytes of node, 8 of vector
    flag      1 byte, 0 or 1                           contacts  1 byte of count, then so many contacts
    maybe     flag, then a contact if it is 1          body      everything to the end

A multicast of a publication is no message of its own: written with an empty body it is the routing section of the
publication, and `with_publication` puts both together again.
"""

import struct
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, NamedTuple

from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.wire import Message, WireError

_CONTACT = struct.Struct("!IQ")


class Reader:
    """Takes bytes from the front; WireError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        begin, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise WireError(f"an overlay message of {len(self._data)} bytes is cut")
        return self._data[begin : self._at]

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)


class Form(NamedTuple):
    """How a value is written and read."""

    write: Callable[[Any], bytes]
    read: Callable[[Reader], Any]


def _unsigned(size: int) -> Form:
    def write(value: int) -> bytes:
        try:
            return value.to_bytes(size)
        except OverflowError:
            raise WireError(f"{value} does not fit into {size} bytes") from None

    return Form(write, lambda reader: int.from_bytes(reader.take(size)))


U8, U16, U32, U64 = (_unsigned(size) for size in (1, 2, 4, 8))


def _write_key(key: bytes) -> bytes:
    return U16.write(len(key)) + key


def _read_key(reader: Reader) -> bytes:
    return reader.take(U16.read(reader))


def _write_contact(contact: Contact) -> bytes:
    return _write_key(contact.key) + U32.write(contact.node) + U64.write(contact.vector)


def _read_contact(reader: Reader) -> Contact:
    return Contact(_read_key(reader), *_CONTACT.unpack(reader.take(_CONTACT.size)))


def _read_flag(reader: Reader) -> bool:
    value = U8.read(reader)
    if value > 1:
        raise WireError(f"a flag of {value}")
    return bool(value)


def _read_way(reader: Reader) -> m.Way:
    value = U8.read(reader)
    try:
        return m.Way(value)
    except ValueError:
        raise WireError(f"unknown way {value} of a multicast") from None


KEY = Form(_write_key, _read_key)
CONTACT = Form(_write_contact, _read_contact)
FLAG = Form(lambda value: bytes([value]), _read_flag)
MAYBE = Form(
    lambda value: b"\0" if value is None else b"\1" + _write_contact(value),
    lambda reader: _read_contact(reader) if _read_flag(reader) else None,
)
CONTACTS = Form(
    lambda value: U8.write(len(value)) + b"".join(map(_write_contact, value)),
    lambda reader: tuple(_read_contact(reader) for _ in range(U8.read(reader))),
)
WAY = Form(lambda value: bytes([value]), _read_way)
BODY = Form(lambda value: value if isinstance(value, bytes) else b"", Reader.rest)

FORMS: dict[int, tuple[type[Any], tuple[Form, ...]]] = {
    1: (m.Locate, (KEY, U32, U32, U8)),
    2: (m.Gap, (U32, CONTACT, CONTACT, U64)),
    3: (m.Noted, (U32, FLAG)),
    4: (m.Claim, (KEY, CONTACT, U64, CONTACT, U64, U32)),
    5: (m.Claimed, (KEY, CONTACT, U64)),
    6: (m.Unlink, (CONTACT, CONTACT, U64, U8)),
    7: (m.Unlinked, (KEY,)),
    8: (m.Check, (KEY, CONTACT, U64, U16)),
    9: (m.Checked, (KEY, CONTACT, U64, FLAG, CONTACTS)),
    10: (m.Declined, (KEY, CONTACT, U64, CONTACT)),
    11: (m.Gone, (KEY, KEY, U64)),
    12: (m.Find, (KEY, U8, FLAG, CONTACT)),
    13: (m.Found, (KEY, U8, FLAG, MAYBE)),
    14: (m.Bye, (CONTACT,)),
    15: (m.Seek, (KEY, U32, U32, U8)),
    16: (m.Sought, (U32, CONTACT, U8)),
    17: (m.Carry, (KEY, U32, U8, BODY)),
    18: (m.Notify, (BODY,)),
    19: (m.Multicast, (KEY, KEY, U32, WAY, KEY, KEY, KEY, U64, BODY)),
    20: (m.Recheck, (KEY, KEY)),
    21: (m.Suspect, (KEY, U8)),
    22: (m.PeerDead, (KEY, CONTACT, U8, FLAG)),
}
_NUMBERS = {kind: number for number, (kind, _) in FORMS.items()}
_NAMES = {kind: tuple(field.name for field in fields(kind)) for kind, _ in FORMS.values()}


def encode(message: m.GraphMessage) -> bytes:
    """Message to bytes; WireError if a value does not fit. Of a publication's multicast, all but the publication."""
    kind = type(message)
    number = _NUMBERS[kind]
    parts = [bytes([number])]
    for name, form in zip(_NAMES[kind], FORMS[number][1], strict=True):
        parts.append(form.write(getattr(message, name)))
    return b"".join(parts)


def decode(data: bytes) -> m.GraphMessage:
    """Bytes to message; WireError for anything else."""
    reader = Reader(data)
    number = U8.read(reader)
    if number not in FORMS:
        raise WireError(f"unknown overlay message {number}")
    kind, forms = FORMS[number]
    message: m.GraphMessage = kind(*(form.read(reader) for form in forms))
    if reader.rest():
        raise WireError(f"bytes after the end of {kind.__name__}")
    return message


def write_contacts(contacts: tuple[Contact, ...]) -> bytes:
    """Contacts in a message of a layer above; at most 255."""
    return CONTACTS.write(contacts)


def read_contacts(data: bytes) -> tuple[Contact, ...]:
    """The same back; WireError for anything else."""
    reader = Reader(data)
    contacts: tuple[Contact, ...] = CONTACTS.read(reader)
    if reader.rest():
        raise WireError("bytes after the last contact")
    return contacts


def with_publication(publication: Message) -> m.Multicast:
    """The multicast that the routing section of a publication describes; WireError if it does not."""
    multicast = decode(publication.routing)
    if not isinstance(multicast, m.Multicast):
        raise WireError(f"{type(multicast).__name__} in the routing of a publication")
    return replace(multicast, body=replace(publication, routing=b""))
