"""The overlay header as a scapy layer, made from the one field table in `nodes.protocol.wire`.

Bound to no other layer: which bytes of a TCP stream are a message is for the analysis to say. `TestbedHeader(data)`
takes a message's bytes apart, `bytes(TestbedHeader(...) / payload)` builds them (useful for hostile tests).
`TestbedLabel(data)` does so with a chunk whose delivery method puts a label in front. In a JOINED,
`TestbedJoined.parts` are the publications in it.
"""

from scapy.fields import (
    ByteEnumField,
    ByteField,
    ConditionalField,
    Field,
    FieldLenField,
    FieldListField,
    IntField,
    LongField,
    PacketLenField,
    PacketListField,
    ShortField,
    StrLenField,
)
from scapy.packet import Packet

from nodes.protocol import joined, wire
from nodes.protocol.labels import DmpqLabel, Form, levelled

_BY_SIZE = {1: ByteField, 2: ShortField, 4: IntField, 8: LongField}
_DEFAULTS = {"version": wire.VERSION, "priority": wire.LOWEST_PRIORITY, "hops": 1}


def _scapy_field(field: wire.Field) -> "Field[int, int]":
    if field.name == "kind":
        names = {int(kind): kind.name for kind in wire.Kind}
        return ByteEnumField(field.name, int(wire.Kind.PUBLISH), names)
    if field.name == "topic_length":
        return FieldLenField(field.name, None, length_of="topic", fmt="!H")
    return _BY_SIZE[field.size](field.name, _DEFAULTS.get(field.name, 0))


def _routed(packet: "TestbedHeader") -> bool:
    return bool(packet.flags & wire.ROUTED)


def _placed(packet: "TestbedHeader") -> bool:
    return bool(packet.flags & wire.PLACED)


class TestbedHeader(Packet):  # type: ignore[misc]
    """Fixed part, topic and, where the flags say so, place and routing section; what follows is the payload."""

    __test__ = False  # the name is not a test class
    name = "testbed"
    fields_desc = [  # noqa: RUF012 - scapy's own way
        *(_scapy_field(field) for field in wire.FIELDS),
        StrLenField("topic", b"", length_from=lambda packet: packet.topic_length),
        ConditionalField(FieldLenField("dimensions", None, count_of="place", fmt="!B"), _placed),
        ConditionalField(
            FieldListField(
                "place", [], IntField("coordinate", 0), count_from=lambda packet: packet.dimensions
            ),
            _placed,
        ),
        ConditionalField(
            FieldLenField("routing_length", None, length_of="routing", fmt="!H"), _routed
        ),
        ConditionalField(
            StrLenField("routing", b"", length_from=lambda packet: packet.routing_length), _routed
        ),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Of a JOINED, its parts; if its bytes are none, they are only bytes."""
        if self.kind == wire.Kind.JOINED and _can_be_taken_apart(payload):
            return TestbedJoined
        plain: type[Packet] = self.default_payload_class(payload)
        return plain


class TestbedPart(Packet):  # type: ignore[misc]
    """A publication among others, behind its length."""

    __test__ = False
    name = "testbed part"
    fields_desc = [  # noqa: RUF012
        FieldLenField("length", None, length_of="message", fmt="!H"),
        PacketLenField(
            "message", TestbedHeader(), TestbedHeader, length_from=lambda packet: packet.length
        ),
    ]

    def extract_padding(self, data: bytes) -> tuple[bytes, bytes]:
        """What follows is the next part."""
        return b"", data


class TestbedJoined(Packet):  # type: ignore[misc]
    """The payload of a JOINED."""

    __test__ = False
    name = "testbed joined"
    fields_desc = [PacketListField("parts", [], TestbedPart)]  # noqa: RUF012


def _can_be_taken_apart(payload: bytes) -> bool:
    try:
        for begin, end in joined.parts(payload):
            wire.decode(payload[begin:end])
    except wire.WireError:
        return False
    return True


_WHOLE = (
    DmpqLabel.URGENT,
    DmpqLabel.WHOLE,
    *(levelled(Form.WHOLE, level) for level in wire.LEVEL_NAMES),
)
_LABELS = {
    **{int(letter): letter.name for letter in DmpqLabel},
    **{
        levelled(form, level): f"{form.name} level {level}"
        for form in Form
        for level in wire.LEVEL_NAMES
    },
}


class TestbedLabel(Packet):  # type: ignore[misc]
    """The label byte of a chunk (`nodes.protocol.labels`); behind it a whole message, or a piece as it is."""

    __test__ = False
    name = "testbed label"
    fields_desc = [ByteEnumField("label", int(DmpqLabel.WHOLE), _LABELS)]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """A message if it is whole; the pieces of one are only bytes."""
        return TestbedHeader if self.label in _WHOLE else self.default_payload_class(payload)
