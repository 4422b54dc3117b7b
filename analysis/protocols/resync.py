"""Finds where one of our frames begins, after the frame boundaries were lost.

A frame is recognised by one of our headers in it, with or without a label. A piece from the middle of a message has
no header, so it is accepted only if the frames after it lead to one with a header, or exactly to the end of the
stream, with labels of one style; and if no more certain frame begins within it.
"""

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from analysis.protocols.message_header import PLACE, possible_header, unmask
from nodes.protocol.labels import BITS, DMPQ_LABELS, LENGTH_BYTES, DmpqLabel, Form, form_and_level
from nodes.protocol.wire import HEADER, HEADER_SIZE, VERSION

FIN_AND_BINARY = 0x82
CONTROL = frozenset((0x88, 0x89, 0x8A))  # close, ping, pong: never fragmented
LARGEST_CONTROL = 125
# The first byte of our frames: FIN and BINARY, with or without a label in the reserved bits.
BEGINNINGS: Final = re.compile(
    b"[" + b"".join(re.escape(bytes([FIN_AND_BINARY | bits << 4])) for bits in BITS.values()) + b"]"
)
_LETTERS = frozenset(int(letter) for letter in DmpqLabel)
_PIECES = frozenset(
    (DmpqLabel.PIECE, DmpqLabel.URGENT_PIECE, DmpqLabel.LAST, DmpqLabel.URGENT_LAST)
)
_LEAST_CHAIN = 2  # frames that lead exactly to the end; one alone may be chance
LARGEST = 1 << 22  # largest frame that the search accepts
_HEAD = 14
_LOOK = _HEAD + 1 + LENGTH_BYTES + HEADER_SIZE  # bytes that are needed to classify a frame


class NeedMore(Exception):
    """The result depends on bytes that are not there yet; the argument says where to search again."""


class _Style(Enum):
    """How labels are encoded; a connection uses one style."""

    LETTERS = auto()
    BITS = auto()
    LEVELS = auto()


class _Head(NamedTuple):
    """Begin and end of a frame's payload; its mask, or zeros."""

    payload_at: int
    end: int
    mask: bytes


class _Look(NamedTuple):
    """The classification of a frame."""

    end: int
    has_header: bool  # it contains one of our headers; else it may be a piece, or a control frame
    style: _Style | None = None  # None: no label


class _Label(NamedTuple):
    skipped: int  # bytes before the message
    piece: bool  # without a header of its own, maybe
    style: _Style | None


def next_frame(data: bytes, at: int, final: bool = True) -> int:
    """The next position from which our frames can be read; the end of the stream if there is none.

    If the data is not final, raise NeedMore where more data might change the result.
    """
    search = _Search(data, final)
    for found in BEGINNINGS.finditer(data, at):
        try:
            if (place := search.believed(found.start())) is not None:
                return place
        except _Beyond as unsure:
            raise NeedMore(found.start()) from unsure
    if not final:
        raise NeedMore(len(data))
    return len(data)


def begins_frame(data: bytes, at: int) -> bool:
    """Whether one of our frames can begin here."""
    search = _Search(data, final=True)
    look = search.look(at)
    return look is not None and search.leads_on(at, look) is not None


class _Beyond(Exception):
    """The frame continues beyond the data."""


class _Search:
    """A search in data that may grow: it decides nothing too close to the end."""

    def __init__(self, data: bytes, final: bool) -> None:
        self.data = data
        self.final = final
        self.hopeless: set[int] = set()

    def believed(self, at: int) -> int | None:
        """Where to continue if a frame begins here: at it, or at a more certain one; None if none does."""
        look = self.look(at)
        if look is None or (reached := self.leads_on(at, look)) is None:
            return None
        if self._is_sure(look):
            return at
        return self._first_sure(at, max(look.end, reached))

    def look(self, at: int) -> _Look | None:
        """The frame that begins here; None if it is none of ours."""
        if not self.final and at + _LOOK > len(self.data):
            raise _Beyond
        return _look(self.data, at)

    def leads_on(self, at: int, look: _Look | None) -> int | None:
        """Where the frames from here on reach one with a header, or the end; None (and remembered) if they do not."""
        passed: list[int] = []
        style: _Style | None = None
        while at not in self.hopeless:
            if at == len(self.data) and len(passed) >= _LEAST_CHAIN:
                return at
            if look is None or (style and look.style and style is not look.style):
                break
            if look.has_header:
                return at
            passed.append(at)
            style, at = style or look.style, look.end
            look = self.look(at)
        self.hopeless.update(passed)
        return None

    def _first_sure(self, at: int, end: int) -> int:
        """The first certain frame before `end`; else the one that begins here."""
        for found in BEGINNINGS.finditer(self.data, at + 1, end):
            look = self.look(found.start())
            if look is not None and self._is_sure(look):
                return found.start()
        return at

    def _is_sure(self, look: _Look) -> bool:
        """Whether it contains a header, and another frame follows unless the stream ends."""
        if not look.has_header:
            return False
        ends_here = self.final and look.end >= len(self.data)
        return ends_here or self.look(look.end) is not None


def _look(data: bytes, at: int) -> _Look | None:
    """The frame that begins here; None if it is none of ours."""
    head = _head(data, at)
    if head is None:
        return None
    first, length = data[at], head.end - head.payload_at
    if first in CONTROL:
        return _Look(head.end, False) if length <= LARGEST_CONTROL else None
    if first & 0x8F != FIN_AND_BINARY:
        return None
    window = data[head.payload_at : head.payload_at + 1 + LENGTH_BYTES + HEADER_SIZE]
    content = unmask(window, head.mask)[:length]
    label = _label(first >> 4 & 0b111, content)
    if label is None:
        return None
    rest = content[label.skipped : label.skipped + HEADER_SIZE]
    if len(rest) == HEADER_SIZE:
        fields = HEADER.unpack(rest)
        space = length - label.skipped
        if label.piece:
            space += fields[PLACE["topic_length"]]  # the topic may be in the next piece
        if possible_header(fields, space):
            return _Look(head.end, True, label.style)
    return _Look(head.end, False, label.style) if label.piece else None


def _head(data: bytes, at: int) -> _Head | None:
    """The header of a frame (RFC 6455, 5.2); None if it is incomplete."""
    if at + 2 > len(data):
        return None
    length, payload_at = data[at + 1] & 0x7F, at + 2
    if length == 126:
        length, payload_at = int.from_bytes(data[at + 2 : at + 4]), at + 4
    elif length == 127:
        length, payload_at = int.from_bytes(data[at + 2 : at + 10]), at + 10
    mask = bytes(4)
    if data[at + 1] & 0x80:
        mask = data[payload_at : payload_at + 4]
        payload_at += 4
    if payload_at > len(data) or length > LARGEST:
        return None
    return _Head(payload_at, payload_at + length, mask)


def _label(bits: int, content: bytes) -> _Label | None:
    """The label of a chunk, or its equivalent; None if it is not one of ours."""
    if bits:
        return _Label(0, DMPQ_LABELS[bits] in _PIECES, _Style.BITS) if bits in DMPQ_LABELS else None
    if not content:
        return None
    if content[0] == VERSION:
        return _Label(0, False, None)
    if content[0] in _LETTERS:
        return _Label(1, content[0] in _PIECES, _Style.LETTERS)
    try:
        form, _ = form_and_level(content[0])
    except ValueError:
        return None
    before = 1 + LENGTH_BYTES if form is Form.SEVERAL else 1
    return _Label(before, form in (Form.PIECE, Form.LAST), _Style.LEVELS)
