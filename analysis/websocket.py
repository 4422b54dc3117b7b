"""WebSocket (RFC 6455) on captured bytes: from a stream to the frames that make up its data messages.

Unlike an endpoint, this reader may begin in the middle, and must go on after bytes that the capture lost: then it looks
for the next place where a whole frame with one of our headers begins.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

from analysis.decode import plausible
from nodes.wire import HEADER_SIZE

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
FIN_BIT, RESERVED_BITS, OPCODE_BITS, MASK_BIT = 0x80, 0x70, 0x0F, 0x80
LARGEST_CONTROL = 125
LONGEST_HEAD = 14
LARGEST_FRAME = 1 << 30  # nobody sends an alert of a gigabyte: such a length is not a length
WHOLE_BINARY: Final = b"\x82"  # FIN and BINARY: how each of our messages begins
HANDSHAKES = (b"GET ", b"HTTP/1.")


@dataclass(frozen=True, slots=True)
class Frame:
    """One data frame; positions are in the stream. `end` may lie beyond the stream if the rest was not captured."""

    at: int
    payload_at: int
    end: int
    mask: bytes  # empty if unmasked


@dataclass(slots=True)
class Walk:
    """What one pass over a stream found."""

    whole: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # messages in one frame: at, payload_at, end
    divided: list[tuple[list[Frame], bool]] = field(
        default_factory=list
    )  # frames, and whether the last is there
    handshake: int = 0  # bytes of HTTP before the first frame
    control_frames: list[tuple[int, int]] = field(
        default_factory=list
    )  # ping, pong, close: begin, end
    compressed: int = 0  # messages that cannot be read because an extension changed them


class _Unreadable(Exception):
    """No frame can begin here."""


def walk(data: bytes, unknown: tuple[tuple[int, int], ...], from_start: bool) -> Walk:
    """All frames of a stream."""
    found = Walk()
    at = _after_handshake(data)
    if at is None:
        return found
    found.handshake = at
    if at == 0:  # no HTTP: the capture began later, or this is no WebSocket at all
        at = 0 if from_start and _starts_with_frame(data) else _next_message(data, 0)
    _Walker(data, unknown, found).run(at)
    return found


def _after_handshake(data: bytes) -> int | None:
    """Where the frames begin: after the HTTP upgrade if there is one. None: the upgrade was never completed."""
    if not data.startswith(HANDSHAKES):
        return 0
    end = data.find(b"\r\n\r\n")
    return None if end < 0 else end + 4


def _starts_with_frame(data: bytes) -> bool:
    return data[:1] == WHOLE_BINARY and plausible(data, 0)


def _next_message(data: bytes, at: int) -> int:
    """The next position from which one of our messages can be read; the stream's end if there is none."""
    while True:
        at = data.find(WHOLE_BINARY, at)
        if at < 0:
            return len(data)
        if plausible(data, at):
            return at
        at += 1


class _Walker:
    """Goes from frame to frame; a divided message is open between its first and last frame."""

    def __init__(self, data: bytes, unknown: tuple[tuple[int, int], ...], found: Walk) -> None:
        self.data = data
        self.unknown_begins = [begin for begin, _ in unknown]
        self.unknown_ends = [end for _, end in unknown]
        self.found = found
        self.open: list[Frame] | None = None

    def run(self, at: int) -> None:
        data, end = self.data, len(self.data)
        while at < end:
            if self.open is None and not self.unknown_begins:
                at = self._plain(at)
                if at >= end:
                    break
            try:
                first = data[at]
                frame = self._frame(at)
            except (_Unreadable, IndexError):
                self._close(last=False)
                at = _next_message(data, at + 1)
                continue
            self._take(first, frame)
            at = frame.end
        self._close(last=False)

    def _plain(self, at: int) -> int:
        """What nearly all of a stream is, in one tight loop: whole short messages; where something else begins."""
        data, last, note = self.data, len(self.data) - LONGEST_HEAD, self.found.whole.append
        while at <= last and data[at] == FIN_BIT | BINARY:
            second = data[at + 1]
            length, payload_at = second & 0x7F, at + 2
            if length == 127:
                break
            if length == 126:
                length = data[at + 2] << 8 | data[at + 3]
                payload_at = at + 4
            if second & MASK_BIT:
                payload_at += 4
            end = payload_at + length
            note((at, payload_at, end))
            at = end
        return at

    def _frame(self, at: int) -> Frame:
        """The frame that begins here (RFC 6455, 5.2); IndexError if the stream ends within its first bytes."""
        data = self.data
        second = data[at + 1]
        length, payload_at = second & 0x7F, at + 2
        if length == 126:
            length = data[at + 2] << 8 | data[at + 3]
            payload_at = at + 4
        elif length == 127:
            length = int.from_bytes(data[at + 2 : at + 10])
            payload_at = at + 10
        mask = b""
        if second & MASK_BIT:
            mask = data[payload_at : payload_at + 4]
            payload_at += 4
        if payload_at > len(data):
            raise IndexError
        if self.unknown_begins and self._is_unknown(at, payload_at):
            raise _Unreadable
        opcode = data[at] & OPCODE_BITS
        if opcode >= CLOSE:
            if opcode > PONG or length > LARGEST_CONTROL:
                raise _Unreadable
        elif opcode > BINARY or length > LARGEST_FRAME:
            raise _Unreadable
        return Frame(at, payload_at, payload_at + length, mask)

    def _is_unknown(self, begin: int, end: int) -> bool:
        before = bisect_right(self.unknown_begins, end - 1) - 1
        return before >= 0 and self.unknown_ends[before] > begin

    def _take(self, first: int, frame: Frame) -> None:
        opcode = first & OPCODE_BITS
        if opcode >= CLOSE:
            self.found.control_frames.append((frame.at, frame.end))
        elif first & RESERVED_BITS:
            self.found.compressed += 1
        elif opcode == CONTINUATION:
            if self.open is not None:
                self.open.append(frame)
                if first & FIN_BIT:
                    self._close(last=True)
        elif first & FIN_BIT:
            self._close(last=False)
            self.found.whole.append((frame.at, frame.payload_at, frame.end))
        else:
            self._close(last=False)
            self.open = [frame]

    def _close(self, last: bool) -> None:
        if self.open is not None:
            self.found.divided.append((self.open, last))
            self.open = None


def unmask(payload: bytes, mask: bytes) -> bytes:
    """The payload as the sender meant it (RFC 6455, 5.3)."""
    if not mask or not payload:
        return payload
    size = len(payload)
    key = int.from_bytes((mask * (size // 4 + 1))[:size])
    return (int.from_bytes(payload) ^ key).to_bytes(size)


def head_of(data: bytes, frames: list[Frame], size: int = HEADER_SIZE) -> bytes:
    """The first `size` payload bytes of a divided message."""
    out = b""
    for frame in frames:
        piece = data[frame.payload_at : min(frame.end, frame.payload_at + size - len(out))]
        out += unmask(piece, frame.mask)
        if len(out) >= size:
            break
    return out
