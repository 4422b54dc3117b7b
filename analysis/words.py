"""What brokers say to each other about the overlay: which word a message is, and what the layer above says in it.

The first byte of an OVERLAY message's payload is the number of a word of the Skip Graph. Some words carry bytes of the
layer above (`nodes.overlay.tbps`), and the first of those tells what is said: stop, go, join, and so on.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis import decode
from analysis.heads import Heads
from nodes.overlay.collection.courses import ReadingWord
from nodes.overlay.skipgraph import codec
from nodes.overlay.tbps.roster import RosterWord
from nodes.overlay.tbps.scribe_words import WORDS as SCRIBE_WORDS
from nodes.overlay.tbps.words import Word
from nodes.overlay.zorder_map.words import WORDS as MAP_WORDS

Array = npt.NDArray[Any]

WORDS = {number: kind.__name__ for number, (kind, _) in codec.FORMS.items()}
SAYINGS = {
    **{int(word): word.name.lower() for enum in (Word, RosterWord, ReadingWord) for word in enum},
    **{number: kind.__name__.lower() for number, kind in SCRIBE_WORDS.items()},
    **{number: kind.__name__.lower() for number, kind in MAP_WORDS.items()},
}
UNKNOWN = -1
_KEY_LENGTH = 2
_SIZES = {
    codec.U8: 1,
    codec.FLAG: 1,
    codec.WAY: 1,
    codec.U16: 2,
    codec.U32: 4,
    codec.U64: 8,
    codec.KEY: None,  # its own length stands before it
}
# number -> the sizes of the fields between it and the bytes of the layer above; None: a key
CARRIERS = {
    number: tuple(_SIZES[form] for form in forms[:-1])
    for number, (_, forms) in codec.FORMS.items()
    if forms[-1] is codec.BODY
}


def words_of(heads: Heads, rows: Array, payload_at: Array) -> tuple[Array, Array]:
    """For each of these rows of `heads`, the word and what is said in it; UNKNOWN where its bytes were not seen.

    `payload_at`: where their payload begins, counted from the beginning of the message.
    """
    reader = _Reader(heads, rows)
    words = reader.numbers(payload_at, 1, np.ones(len(rows), bool))
    sayings = np.full(len(rows), UNKNOWN, np.int64)
    for number, fields in CARRIERS.items():
        mine = words == number
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
        sayings[mine] = reader.numbers(at, 1, there)[mine]
    return words, sayings


class _Reader:
    """Takes big-endian numbers from messages, each at a place of its own."""

    def __init__(self, heads: Heads, rows: Array) -> None:
        self._data = heads.data
        self._begin, self._end = heads.at[rows], heads.end[rows]
        self._masks = heads.masks[rows]

    def numbers(self, at: Array, size: int, wanted: Array) -> Array:
        """UNKNOWN where it is not wanted, or not there."""
        there = wanted & (self._begin + at + size <= self._end)
        at = np.where(there, at, 0)
        masks = decode.turned(self._masks, at)
        found = decode.gather(self._data, self._begin + at, masks, size).astype(np.int64)
        value = found @ (256 ** np.arange(size)[::-1])
        return np.where(there, value, UNKNOWN)
