"""What nodes of Scribe say to each other: one byte for the kind, whole numbers in big-endian, the topic last.

    Ask     level, bit, rightwards (1 byte each), steps (4), asker (4), ticket (8)
    Answer  level, rightwards (1 byte each), steps (4), ticket (8)
    Join, Joined, Leave  ticket (8), topic          Look  asker (4), hops (1), topic          Root  topic

The routing section of a publication is one byte: whether it goes up or down.
"""

import struct
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Any

from nodes.overlay.skipgraph.contacts import VECTOR_BITS
from nodes.wire import Kind, Message, WireError, encode_topic


@dataclass(frozen=True, slots=True)
class Ask:
    """Who in my list of this level has this next bit? Passed along the list; `steps` counts from the asker."""

    level: int
    bit: int
    rightwards: int
    steps: int
    asker: int
    ticket: int


@dataclass(frozen=True, slots=True)
class Answer:
    """So many steps away is one; 0: nobody to the end of the list."""

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
    """No more; whatever Join came with this ticket or an earlier one is void."""

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


class Toward(IntEnum):
    """Where a publication goes."""

    ROOT = 1
    LEAVES = 2


ScribeWord = Ask | Answer | Join | Joined | Leave | Look | Root

# number -> kind, its numbers, and whether a topic stands behind them
_FORMS: dict[int, tuple[type[Any], struct.Struct, bool]] = {
    201: (Ask, struct.Struct("!BBBIIQ"), False),
    202: (Answer, struct.Struct("!BBIQ"), False),
    203: (Join, struct.Struct("!Q"), True),
    204: (Joined, struct.Struct("!Q"), True),
    205: (Leave, struct.Struct("!Q"), True),
    206: (Look, struct.Struct("!IB"), True),
    207: (Root, struct.Struct("!"), True),
}
WORDS = {number: kind for number, (kind, _, _) in _FORMS.items()}
_NUMBERS = {kind: number for number, kind in WORDS.items()}


def say_scribe(word: ScribeWord) -> bytes:
    """To bytes."""
    number = _NUMBERS[type(word)]
    _, form, topical = _FORMS[number]
    values = astuple(word)
    numbers, topic = (values[:-1], encode_topic(values[-1])) if topical else (values, b"")
    return bytes([number]) + form.pack(*numbers) + topic


def hear_scribe(data: bytes) -> ScribeWord:
    """From bytes; WireError if they are none."""
    if not data or data[0] not in _FORMS:
        raise WireError(f"{data[:20]!r} is no word of Scribe")
    kind, form, topical = _FORMS[data[0]]
    end = 1 + form.size
    if len(data) < end or (len(data) > end and not topical):
        raise WireError(f"{kind.__name__} of {len(data)} bytes")
    try:
        topic = [data[end:].decode()] if topical else []
    except UnicodeDecodeError:
        raise WireError("topic is not UTF-8") from None
    for name in topic:
        encode_topic(name)
    word: ScribeWord = kind(*form.unpack(data[1:end]), *topic)
    if isinstance(word, Ask | Answer) and (word.level >= VECTOR_BITS or word.rightwards > 1):
        raise WireError(f"level {word.level}, side {word.rightwards}: there is no such list")
    return word


def toward_of(message: Message) -> Toward:
    """Where the publication goes; WireError if it is none, or does not say."""
    if message.kind is not Kind.PUBLISH or len(message.routing) != 1:
        raise WireError(f"{message.kind.name} without the routing of Scribe")
    try:
        return Toward(message.routing[0])
    except ValueError:
        raise WireError(f"a publication toward {message.routing[0]}") from None
