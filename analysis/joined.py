"""Joined messages (`nodes.joined`) in a stream: their bytes, and the publications in them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis import decode
from analysis.chunks import Pieces
from analysis.stream import Stream
from nodes import joined, wire

Array = npt.NDArray[Any]


class JoinedPart(NamedTuple):
    """One publication among several."""

    header: Array  # one row
    header_bytes: int  # with its length, topic, place and routing
    payload_size: int


def whole_message(stream: Stream, pieces: Pieces, message: int) -> bytes:
    """All bytes of a message that is complete, as its sender meant them."""
    return b"".join(
        decode.unmask(
            stream.data[int(pieces.begin[piece]) : int(pieces.end[piece])],
            pieces.masks[piece].tobytes(),
        )
        for piece in range(int(pieces.first[message]), int(pieces.final[message]) + 1)
    )


def parts_of(data: bytes) -> list[JoinedPart]:
    """The publications in these bytes; none if they are no joined message."""
    try:
        payload = wire.decode(data).payload
        found = []
        for begin, end in joined.parts(payload):
            size = len(wire.decode(payload[begin:end]).payload)
            header = np.frombuffer(payload, decode.LAYOUT, 1, begin)[0]
            found.append(JoinedPart(header, joined.LENGTH.size + end - begin - size, size))
    except wire.WireError:
        return []
    return found
