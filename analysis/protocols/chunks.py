"""Reassembles chunks: which frames, or which parts of them, make up which message.

A chunk's label says what it is (`nodes.protocol.labels`), so a capture is read without knowing the delivery method.
Pieces of several messages may be interleaved: each way (standard or urgent of dmpq-pc, a level of preemptive) has at
most one message in transit. A piece is the first of its message if the one before it on its way was a last one.
Where frames between them are missing, the header in the piece decides, and the message is `doubtful`.
"""

from bisect import bisect_right
from dataclasses import dataclass
from enum import IntEnum
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.protocols import message_header
from analysis.protocols.websocket import BINARY, OPCODE_BITS, FrameScan
from analysis.streams.stream import Stream
from nodes.protocol.labels import BITS, LENGTH_BYTES, DmpqLabel, Form, form_and_level
from nodes.protocol.wire import (
    HEADER_SIZE,
    MAX_PLACE_BYTES,
    MAX_TOPIC_BYTES,
    ROUTING_LENGTH,
    VERSION,
)

Array = npt.NDArray[Any]

# The meaning of labels, as tables for whole columns at once.


LABEL_BYTES = 1


class Role(IntEnum):
    """The role of a chunk, however its label is encoded."""

    STRANGE = 0  # not one of our chunks
    WHOLE = 1
    PIECE = 2
    LAST = 3
    SEVERAL = 4


STANDARD, URGENT, BEFORE_LEVELS = 1, 2, 2  # ways; level n of preemptive is BEFORE_LEVELS + n
_LETTER_ROLES = {
    DmpqLabel.URGENT: (Role.WHOLE, URGENT),
    DmpqLabel.WHOLE: (Role.WHOLE, STANDARD),
    DmpqLabel.PIECE: (Role.PIECE, STANDARD),
    DmpqLabel.LAST: (Role.LAST, STANDARD),
    DmpqLabel.URGENT_PIECE: (Role.PIECE, URGENT),
    DmpqLabel.URGENT_LAST: (Role.LAST, URGENT),
}
_FORM_ROLES = {
    Form.WHOLE: Role.WHOLE,
    Form.PIECE: Role.PIECE,
    Form.LAST: Role.LAST,
    Form.SEVERAL: Role.SEVERAL,
}


def _byte_table() -> Array:
    """Role, way and size of each label byte."""
    table = np.zeros((256, 3), np.int64)
    table[VERSION] = Role.WHOLE, 0, 0
    for letter, (role, way) in _LETTER_ROLES.items():
        table[letter] = role, way, LABEL_BYTES
    for label in range(256):
        try:
            form, level = form_and_level(label)
        except ValueError:
            continue
        table[label] = _FORM_ROLES[form], BEFORE_LEVELS + level, LABEL_BYTES
    return table


def _bit_table() -> Array:
    """The same for labels in the reserved bits, which take no bytes."""
    table = np.zeros((8, 3), np.int64)
    for letter, bits in BITS.items():
        table[bits] = *_LETTER_ROLES[letter], 0
    return table


BY_BYTE, BY_BITS = _byte_table(), _bit_table()
DEFLATE = 0b100  # the reserved bit of compressed messages (RFC 7692), which C has too


@dataclass(frozen=True, slots=True)
class Pieces:
    """Runs of message bytes, none across frames, grouped by message, in the order of the stream."""

    at: Array  # where its frame begins, or its length field in a chunk of several messages
    begin: Array
    end: Array  # may lie beyond the stream
    masks: Array  # rows of four bytes, turned to `begin`
    frame_bytes: Array
    label_bytes: Array  # and lengths
    chunks: Array  # 1, or 0 if it is in the same chunk as the piece before
    compressible: Array  # has only the reserved bit of compressed messages
    first: Array  # for each message, its first piece
    final: Array  # and the last that was seen
    finished: Array  # for each message, whether its last piece is there
    doubtful: Array  # for each message, whether it may have begun before its first piece
    strange: int  # frames with unknown reserved bits


