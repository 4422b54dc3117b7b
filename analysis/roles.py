"""What each label says of its chunk, as tables for whole columns at once."""

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from nodes.delivery.labels import BITS, Form, Letter, form_and_level
from nodes.wire import VERSION

Array = npt.NDArray[Any]

LABEL_BYTES = 1


class Role(IntEnum):
    """What a chunk is, whichever way its label is written."""

    STRANGE = 0  # none of ours
    WHOLE = 1
    PIECE = 2
    LAST = 3
    SEVERAL = 4


STANDARD, URGENT, BEFORE_LEVELS = 1, 2, 2  # ways; level n of preemptive is BEFORE_LEVELS + n
_LETTER_ROLES = {
    Letter.URGENT: (Role.WHOLE, URGENT),
    Letter.WHOLE: (Role.WHOLE, STANDARD),
    Letter.PIECE: (Role.PIECE, STANDARD),
    Letter.LAST: (Role.LAST, STANDARD),
    Letter.URGENT_PIECE: (Role.PIECE, URGENT),
    Letter.URGENT_LAST: (Role.LAST, URGENT),
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
    """The same of the reserved bits, where there are any; they take no room."""
    table = np.zeros((8, 3), np.int64)
    for letter, bits in BITS.items():
        table[bits] = *_LETTER_ROLES[letter], 0
    return table


BY_BYTE, BY_BITS = _byte_table(), _bit_table()
