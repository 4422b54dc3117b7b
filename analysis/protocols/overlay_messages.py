"""The kinds of control messages between brokers: of the overlay's own, and of the layer above carried in them.

The first byte of an OVERLAY message's payload is the number of a Skip Graph message. Some of these carry a message of
the layer above (`nodes.overlay.topics`), whose first byte is its kind: stop, go, join, and so on.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.protocols import message_header
from analysis.protocols.chunks import Heads
from nodes.protocol import skipgraph_codec
from nodes.protocol.collection_messages import ReadingControl
from nodes.protocol.scribe_messages import KINDS as SCRIBE_WORDS
from nodes.protocol.topic_messages import RosterControl, TopicControl
from nodes.protocol.zorder_map_messages import KINDS as MAP_WORDS

Array = npt.NDArray[Any]
OVERLAY_KINDS = {number: kind.__name__ for number, (kind, _) in skipgraph_codec.FORMS.items()}
CARRIED_KINDS = {
    **{
        int(kind): kind.name.lower()
        for enum in (TopicControl, RosterControl, ReadingControl)
        for kind in enum
    },
    **{number: kind.__name__.lower() for number, kind in SCRIBE_WORDS.items()},
    **{number: kind.__name__.lower() for number, kind in MAP_WORDS.items()},
}
UNKNOWN = -1
_KEY_LENGTH = 2
_SIZES = {
    skipgraph_codec.U8: 1,
    skipgraph_codec.FLAG: 1,
    skipgraph_codec.WAY: 1,
    skipgraph_codec.U16: 2,
    skipgraph_codec.U32: 4,
    skipgraph_codec.U64: 8,
    skipgraph_codec.KEY: None,  # preceded by its length
}
# kind -> sizes of the fields between the kind and the carried message; None: a key
CARRIERS = {
    number: tuple(_SIZES[form] for form in forms[:-1])
    for number, (_, forms) in skipgraph_codec.FORMS.items()
    if forms[-1] is skipgraph_codec.BODY
}


def kinds_of(heads: Heads, rows: Array, payload_at: Array) -> tuple[Array, Array]:
    """The overlay kind and the carried kind of these rows of `heads`; UNKNOWN where the bytes were not seen.

    `payload_at`: offset of the payload in the message.
    """
    reader = _Reader(heads, rows)
    overlay_kinds = reader.numbers(payload_at, 1, np.ones(len(rows), bool))
    carried_kinds = np.full(len(rows), UNKNOWN, np.int64)
    for number, fields in CARRIERS.items():
        mine = overlay_kinds == number
        if not mine.any():
            continue
        at, there = payload_at + 1, mine
        for size in fields:
            if size is None:
                length = reader.numbers(at, _KEY_LENGTH, there)
                there = there & (length != UNKNOWN)
                at = at + _KEY_LENGTH + length
            else:
                at = at + size
        carried_kinds[mine] = reader.numbers(at, 1, there)[mine]
    return overlay_kinds, carried_kinds


class _Reader:
    """Reads big-endian numbers from messages, each at its own offset."""

    def __init__(self, heads: Heads, rows: Array) -> None:
        self._data = heads.data
        self._begin, self._end = heads.at[rows], heads.end[rows]
        self._masks = heads.masks[rows]

    def numbers(self, at: Array, size: int, wanted: Array) -> Array:
        """The numbers; UNKNOWN where not wanted, or not captured."""
        there = wanted & (self._begin + at + size <= self._end)
        at = np.where(there, at, 0)
        masks = message_header.turned(self._masks, at)
        found = message_header.gather(self._data, self._begin + at, masks, size).astype(np.int64)
        value = found @ (256 ** np.arange(size)[::-1])
        return np.where(there, value, UNKNOWN)