def pieces_of(stream: Stream, found: FrameScan) -> Pieces:
    """All pieces of a stream."""
    return _Reader(stream, found).pieces()


class _Reader:
    """One row for each frame. The first frame of a chunk has the chunk's label."""

    def __init__(self, stream: Stream, found: FrameScan) -> None:
        self.stream, self.found = stream, found
        columns = np.array(found.frames, np.int64).reshape(-1, 3)
        self.at: Array = columns[:, 0]
        self.payload_at: Array = columns[:, 1]
        self.end: Array = columns[:, 2]
        self.masks = message_header.masks(stream.data, self.at, self.payload_at)
        rows = np.arange(len(columns))
        continues = np.zeros(len(columns), bool)
        continues[found.continued] = True
        self.continues: Array = continues
        self.chunk: Array = np.maximum.accumulate(np.where(continues, 0, rows))
        self.ended: Array = np.ones(len(columns), bool)
        self.ended[self.chunk[found.unended]] = False
        self._read_labels()

    def _read_labels(self) -> None:
        raw = np.frombuffer(self.stream.data, np.uint8)
        first = raw[self.at]
        self.bits: Array = first >> 4 & 0b111
        there = self.payload_at < np.minimum(self.end, len(raw))
        label = np.where(there, raw[np.minimum(self.payload_at, len(raw) - 1)], 0)
        label = np.where(there, label ^ self.masks[:, 0], 0)
        read = BY_BYTE[label]
        if self.bits.any():
            read = np.where(self.bits[:, None] > 0, BY_BITS[self.bits], read)
        unlabelled = (label == VERSION) & (self.bits == 0)
        ours = unlabelled | (first & OPCODE_BITS == BINARY)
        self.breaks: Array = np.array(self.found.breaks, np.int64)
        if self.stream.unknown:
            lost = ~self.continues & there & (self.bits == 0) & self._unknown(self.payload_at)
            ours &= ~lost
            self.breaks = np.sort(np.concatenate((self.breaks, self.at[lost])))
        read = np.where((ours & ~self.continues)[:, None], read, 0)[self.chunk]
        self.role: Array = read[:, 0]
        self.way: Array = read[:, 1]
        self.label_size: Array = read[:, 2] * ~self.continues

    def _unknown(self, at: Array) -> Array:
        begins, ends = (np.array(side, np.int64) for side in zip(*self.stream.unknown, strict=True))
        before = np.searchsorted(begins, at, "right") - 1
        return (before >= 0) & (ends[before] > at)

    def pieces(self) -> Pieces:
        message, doubtful = self._messages()
        plain = (self.role > Role.STRANGE) & (self.role != Role.SEVERAL)
        rows = {
            "at": self.at,
            "begin": self.payload_at + self.label_size,
            "end": self.end,
            "masks": _turned(self.masks, self.label_size),
            "frame_bytes": self.payload_at - self.at,
            "label_bytes": self.label_size,
            "chunks": (~self.continues).astype(np.int64),
            "compressible": self.bits == DEFLATE,
            "message": message,
            "last": self.role != Role.PIECE,
            "ended": self.ended[self.chunk],
            "doubtful": doubtful,
        }
        if not plain.all():
            rows = {name: column[plain] for name, column in rows.items()}
            rows = self._with_several(rows)
        if (np.diff(rows["message"]) < 0).any():
            order = np.lexsort((rows["begin"], rows["message"]))
            rows = {name: column[order] for name, column in rows.items()}
        return self._grouped(rows)

    def _messages(self) -> tuple[Array, Array]:
        """For each row the place where its message begins, and whether that is doubtful."""
        message, doubtful = self.at.copy(), np.zeros(len(self.at), bool)
        pieces = ((self.role == Role.PIECE) | (self.role == Role.LAST)) & ~self.continues
        for way in np.unique(self.way[pieces]).tolist():
            mine = np.flatnonzero(pieces & (self.way == way))
            epoch = np.searchsorted(self.breaks, self.at[mine], "right")
            resumed = np.diff(epoch, prepend=0) > 0
            if self.found.clean is not None and way not in self.found.clean:
                resumed[0] = True
            fresh = resumed | np.concatenate(([True], self.role[mine[:-1]] == Role.LAST))
            run = _runs(fresh)
            if resumed.any():
                unsure = np.flatnonzero(resumed[run])
                begun = unsure[self._begin_message(mine[unsure])]
                found = begun[np.unique(run[begun], return_index=True)[1]]
                resumed[found] = fresh[found] = True
                run = _runs(fresh)
            message[mine] = self.at[mine[run]]
            doubtful[mine] = resumed[run]
        return message[self.chunk], doubtful[self.chunk]

    def _begin_message(self, rows: Array) -> Array:
        """Which of these pieces begin with a message header."""
        begin = self.payload_at[rows] + self.label_size[rows]
        masks = _turned(self.masks[rows], self.label_size[rows])
        header = message_header.headers(self.stream.data, begin, masks)
        length = self.end[rows] - begin
        topic_too = length + header["topic_length"]  # which may be in the next piece
        ours: Array = message_header.readable(header, topic_too) & message_header.usual_flags(
            header
        )
        ours &= length >= HEADER_SIZE
        return ours

    def _with_several(self, rows: dict[str, Array]) -> dict[str, Array]:
        """The rows, with one more for each message in chunks that hold several."""
        alone = np.bincount(self.chunk, minlength=len(self.chunk)) == 1
        several = np.flatnonzero((self.role == Role.SEVERAL) & alone)
        parts = [(row, *part) for row in several.tolist() for part in self._parts(row)]
        if not parts:
            return rows
        row, at, begin, end = np.array(parts, np.int64).T
        opening = at == self.at[row]
        frame_bytes = np.where(opening, self.payload_at[row] - self.at[row], 0)
        yes, no = np.ones(len(row), bool), np.zeros(len(row), bool)
        more = {
            "at": at,
            "begin": begin,
            "end": end,
            "masks": _turned(self.masks[row], begin - self.payload_at[row]),
            "frame_bytes": frame_bytes,
            "label_bytes": begin - at - frame_bytes,
            "chunks": np.ones(len(row), np.int64),
            "compressible": no,
            "message": at,
            "last": yes,
            "ended": self.ended[row],
            "doubtful": no,
        }
        return {name: np.concatenate((column, more[name])) for name, column in rows.items()}

    def _parts(self, row: int) -> list[tuple[int, int, int]]:
        """The messages in a chunk of several: begin of the length field, begin of the message, end."""
        data, mask = self.stream.data, self.masks[row].tolist()
        payload_at, end = int(self.payload_at[row]), int(self.end[row])
        at, place = int(self.at[row]), payload_at + LABEL_BYTES
        parts = []
        while place + LENGTH_BYTES <= min(end, len(data)) and self._is_known(place):
            turn = place - payload_at
            high, low = data[place] ^ mask[turn & 3], data[place + 1] ^ mask[turn + 1 & 3]
            begin = place + LENGTH_BYTES
            after = begin + (high << 8 | low)
            if after > end:
                break
            parts.append((at, begin, after))
            at = place = after
        return parts

    def _is_known(self, place: int) -> bool:
        """Whether the length field at this place was captured."""
        unknown = self.stream.unknown
        before = bisect_right(unknown, place + LENGTH_BYTES - 1, key=itemgetter(0)) - 1
        return before < 0 or unknown[before][1] <= place

    def _grouped(self, rows: dict[str, Array]) -> Pieces:
        message, last = rows.pop("message"), rows.pop("last")
        ended, doubtful = rows.pop("ended"), rows.pop("doubtful")
        first = np.flatnonzero(np.diff(message, prepend=-1))
        final = np.append(first, len(message))[1:] - 1
        whole = np.logical_and.reduceat(ended, first) if len(first) else ended
        chosen = ~self.continues & (self.bits > 0) & (self.role == Role.STRANGE)
        return Pieces(
            **rows,
            first=first,
            final=final,
            finished=last[final] & whole,
            doubtful=doubtful[first],
            strange=int(chosen.sum()),
        )

    def cut(self) -> "Cut":
        """See `cut_of`."""
        place, lost = self.found.stopped, self.found.lost
        message, doubtful = self._messages()
        begun = int(self.breaks[-1]) if len(self.breaks) else -1
        pieces = ((self.role == Role.PIECE) | (self.role == Role.LAST)) & ~self.continues
        pieces &= self.at >= begun
        unsure: set[int] = set()
        for way in () if lost else np.unique(self.way[pieces]).tolist():
            last = np.flatnonzero(pieces & (self.way == way))[-1]
            if self.role[last] == Role.PIECE:
                place = min(place, int(message[last]))
                unsure |= {way} if doubtful[last] else set()
        while (across := (message < place) & (self.at >= place)).any():
            place = int(message[across].min())
        before = self.found.clean
        if not len(self.breaks) and before is None:
            return Cut(place, None)
        seen = frozenset(self.way[pieces & (self.at < place)].tolist())
        kept = frozenset() if len(self.breaks) or before is None else before
        return Cut(place, (seen | kept) - unsure)


