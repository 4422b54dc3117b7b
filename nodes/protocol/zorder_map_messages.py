"""Control messages of the Z-order map: one byte for the kind, then the fields in their order, big-endian.

    point    1 byte of length, then the number          spans    2 bytes of count, then first and last point of each
    text     2 bytes of length, then UTF-8              entry    broker (4), version (8), flag, text
    entries  4 bytes of count, then so many entries

The routing section of a publication has 6 bytes: where it goes (`Toward`), hops so far, number of the attempt (4).
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from nodes.protocol.regions import Spans
from nodes.protocol.skipgraph_codec import BODY, FLAG, KEY, U8, U16, U32, U64, Form, Layout
from nodes.protocol.wire import Kind, Message, WireError


class Entry(NamedTuple):
    """One interest of a broker: since this version the broker wants it, or wants it no more."""

    broker: int
    version: int
    wanted: bool
    text: str


@dataclass(frozen=True, slots=True)
class Register:
    """Routed to the owner of `first`: record the entry, and pass it on to the owners of the points up to `last`.

    `begin`: where the walk began. `late`: an owner on the way served its points without knowing the entry.
    """

    begin: int
    first: int
    last: int
    late: bool
    entry: Entry


@dataclass(frozen=True, slots=True)
class Registered:
    """To the broker of the entry: the walk that began there has come to its end."""

    begin: int
    last: int
    version: int
    late: bool


@dataclass(frozen=True, slots=True)
class Handover:
    """Hands over these points with their entries, to their owner or to a node nearer to it.

    `unsure`: entries may be missing, because a broker has crashed: all brokers must register again.
    """

    ticket: int
    hops: int
    unsure: bool
    spans: Spans
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Received:
    """Acknowledges the handover with this ticket."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Want:
    """Asks for points that the sender owns by the ring, and that the receiver had or split."""

    spans: Spans


@dataclass(frozen=True, slots=True)
class Patience:
    """The reply: the sender has the points or waits for them itself, except these, which it does not know."""

    unknown: Spans


@dataclass(frozen=True, slots=True)
class RollCall:
    """To all brokers, or to one: register your interests at these points again."""

    spans: Spans


@dataclass(frozen=True, slots=True)
class Forget:
    """Cancels what the sender registered before this version: it has restarted."""

    version: int


@dataclass(frozen=True, slots=True)
class Question:
    """To all brokers: a payload of the layer above, for the publishers of the interest's topic."""

    text: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """Passed on at random so many steps; the last node reports its load to the asker."""

    asker: int
    ticket: int
    steps: int


@dataclass(frozen=True, slots=True)
class Load:
    """My load."""

    ticket: int
    load: int


@dataclass(frozen=True, slots=True)
class Relieve:
    """To a light broker: give up your area, and take half of the area of the heavy broker, which has this load."""

    heavy: int
    load: int


@dataclass(frozen=True, slots=True)
class Offer:
    """To a heavy broker: the sender offers to take half of its area."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The reply: begin at this point."""

    at: int


MapMessage = (
    Register
    | Registered
    | Handover
    | Received
    | Want
    | Patience
    | RollCall
    | Forget
    | Question
    | Sample
    | Load
    | Relieve
    | Offer
    | Cut
)


def _write_point(point: int) -> bytes:
    size = (point.bit_length() + 7) // 8
    return U8.write(size) + point.to_bytes(size)


def _read_point(data: bytes, at: int) -> tuple[int, int]:
    begin = at + 1
    end = begin + data[at]
    if end > len(data):
        raise IndexError
    return int.from_bytes(data[begin:end]), end


def _write_text(text: str) -> bytes:
    return KEY.write(text.encode())


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    text, end = KEY.read(data, at)
    try:
        return text.decode(), end
    except UnicodeDecodeError:
        raise WireError("an interest that is not UTF-8") from None


def _write_spans(spans: Spans) -> bytes:
    ends = (_write_point(first) + _write_point(last) for first, last in spans)
    return U16.write(len(spans)) + b"".join(ends)


def _read_spans(data: bytes, at: int) -> tuple[Spans, int]:
    stretches = []
    count, at = U16.read(data, at)
    for _ in range(count):
        first, at = _read_point(data, at)
        last, at = _read_point(data, at)
        stretches.append((first, last))
    if any(first > last for first, last in stretches):
        raise WireError("a stretch of the curve that ends before it begins")
    return Spans(stretches), at


