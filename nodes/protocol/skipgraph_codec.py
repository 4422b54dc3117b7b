"""Graph messages as bytes: the number of the kind, then the fields in their order. Big-endian, nothing optional.

    key       2 bytes of length, then the key          contact   key, 4 bytes of node, 8 of vector
    flag      1 byte, 0 or 1                           contacts  1 byte of count, then so many contacts
    maybe     flag, then a contact if it is 1          body      everything to the end

A multicast of a publication is no message of its own: written with an empty body it is the routing section of the
publication, and `with_publication` puts both together again.
"""

import struct
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.wire import Message, WireError

_LENGTH = struct.Struct("!H")  # of a key
_CONTACT = struct.Struct("!IQ")
_WAYS = {int(way): way for way in m.Way}
CUT = (IndexError, struct.error)

# Most messages are about contacts that earlier ones were about: so many contacts are remembered by their bytes, if
# these are at most so many, because a hostile node may send long keys to fill the memory.
KNOWN_CONTACTS = 10_000
LONGEST_KNOWN = 400

Read = Callable[[bytes, int], tuple[Any, int]]


class Form(NamedTuple):
    """How a value is written, and how it is read from an offset on: the value, and the offset of what follows.

    `read` raises one of CUT if bytes are missing; `read_all` makes a WireError of it.
    """

    write: Callable[[Any], bytes]
    read: Read


def _unsigned(code: str) -> Form:
    form = struct.Struct(f"!{code}")
    size, pack, unpack = form.size, form.pack, form.unpack_from

    def write(value: int) -> bytes:
        try:
            return pack(value)
        except struct.error:
            raise WireError(f"{value} does not fit into {size} bytes") from None

    def read(data: bytes, at: int) -> tuple[int, int]:
        return unpack(data, at)[0], at + size

    return Form(write, read)


U8, U16, U32, U64 = (_unsigned(code) for code in "BHIQ")


def _write_key(key: bytes) -> bytes:
    return U16.write(len(key)) + key


def _read_key(data: bytes, at: int) -> tuple[bytes, int]:
    begin = at + _LENGTH.size
    end = begin + _LENGTH.unpack_from(data, at)[0]
    if end > len(data):
        raise IndexError
    return data[begin:end], end


def _write_contact(contact: Contact) -> bytes:
    try:
        return _write_key(contact.key) + _CONTACT.pack(contact.node, contact.vector)
    except struct.error:
        numbers = f"node {contact.node} or vector {contact.vector}"
        raise WireError(f"{numbers} does not fit") from None


def _read_contact(data: bytes, at: int) -> tuple[Contact, int]:
    end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0] + _CONTACT.size
    contact = _known_contact if end - at <= LONGEST_KNOWN else _contact
    return contact(data[at:end]), end


def _contact(data: bytes) -> Contact:
    key, end = _read_key(data, 0)
    return Contact(key, *_CONTACT.unpack_from(data, end))


_known_contact = lru_cache(KNOWN_CONTACTS)(_contact)


def _read_contacts(data: bytes, at: int) -> tuple[tuple[Contact, ...], int]:
    contacts = []
    count, at = data[at], at + 1
    for _ in range(count):
        contact, at = _read_contact(data, at)
        contacts.append(contact)
    return tuple(contacts), at


def _read_maybe(data: bytes, at: int) -> tuple[Contact | None, int]:
    there, at = _read_flag(data, at)
    return _read_contact(data, at) if there else (None, at)


def _read_flag(data: bytes, at: int) -> tuple[bool, int]:
    value = data[at]
    if value > 1:
        raise WireError(f"a flag of {value}")
    return value == 1, at + 1


def _read_way(data: bytes, at: int) -> tuple[m.Way, int]:
    value = data[at]
    if value not in _WAYS:
        raise WireError(f"unknown way {value} of a multicast")
    return _WAYS[value], at + 1


def _read_body(data: bytes, at: int) -> tuple[bytes, int]:
    return data[at:], len(data)


KEY = Form(_write_key, _read_key)
CONTACT = Form(_write_contact, _read_contact)
FLAG = Form(lambda value: b"\1" if value else b"\0", _read_flag)
MAYBE = Form(
    lambda value: b"\0" if value is None else b"\1" + _write_contact(value),
    _read_maybe,
)
CONTACTS = Form(
    lambda value: U8.write(len(value)) + b"".join(map(_write_contact, value)),
    _read_contacts,
)
WAY = Form(lambda value: bytes([value]), _read_way)
BODY = Form(lambda value: value if isinstance(value, bytes) else b"", _read_body)


def read_all(reads: Iterable[Read], data: bytes, at: int, what: str) -> list[Any]:
    """The values from this offset on, to the end of the bytes; WireError if bytes are missing or left over."""
    values = []
    try:
        for read in reads:
            value, at = read(data, at)
            values.append(value)
    except CUT:
        raise WireError(f"an overlay message of {len(data)} bytes is cut") from None
    if at != len(data):
        raise WireError(f"bytes after {what}")
    return values


class Layout:
    """The bytes of a class of messages: its number, then its fields, each in its form."""

    def __init__(self, number: int, kind: type[Any], forms: tuple[Form, ...]) -> None:
        self.kind = kind
        self._number = bytes([number])
        self._end = f"the end of {kind.__name__}"
        names = [field.name for field in fields(kind)]
        self._writes = tuple((name, form.write) for name, form in zip(names, forms, strict=True))
        self._reads = tuple(form.read for form in forms)

    def write(self, message: object) -> bytes:
        """The message as bytes; WireError if a value does not fit."""
        parts = [self._number]
        for name, write in self._writes:
            parts.append(write(getattr(message, name)))
        return b"".join(parts)

    def read(self, data: bytes) -> list[Any]:
        """The values of the fields; WireError for anything else. The caller has read the number."""
        return read_all(self._reads, data, 1, self._end)


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

_LAYOUTS = {number: Layout(number, kind, forms) for number, (kind, forms) in FORMS.items()}
_BY_KIND = {layout.kind: layout for layout in _LAYOUTS.values()}


def encode(message: m.GraphMessage) -> bytes:
    """Message to bytes; WireError if a value does not fit. Of a publication's multicast, all but the publication."""
    return _BY_KIND[type(message)].write(message)


def decode(data: bytes) -> m.GraphMessage:
    """Bytes to message; WireError for anything else."""
    if not data:
        raise WireError("an overlay message of 0 bytes is cut")
    layout = _LAYOUTS.get(data[0])
    if layout is None:
        raise WireError(f"unknown overlay message {data[0]}")
    message: m.GraphMessage = layout.kind(*layout.read(data))
    return message


def write_contacts(contacts: tuple[Contact, ...]) -> bytes:
    """Contacts in a message of a layer above; at most 255."""
    return CONTACTS.write(contacts)


def read_contacts(data: bytes) -> tuple[Contact, ...]:
    """The same back; WireError for anything else."""
    (contacts,) = read_all([CONTACTS.read], data, 0, "the last contact")
    return tuple(contacts)


def with_publication(publication: Message) -> m.Multicast:
    """The multicast that the routing section of a publication describes; WireError if it does not."""
    multicast = decode(publication.routing)
    if not isinstance(multicast, m.Multicast):
        raise WireError(f"{type(multicast).__name__} in the routing of a publication")
    return replace(multicast, body=replace(publication, routing=b""))