class Cut(NamedTuple):
    """The place up to which an unfinished stream can be read, and the ways that are clean there (see `FrameScan`)."""

    place: int
    clean: frozenset[int] | None


def cut_of(stream: Stream, found: FrameScan) -> Cut:
    """The last place at which no message is in transit; no later frame changes what is before it."""
    return _Reader(stream, found).cut()


def _runs(fresh: Array) -> Array:
    """For each element the index where its run begins; `fresh` marks the beginnings."""
    run: Array = np.maximum.accumulate(np.where(fresh, np.arange(len(fresh)), 0))
    return run


def _turned(masks: Array, by: Array) -> Array:
    """Rotate each mask to this many bytes into its frame's payload."""
    if not by.any():
        return masks
    return np.take_along_axis(masks, (np.arange(4) + by[:, None]) & 3, axis=1)


# Message headers up to the length of the routing section, however small the pieces that carry them.


LONGEST_HEAD = HEADER_SIZE + MAX_TOPIC_BYTES + MAX_PLACE_BYTES + ROUTING_LENGTH.size


@dataclass(frozen=True, slots=True)
class Heads:
    """Where the header of each message can be read contiguously: in `data`, the stream followed by copies."""

    data: bytes
    at: Array
    end: Array
    masks: Array

    def seen(self, stream: Stream, needed: Array) -> Array:
        """The number of needed bytes that were seen."""
        until = np.minimum(self.at + needed, self.end)
        copied = self.at >= len(stream.data)
        return np.where(copied, until - self.at, stream.covered(self.at, until))


