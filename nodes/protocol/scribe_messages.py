"""Control messages of Scribe: one byte for the kind, whole numbers in big-endian, the topic last.

    Ask     level, bit, rightwards (1 byte each), steps (4), asker (4), ticket (8)
    Answer  level, rightwards (1 byte each), steps (4), ticket (8)
    Join, Joined, Leave  ticket (8), topic          Look  asker (4), hops (1), topic          Root  topic
    Question  asker (4), hops (1), length of the topic (1), topic, payload of the layer above
    Inquiry   asker (4), the rest as in Question

The routing section of a publication is one byte: whether it goes up or down; if it goes up once more after a crash,
the number of that attempt (8) follows.
"""

import struct
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from nodes.protocol.skipgraph_messages import VECTOR_BITS
from nodes.protocol.topic_messages import read_question, write_question
from nodes.protocol.wire import Kind, Message, WireError, encode_topic


@dataclass(frozen=True, slots=True)
class Ask:
    """Which node in the list of this level has this next bit? Passed along the list; `steps` counts from the asker."""

    level: int
    bit: int
    rightwards: int
    steps: int
    asker: int
    ticket: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The distance to such a node in steps; 0: there is none up to the end of the list."""

    level: int
    rightwards: int
    steps: int
    ticket: int


@dataclass(frozen=True, slots=True)
class Join:
    """To the next node on the way to the root: send me the topic. Repeated, or it is forgotten."""

    ticket: int
    topic: str


@dataclass(frozen=True, slots=True)
class Joined:
    """The branch stands, from the root to you."""

    ticket: int
    topic: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Send me the topic no more; cancels every Join with this ticket or an earlier one."""

    ticket: int
    topic: str


@dataclass(frozen=True, slots=True)
class Look:
    """Passed on to the topic's root."""

    asker: int
    hops: int
    topic: str


@dataclass(frozen=True, slots=True)
class Root:
    """I am the root of this topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class Question:
    """Passed on to the topic's root, for its layer above."""

    asker: int
    hops: int
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Inquiry:
    """From the root to a publisher of the topic: the same question, for its layer above."""

    asker: int
    topic: str
    payload: bytes


class Toward(IntEnum):
    """Where a publication goes."""

    ROOT = 1
    LEAVES = 2


class RoutingSection(NamedTuple):
    """The routing section of a publication. `attempt`: a number if it goes up once more after a crash, else 0."""

    toward: Toward
    attempt: int = 0

    def written(self) -> bytes:
        return bytes([self.toward]) + (_ATTEMPT.pack(self.attempt) if self.attempt else b"")


_ATTEMPT = struct.Struct("!Q")
ScribeMessage = Ask | Answer | Join | Joined | Leave | Look | Root | Question | Inquiry

# number -> kind, its numbers, and whether a topic stands behind them
_FORMS: dict[int, tuple[type[Any], struct.Struct, bool]] = {
    201: (Ask, struct.Struct("!BBBIIQ"), False),
    202: (Answer, struct.Struct("!BBIQ"), False),
    203: (Join, struct.Struct("!Q"), True),
    204: (Joined, struct.Struct("!Q"), True),
    205: (Leave, struct.Struct("!Q"), True),
    206: (Look, struct.Struct("!IB"), True),
    207: (Root, struct.Struct("!"), True),
    208: (Question, struct.Struct("!IB"), True),
    209: (Inquiry, struct.Struct("!I"), True),
}
KINDS = {number: kind for number, (kind, _, _) in _FORMS.items()}
_NUMBERS = {kind: number for number, kind in KINDS.items()}


def encode_scribe(message: ScribeMessage) -> bytes:
    """To bytes."""
    number = _NUMBERS[type(message)]
    _, form, topical = _FORMS[number]
    values = astuple(message)
    if isinstance(message, Question | Inquiry):
        values, rest = values[:-2], write_question(message.topic, message.payload)
    elif topical:
        values, rest = values[:-1], encode_topic(values[-1])
    else:
        rest = b""
    return bytes([number]) + form.pack(*values) + rest


def decode_scribe(data: bytes) -> ScribeMessage:
    """From bytes; WireError if they are none."""
    if not data or data[0] not in _FORMS:
        raise WireError(f"{data[:20]!r} is no control message of Scribe")
    kind, form, topical = _FORMS[data[0]]
    end = 1 + form.size
    if len(data) < end or (len(data) > end and not topical):
        raise WireError(f"{kind.__name__} of {len(data)} bytes")
    rest: tuple[str | bytes, ...] = ()
    if kind in (Question, Inquiry):
        rest = read_question(data[end:])
    elif topical:
        rest = (_topic(data[end:]),)
    message: ScribeMessage = kind(*form.unpack(data[1:end]), *rest)
    if isinstance(message, Ask | Answer) and (
        message.level >= VECTOR_BITS or message.rightwards > 1
    ):
        raise WireError(f"level {message.level}, side {message.rightwards}: there is no such list")
    return message


def _topic(data: bytes) -> str:
    try:
        topic = data.decode()
    except UnicodeDecodeError:
        raise WireError("topic is not UTF-8") from None
    encode_topic(topic)  # one that is too long is refused
    return topic


def routing_section(message: Message) -> RoutingSection:
    """The routing section of a publication; WireError if it has none."""
    routing = message.routing
    if message.kind is not Kind.PUBLISH or len(routing) not in (1, 1 + _ATTEMPT.size):
        raise WireError(f"{message.kind.name} without the routing of Scribe")
    attempt = _ATTEMPT.unpack(routing[1:])[0] if routing[1:] else 0
    try:
        return RoutingSection(Toward(routing[0]), attempt)
    except ValueError:
        raise WireError(f"a publication toward {routing[0]}") from None
