"""The first bytes of messages, up to the length of the routing, however small the pieces that brought them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis import decode
from analysis.chunks import Pieces
from analysis.stream import Stream
from nodes.wire import HEADER_SIZE, MAX_PLACE_BYTES, MAX_TOPIC_BYTES, ROUTING_LENGTH

Array = npt.NDArray[Any]

LONGEST_HEAD = HEADER_SIZE + MAX_TOPIC_BYTES + MAX_PLACE_BYTES + ROUTING_LENGTH.size


@dataclass(frozen=True, slots=True)
class Heads:
    """Where the first bytes of each message can be read in one go: in `data`, the stream and more behind it."""

    data: bytes
    at: Array
    end: Array
    masks: Array

    def seen(self, stream: Stream, needed: Array) -> Array:
        """How many of the bytes that are needed were seen."""
        until = np.minimum(self.at + needed, self.end)
        copied = self.at >= len(stream.data)
        return np.where(copied, until - self.at, stream.covered(self.at, until))


def heads_of(stream: Stream, pieces: Pieces, inside: Array) -> Heads:
    """In the stream itself; of a message whose header may go on in its next piece, a copy behind the stream."""
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
    """The first bytes of a message, up to the first that is missing."""
    out = b""
    for piece in range(int(pieces.first[message]), int(pieces.final[message]) + 1):
        begin = int(pieces.begin[piece])
        end = min(int(inside[piece]), begin + LONGEST_HEAD - len(out))
        if begin >= end:
            continue
        if stream.covered(np.array([begin]), np.array([end]))[0] < end - begin:
            break
        out += decode.unmask(stream.data[begin:end], pieces.masks[piece].tobytes())
        if end < pieces.end[piece]:
            break
    return out