def heads_of(stream: Stream, pieces: Pieces, inside: Array) -> Heads:
    """Point into the stream; a header that may continue in the next piece is copied after the stream."""
    first = pieces.first
    at, end, masks = pieces.begin[first], inside[first], pieces.masks[first]
    short = (pieces.final > first) & (pieces.end[first] - at < LONGEST_HEAD)
    copies = [stream.data]
    place = len(stream.data)
    for number in np.flatnonzero(short).tolist():
        copy = _joined_head(stream, pieces, inside, number)
        copies.append(copy)
        at[number], end[number], masks[number] = place, place + len(copy), 0
        place += len(copy)
    return Heads(b"".join(copies) if len(copies) > 1 else stream.data, at, end, masks)


def _joined_head(stream: Stream, pieces: Pieces, inside: Array, message: int) -> bytes:
    """The first bytes of a message, up to the first missing one."""
    out = b""
    for piece in range(int(pieces.first[message]), int(pieces.final[message]) + 1):
        begin = int(pieces.begin[piece])
        end = min(int(inside[piece]), begin + LONGEST_HEAD - len(out))
        if begin >= end:
            continue
        if stream.covered(np.array([begin]), np.array([end]))[0] < end - begin:
            break
        out += message_header.unmask(stream.data[begin:end], pieces.masks[piece].tobytes())
        if end < pieces.end[piece]:
            break
    return out
