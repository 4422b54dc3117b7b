"""Reads WebSocket frames (RFC 6455) from captured bytes.

Unlike an endpoint, this reader may begin in the middle, and continues after bytes that the capture lost: then it
searches the next of our frames (`analysis.protocols.resync`). It does not interpret the reserved bits of a frame.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from analysis.protocols.http_upgrade import END, HANDSHAKES, LONGEST
from analysis.protocols.resync import NeedMore, begins_frame, next_frame

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
FIN_BIT, RESERVED_BITS, OPCODE_BITS, MASK_BIT = 0x80, 0x70, 0x0F, 0x80
LARGEST_CONTROL = 125
LONGEST_HEAD = 14
LARGEST_FRAME = 1 << 30  # a longer frame is implausible


class Frame(NamedTuple):
    """One data frame; positions are in the stream. `end` may lie beyond the captured bytes."""

    at: int
    payload_at: int
    end: int


@dataclass(slots=True)
class FrameScan:
    """The frames of a stream. A WebSocket message is nearly always one frame."""

    frames: list[tuple[int, int, int]] = field(default_factory=list)  # `Frame`s, in order
    continued: list[int] = field(default_factory=list)  # indices of continuation frames
    unended: list[int] = field(
        default_factory=list
    )  # indices after which the message's next frame is missing
    breaks: list[int] = field(default_factory=list)  # where reading resumed after missing frames
    handshake: int = 0  # bytes of HTTP before the first frame
    control_frames: list[tuple[int, int]] = field(default_factory=list)  # begin, end
    # If the stream continues in a later window:
    stopped: int = 0  # where reading stopped
    lost: bool = False  # the next frame must be searched
    # If it began in an earlier window: the ways of chunks seen since frames were missing; None: none was missing
    clean: frozenset[int] | None = None

    def up_to(self, end: int) -> "FrameScan":
        """The frames before this place, where a frame begins or reading ended."""
        count = bisect_left(self.frames, (end,))
        return FrameScan(
            self.frames[:count],
            [number for number in self.continued if number < count],
            [number for number in self.unended if number < count],
            [place for place in self.breaks if place <= end],
            min(self.handshake, end),
            [(begin, last) for begin, last in self.control_frames if begin < end],
            clean=self.clean,
        )


class _Unreadable(Exception):
    """No frame can begin here."""


def scan_frames(data: bytes, unknown: tuple[tuple[int, int], ...], from_start: bool) -> FrameScan:
    """All frames of a stream."""
    found = FrameScan()
    at = after_handshake(data)
    if at is None:
        return found
    found.handshake = at
    # Without a handshake the capture began later, or this is no WebSocket.
    lost = at == 0 and not (from_start and begins_frame(data, 0))
    return continue_scan(data, unknown, found, at, lost=lost)


def continue_scan(
    data: bytes,
    unknown: tuple[tuple[int, int], ...],
    found: FrameScan,
    at: int,
    *,
    lost: bool = False,
    final: bool = True,
) -> FrameScan:
    """Read all frames from here on; `lost`: search the first. Not `final`: only frames that no later byte changes."""
    _FrameScanner(data, unknown, found, final).run(at, lost)
    return found


def after_handshake(data: bytes) -> int | None:
    """Where the frames begin: after the HTTP upgrade, if there is one. None: the upgrade is incomplete."""
    if not data.startswith(HANDSHAKES):
        return 0
    end = data.find(END, 0, LONGEST)
    return None if end < 0 else end + len(END)


class _FrameScanner:
    """One pass over the data; a fragmented message is open between its first and last frame."""

    def __init__(
        self, data: bytes, unknown: tuple[tuple[int, int], ...], found: FrameScan, final: bool
    ) -> None:
        self.data = data
        self.final = final
        self.unknown_begins = [begin for begin, _ in unknown]
        self.unknown_ends = [end for _, end in unknown]
        self.found = found
        self.open = False

    def run(self, at: int, lost: bool) -> None:
        data, end = self.data, len(self.data)
        while at < end:
            if lost:
                try:
                    at = next_frame(data, at, self.final)
                except NeedMore as searched:
                    self.found.stopped, self.found.lost = searched.args[0], True
                    return
                self.found.breaks.append(at)
                lost = False
                continue
            if not self.open and not self.unknown_begins:
                at = self._plain(at)
                if at >= end:
                    break
            try:
                first = data[at]
                frame = self._frame(at)
            except _Unreadable:
                self._abandon()
                at, lost = at + 1, True
                continue
            except IndexError:
                if not self.final:
                    break
                self._abandon()
                at, lost = at + 1, True
                continue
            if frame.end > end and not self.final:
                break
            self._take(first, frame)
            at = frame.end
        self._stop(at)

    def _stop(self, at: int) -> None:
        """Stop at the end of the data. If it is not final, incomplete frames are read later."""
        found = self.found
        if self.final:
            self._abandon()
            return
        while found.frames and found.frames[-1][2] > len(self.data):
            at = found.frames.pop()[0]
        if self.open:
            number = len(found.frames) - 1
            continued = set(found.continued)
            while number in continued:
                number -= 1
            at = found.frames[number][0]
        found.stopped = at

    def _plain(self, at: int) -> int:
        """Read unfragmented short messages in a tight loop; returns where something else begins."""
        data, last, note = self.data, len(self.data) - LONGEST_HEAD, self.found.frames.append
        asked, whole = 0xFF & ~RESERVED_BITS, FIN_BIT | BINARY
        while at <= last and data[at] & asked == whole:
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
        """The frame that begins here (RFC 6455, 5.2); IndexError if its header is incomplete."""
        data = self.data
        second = data[at + 1]
        length, payload_at = second & 0x7F, at + 2
        if length == 126:
            length = data[at + 2] << 8 | data[at + 3]
            payload_at = at + 4
        elif length == 127:
            length = int.from_bytes(data[at + 2 : at + 10])
            payload_at = at + 10
        if second & MASK_BIT:
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
        return Frame(at, payload_at, payload_at + length)

    def _is_unknown(self, begin: int, end: int) -> bool:
        before = bisect_right(self.unknown_begins, end - 1) - 1
        return before >= 0 and self.unknown_ends[before] > begin

    def _take(self, first: int, frame: Frame) -> None:
        opcode = first & OPCODE_BITS
        frames = self.found.frames
        if opcode >= CLOSE:
            self.found.control_frames.append((frame.at, frame.end))
            return
        if opcode == CONTINUATION:
            if not self.open:
                return
            self.found.continued.append(len(frames))
        else:
            self._abandon()
        frames.append(frame)
        self.open = not first & FIN_BIT

    def _abandon(self) -> None:
        """Give up the open message."""
        if self.open:
            self.found.unended.append(len(self.found.frames) - 1)
            self.open = False
