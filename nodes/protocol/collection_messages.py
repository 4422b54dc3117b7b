"""The routing section of a reading between brokers, and the control messages of a collection.

    TOWARD   1 byte, then the number of the broker where it was published: to the collector, by the common rule
    ANSWER   1 byte, then the collector's number and the number of its question: back to the node that passed it on

No graph message has such a first byte, so the first byte says which kind of routing section it is.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from nodes.protocol.wire import Message, WireError

TOWARD, ANSWER = 0xC0, 0xC1
_TOWARD = struct.Struct("!BI")
_ANSWER = struct.Struct("!BIQ")


@dataclass(frozen=True, slots=True)
class Toward:
    """To the collector; `origin` is the broker where the reading was published."""

    origin: int

    def written(self) -> bytes:
        """As a routing section."""
        return _TOWARD.pack(TOWARD, self.origin)


@dataclass(frozen=True, slots=True)
class Answer:
    """Back along the tree of the collector's question."""

    collector: int
    question: int

    def written(self) -> bytes:
        """As a routing section."""
        return _ANSWER.pack(ANSWER, self.collector, self.question)


def routing_section(message: Message) -> Toward | Answer | None:
    """The routing section of a reading; None if it is another kind, WireError if it is broken."""
    routing = message.routing
    for kind, form, section in ((TOWARD, _TOWARD, Toward), (ANSWER, _ANSWER, Answer)):
        if routing[:1] == bytes([kind]):
            if len(routing) != form.size:
                raise WireError(f"{len(routing)} bytes of routing; there are {form.size}")
            return section(*form.unpack(routing)[1:])
    return None


class ReadingControl(IntEnum):
    """The kinds of control messages, one byte each; distinct from those of `topic_messages`."""

    HERE = 111  # I collect this topic: send to me
    NOT_HERE = 112  # I do not
    COLLECT = 113  # to all publishers of the topic: send what you have read since the last question
    EMPTY = 114  # the reply of a node without readings, if the nodes behind it have none either


_EMPTY = struct.Struct("!BIQ")


def encode_control(control: ReadingControl, topic: str) -> bytes:
    """HERE, NOT_HERE or COLLECT to bytes."""
    return bytes([control]) + topic.encode()


def encode_nothing(answer: Answer) -> bytes:
    """EMPTY to bytes."""
    return _EMPTY.pack(ReadingControl.EMPTY, answer.collector, answer.question)


def is_reading_control(data: bytes) -> bool:
    return data[:1] in [bytes([control]) for control in ReadingControl]


def decode_control(data: bytes) -> tuple[ReadingControl, str | Answer]:
    """From bytes: the kind, and its topic or the question that it answers; WireError if they are none."""
    control = ReadingControl(data[0])
    if control is ReadingControl.EMPTY:
        if len(data) != _EMPTY.size:
            raise WireError(f"{len(data)} bytes of EMPTY; there are {_EMPTY.size}")
        return control, Answer(*_EMPTY.unpack(data)[1:])
    try:
        return control, data[1:].decode()
    except UnicodeDecodeError:
        raise WireError("topic is not UTF-8") from None
