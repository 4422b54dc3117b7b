"""The label of a chunk: one byte in front of it, or the frame's reserved bits.

A chunk without a label is a whole message and begins with `wire.VERSION`. No label has that value, so the analysis can
read a capture without knowing the method.

Lee 2016 (`dmpq-pc`), a letter; or its number in the two upper reserved bits, and then no byte:

    A 0  an urgent message, whole           C 2  a piece of a standard message, more to come
    B 1  a standard message, whole          D 3  its last piece

The thesis leaves an urgent message undivided, however long it is. Ours is divided like the others, and since it may
come between two pieces of a standard one, its pieces have labels of their own: `c` and `d`, or the lowest bit set.

Ours (`preemptive`): 0x80 | form << 3 | level. Pieces of messages of different levels may be mixed.

    form 0  a whole message                  form 2  its last piece
    form 1  a piece, more to come            form 3  several whole messages, each behind its length in two bytes
"""

from enum import IntEnum


class DmpqLabel(IntEnum):
    """The labels of dmpq-pc as a byte."""

    URGENT = ord("A")
    WHOLE = ord("B")
    PIECE = ord("C")
    LAST = ord("D")
    URGENT_PIECE = ord("c")
    URGENT_LAST = ord("d")


# The same in the reserved bits: RSV1 is 4, RSV2 is 2, RSV3 is 1. An urgent message has none set, as in ordinary frames.
BITS = {
    DmpqLabel.URGENT: 0b000,
    DmpqLabel.WHOLE: 0b010,
    DmpqLabel.PIECE: 0b100,
    DmpqLabel.LAST: 0b110,
    DmpqLabel.URGENT_PIECE: 0b101,
    DmpqLabel.URGENT_LAST: 0b111,
}
DMPQ_LABELS = {bits: label for label, bits in BITS.items()}


class Form(IntEnum):
    """The forms of a chunk of `preemptive`."""

    WHOLE = 0
    PIECE = 1
    LAST = 2
    SEVERAL = 3


LEVELLED = 0x80  # set in each label of `preemptive`
LENGTH_BYTES = 2  # in front of each message of SEVERAL


def levelled(form: Form, level: int) -> int:
    """The label byte of `preemptive`."""
    return LEVELLED | form << 3 | level


def form_and_level(label: int) -> tuple[Form, int]:
    """Form and level of a label byte of `preemptive`; ValueError if it is none."""
    level = label & 0b111
    if not label & LEVELLED or not 1 <= level <= 5 or label & 0b0110_0000:
        raise ValueError(f"no label of preemptive: {label:#04x}")
    return Form(label >> 3 & 0b11), level
