"""Which messages are in a stream, and where: what the analysis of captures reads out of bytes, known while they are
written. One ledger for each direction of a connection.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from nodes.delivery.base import Chunk
from nodes.protocol import skipgraph_codec
from nodes.protocol.joined import split
from nodes.protocol.labels import DMPQ_LABELS, LENGTH_BYTES, DmpqLabel, Form, form_and_level
from nodes.protocol.wire import (
    FIELDS,
    HEADER,
    HEADER_SIZE,
    MAX_MESSAGE_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_PLACE_BYTES,
    MAX_TOPIC_BYTES,
    ROUTED,
    VERSION,
    Kind,
    Message,
    WireError,
    decode,
    encode,
)
from nodes.runtime.tcp_info import MASK_BYTES

SHORT_HEAD = HEADER_SIZE + MAX_TOPIC_BYTES + MAX_PLACE_BYTES
LONGEST_HEAD = MAX_MESSAGE_BYTES - MAX_PAYLOAD_BYTES  # with a routing section
FLAGS = [field.name for field in FIELDS].index("flags")
LABEL_BYTES = 1


class Part(Enum):
    """Which part of a message a chunk is."""

    WHOLE = 0
    PIECE = 1
    LAST = 2


_LETTERS = {
    DmpqLabel.URGENT: (Part.WHOLE, "urgent"),
    DmpqLabel.WHOLE: (Part.WHOLE, "standard"),
    DmpqLabel.PIECE: (Part.PIECE, "standard"),
    DmpqLabel.LAST: (Part.LAST, "standard"),
    DmpqLabel.URGENT_PIECE: (Part.PIECE, "urgent"),
    DmpqLabel.URGENT_LAST: (Part.LAST, "urgent"),
}
_FORMS = {Form.WHOLE: Part.WHOLE, Form.PIECE: Part.PIECE, Form.LAST: Part.LAST}


def frame_head(size: int, masked: bool) -> int:
    """The head of a WebSocket frame (RFC 6455, 5.2)."""
    length = 2 if size < 126 else 4 if size < 1 << 16 else 10
    return length + (MASK_BYTES if masked else 0)


class Run(NamedTuple):
    """A piece of a message in the stream."""

    at: int  # where what belongs to it begins: a frame, or its length among several
    head: int  # bytes of a frame's head there; up to `begin` the rest is label
    begin: int
    end: int


@dataclass(slots=True)
class Written:
    """A message in the stream."""

    header: Message | None = None  # without payload; None until all of it is written
    size: int = 0
    finished: bool = False
    message_type: int | None = None  # of an OVERLAY message: which one it is
    inner_type: int | None = None  # and the type of the inner message of the layer above
    runs: list[Run] = field(default_factory=list)
    _head: bytes = b""
    _body: bytearray | None = None  # of a JOINED message: all of it

    def add(self, at: int, head: int, begin: int, data: bytes) -> None:
        """Add a piece."""
        if self._body is not None:
            self._body += data
        if self.header is None:
            self._read(data)
        self.size += len(data)
        self.runs.append(Run(at, head, begin, begin + len(data)))

    @property
    def needed(self) -> int:
        """Header and topic: without them the message is unknown."""
        return HEADER_SIZE + len(self.header.topic.encode()) if self.header else 0

    @property
    def header_bytes(self) -> int:
        """Header, topic, place and routing section."""
        return len(encode(self.header)) if self.header else 0

    def _read(self, data: bytes) -> None:
        used = LONGEST_HEAD - len(self._head)
        self._head += data[:used]
        if len(self._head) < HEADER_SIZE:
            return
        routed = HEADER.unpack_from(self._head)[FLAGS] & ROUTED
        try:
            header = decode(self._head[: LONGEST_HEAD if routed else SHORT_HEAD])
        except WireError:
            return  # it goes on in the next piece
        if header.kind is Kind.OVERLAY:
            self.message_type, self.inner_type = _message_types(header.payload)
        elif header.kind is Kind.JOINED:
            self._body = bytearray(self._head[len(encode(replace(header, payload=b""))) :])
            self._body += data[used:]
        self.header, self._head = replace(header, payload=b""), b""

    @property
    def parts(self) -> list[Message]:
        """The publications of a JOINED message that is all there; else none."""
        if self.header is None or self._body is None or not self.finished:
            return []
        return split(replace(self.header, payload=bytes(self._body)))


def _message_types(payload: bytes) -> tuple[int | None, int | None]:
    """The type of a Skip Graph message, and the first byte of the inner message of the layer above."""
    if not payload:
        return None, None
    try:
        body = getattr(skipgraph_codec.decode(payload), "body", b"")
    except WireError:  # the end of the payload is not known here; a body before it would be
        body = b""
    return payload[0], body[0] if body else None


class Ledger:
    """All messages of a stream, in the order in which they begin, and what of it belongs to the connection itself."""

    def __init__(self) -> None:
        self.messages: list[Written] = []
        self.protocol: list[tuple[int, int]] = []  # stretches: HTTP, a close, the end
        self._open: dict[object, Written] = {}

    def note_protocol(self, at: int, size: int) -> None:
        """So many bytes from here on are no message."""
        self.protocol.append((at, at + size))

    def note(self, at: int, chunk: Chunk, head: int) -> None:
        """A chunk is written, its frame from `at` on, with a head of so many bytes."""
        begin, data = at + head, chunk.data
        if not chunk.bits and data[:1] and data[0] & 0x80 and data[0] >> 3 & 3 == Form.SEVERAL:
            for offset, message in _several(data):
                written = self._begin()
                written.add(at, head, begin + offset, message)
                written.finished = True
                at, head = begin + offset + len(message), 0
            return
        part, way, label = _read(chunk)
        going_on = part is not Part.WHOLE and way in self._open
        written = self._open.pop(way) if going_on else self._begin()
        written.add(at, head, begin + label, data[label:])
        if part is Part.PIECE:
            self._open[way] = written
        else:
            written.finished = True

    def _begin(self) -> Written:
        self.messages.append(Written())
        return self.messages[-1]


def _read(chunk: Chunk) -> tuple[Part, object, int]:
    """Which part it is, of which stream of pieces, and the length of its label."""
    if chunk.bits:
        return *_LETTERS[DMPQ_LABELS[chunk.bits]], 0
    first = chunk.data[0]
    if first == VERSION:
        return Part.WHOLE, None, 0
    if first & 0x80:
        form, level = form_and_level(first)
        return _FORMS[form], level, LABEL_BYTES
    return *_LETTERS[DmpqLabel(first)], LABEL_BYTES


def _several(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each message behind its length, and where it begins."""
    at = LABEL_BYTES
    while at < len(data):
        begin = at + LENGTH_BYTES
        at = begin + int.from_bytes(data[at:begin])
        yield begin, data[begin:at]
