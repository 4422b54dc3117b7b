"""Where one of our frames begins, in bytes whose frames have been lost from sight.

A frame shows itself by what it carries: one of our headers, behind a label or not. A piece from the middle of a message
carries nothing that could be known, so it is believed only if the frames behind it lead to one that shows itself, or
exactly to the end of the stream.
"""

import re
from typing import Final, NamedTuple

from analysis.decode import PLACE, possible_header, unmask
from nodes.delivery.labels import (
    BITS,
    LENGTH_BYTES,
    LETTERS,
    Form,
    Letter,
    form_and_level,
)
from nodes.wire import HEADER, HEADER_SIZE, VERSION

FIN_AND_BINARY = 0x82
CONTROL = frozenset((0x88, 0x89, 0x8A))  # close, ping, pong: always whole
LARGEST_CONTROL = 125
# How each of our frames begins: FIN and BINARY, and a label in the reserved bits or none.
BEGINNINGS: Final = re.compile(
    b"[" + b"".join(re.escape(bytes([FIN_AND_BINARY | bits << 4])) for bits in BITS.values()) + b"]"
)
_LETTERS = frozenset(int(letter) for letter in Letter)
_PIECES = frozenset((Letter.PIECE, Letter.URGENT_PIECE, Letter.LAST, Letter.URGENT_LAST))
_LEAST_CHAIN = 2  # frames that lead exactly to the end; of one alone that may be chance


class _Head(NamedTuple):
    """Where a frame's payload begins and ends; its mask, or zeros."""

    payload_at: int
    end: int
    mask: bytes


def next_frame(data: bytes, at: int) -> int:
    """The next position from which our frames can be read; the stream's end if there is none."""
    hopeless: set[int] = set()
    for found in BEGINNINGS.finditer(data, at):
        if _leads_on(data, found.start(), hopeless):
            return found.start()
    return len(data)


def begins_frame(data: bytes, at: int) -> bool:
    """Whether one of our frames can begin here."""
    return BEGINNINGS.match(data, at) is not None and _leads_on(data, at, set())


def _leads_on(data: bytes, at: int, hopeless: set[int]) -> bool:
    """Whether the frames from here on lead to one that shows itself; where none did is noted."""
    passed: list[int] = []
    while at not in hopeless:
        if at == len(data) and len(passed) >= _LEAST_CHAIN:
            return True
        head = _head(data, at)
        shows = _shows_itself(data, at, head) if head is not None else None
        if shows:
            return True
        passed.append(at)
        if shows is None or head is None:
            break
        at = head.end
    hopeless.update(passed)
    return False


def _head(data: bytes, at: int) -> _Head | None:
    """The head of a frame (RFC 6455, 5.2); None if it is not all there."""
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
    if payload_at > len(data):
        return None
    return _Head(payload_at, payload_at + length, mask)


def _shows_itself(data: bytes, at: int, head: _Head) -> bool | None:
    """True: one of our headers stands in it. False: it may be a piece, or control. None: it is none of ours."""
    first, length = data[at], head.end - head.payload_at
    if first in CONTROL:
        return False if length <= LARGEST_CONTROL else None
    if first & 0x8F != FIN_AND_BINARY or not length:
        return None
    window = data[head.payload_at : head.payload_at + 1 + LENGTH_BYTES + HEADER_SIZE]
    content = unmask(window, head.mask)[:length]
    if not content:
        return None  # the stream ends here
    skipped, piece = _label(first >> 4 & 0b111, content)
    if skipped is None:
        return None
    rest = content[skipped : skipped + HEADER_SIZE]
    room = length - skipped
    if len(rest) == HEADER_SIZE:
        fields = HEADER.unpack(rest)
        if piece:
            room += fields[PLACE["topic_length"]]  # the next piece may bring the topic
        if possible_header(fields, room):
            return True
    return False if piece else None


def _label(bits: int, content: bytes) -> tuple[int | None, bool]:
    """How many bytes stand before the message (None: this is no label), and whether it may be a piece of one."""
    if bits:
        return (0, LETTERS[bits] in _PIECES) if bits in LETTERS else (None, False)
    if content[0] == VERSION:
        return 0, False
    if content[0] in _LETTERS:
        return 1, content[0] in _PIECES
    try:
        form, _ = form_and_level(content[0])
    except ValueError:
        return None, False
    several = form is Form.SEVERAL
    return 1 + LENGTH_BYTES * several, form in (Form.PIECE, Form.LAST)