def _write_entry(entry: Entry) -> bytes:
    head = U32.write(entry.broker) + U64.write(entry.version) + FLAG.write(entry.wanted)
    return head + _write_text(entry.text)


def _read_entry(data: bytes, at: int) -> tuple[Entry, int]:
    broker, at = U32.read(data, at)
    version, at = U64.read(data, at)
    wanted, at = FLAG.read(data, at)
    text, at = _read_text(data, at)
    return Entry(broker, version, wanted, text), at


def _read_entries(data: bytes, at: int) -> tuple[tuple[Entry, ...], int]:
    entries = []
    count, at = U32.read(data, at)
    for _ in range(count):
        entry, at = _read_entry(data, at)
        entries.append(entry)
    return tuple(entries), at


POINT = Form(_write_point, _read_point)
TEXT = Form(_write_text, _read_text)
SPANS = Form(_write_spans, _read_spans)
ENTRY = Form(_write_entry, _read_entry)
ENTRIES = Form(
    lambda entries: U32.write(len(entries)) + b"".join(map(_write_entry, entries)),
    _read_entries,
)

FORMS: dict[int, tuple[type[Any], tuple[Form, ...]]] = {
    221: (Register, (POINT, POINT, POINT, FLAG, ENTRY)),
    222: (Registered, (POINT, POINT, U64, FLAG)),
    223: (Handover, (U64, U8, FLAG, SPANS, ENTRIES)),
    224: (Received, (U64,)),
    225: (Want, (SPANS,)),
    226: (Patience, (SPANS,)),
    227: (RollCall, (SPANS,)),
    228: (Forget, (U64,)),
    229: (Question, (TEXT, BODY)),
    230: (Sample, (U32, U32, U8)),
    231: (Load, (U32, U64)),
    232: (Relieve, (U32, U64)),
    233: (Offer, ()),
    234: (Cut, (POINT,)),
}
KINDS = {number: kind for number, (kind, _) in FORMS.items()}
_LAYOUTS = {number: Layout(number, kind, forms) for number, (kind, forms) in FORMS.items()}
_BY_KIND = {layout.kind: layout for layout in _LAYOUTS.values()}


def encode_message(message: MapMessage) -> bytes:
    """To bytes; WireError if a value does not fit."""
    return _BY_KIND[type(message)].write(message)


def decode_message(data: bytes, bits: int) -> MapMessage:
    """From bytes; WireError if they are none, or have points outside the space of so many bits."""
    if not data or data[0] not in FORMS:
        raise WireError(f"{data[:20]!r} is no control message of the map")
    kind, forms = FORMS[data[0]]
    values = _LAYOUTS[data[0]].read(data)
    for form, value in zip(forms, values, strict=True):
        highest = (
            value
            if form is POINT
            else max((last for _, last in value), default=0)
            if form is SPANS
            else 0
        )
        if highest >> bits:
            raise WireError(f"a point in {kind.__name__} that the space has not")
    message: MapMessage = kind(*values)
    return message


class Toward(IntEnum):
    """Where a publication goes."""

    PLACE = 1  # to the owner of the place where it happened, for interests with a box
    HOME = 2  # to the owner of its topic's point, for interests without one
    SUBSCRIBER = 3  # it has been matched: for the receiver


class RoutingSection(NamedTuple):
    """The routing section of a publication. `attempt`: not 0 if it goes once more, after a crash."""

    toward: Toward
    hops: int = 0
    attempt: int = 0

    def written(self) -> bytes:
        return _ROUTING_SECTION.pack(*self)


_ROUTING_SECTION = struct.Struct("!BBI")


def routing_section(message: Message) -> RoutingSection:
    """The routing section of a publication; WireError if it has none."""
    if message.kind is not Kind.PUBLISH or len(message.routing) != _ROUTING_SECTION.size:
        raise WireError(f"{message.kind.name} without the routing of the map")
    toward, hops, attempt = _ROUTING_SECTION.unpack(message.routing)
    try:
        return RoutingSection(Toward(toward), hops, attempt)
    except ValueError:
        raise WireError(f"a publication toward {toward}") from None
