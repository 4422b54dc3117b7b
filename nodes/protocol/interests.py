"""Interests: a whole topic, or only the publications of a topic from an area or of a minimum level.

The text of an interest takes the place of the topic in SUBSCRIBE, SUBSCRIBED, UNSUBSCRIBE and MISSED. The text of a
whole topic is the topic itself. Every other text begins with a brace, which no topic does:

    {4}alerts                    of level 4 and above
    {1 a0-ff * 7-7}alerts        in a box: from coordinate a0 to ff (hexadecimal), anything, and exactly 7

Each interest has one text and each text one interest, so that texts can be compared instead of interests.
"""

from dataclasses import dataclass

from nodes.protocol.regions import Box
from nodes.protocol.wire import (
    HIGHEST_PRIORITY,
    LOWEST_PRIORITY,
    MAX_COORDINATE,
    MAX_DIMENSIONS,
    Message,
    WireError,
    encode_topic,
)

OPENING, CLOSING = "{", "}"
ANYTHING = "*"  # a dimension that is not limited
_WHOLE = (0, MAX_COORDINATE)


@dataclass(frozen=True, slots=True)
class Interest:
    """Publications of a topic, of at least this level, and, if there is a box, with a place in it."""

    topic: str
    box: Box | None = None
    min_priority: int = LOWEST_PRIORITY

    @property
    def text(self) -> str:
        """Its text; it may be too long for a message (`checked`)."""
        if self.box is None and self.min_priority == LOWEST_PRIORITY:
            return self.topic
        sides = () if self.box is None else zip(self.box.low, self.box.high, strict=True)
        parts = [str(self.min_priority), *(_side(low, high) for low, high in sides)]
        return f"{OPENING}{' '.join(parts)}{CLOSING}{self.topic}"

    def wants(self, message: Message) -> bool:
        """Whether the interest matches this publication."""
        return message.topic == self.topic and self.accepts(message.priority, message.place)

    def accepts(self, priority: int, place: tuple[int, ...]) -> bool:
        """Whether it matches a publication on its topic with this level and place (empty: no place)."""
        if priority < self.min_priority:
            return False
        if self.box is None:
            return True
        return len(place) == len(self.box.low) and self.box.contains(place)


def is_plain(topic: str) -> bool:
    """Whether this is a topic, on which nodes can publish, and not the text of another interest."""
    return not topic.startswith(OPENING)


def checked(interest: Interest) -> Interest:
    """The interest, if it fits into a message; WireError if not."""
    if not is_plain(interest.topic):
        raise WireError(f"topic {interest.topic!r}; no topic begins with {OPENING}")
    if not LOWEST_PRIORITY <= interest.min_priority <= HIGHEST_PRIORITY:
        raise WireError(f"level {interest.min_priority}; it goes from 1 to 5")
    if interest.box is not None and len(interest.box.low) > MAX_DIMENSIONS:
        raise WireError(f"a box of {len(interest.box.low)} sides; at most {MAX_DIMENSIONS} fit")
    encode_topic(interest.text)
    return interest


def parse(text: str) -> Interest:
    """The interest of this text; WireError if it is none."""
    if is_plain(text):
        return checked(Interest(text))
    parts, closing, topic = text[len(OPENING) :].partition(CLOSING)
    if not closing:
        raise WireError(f"an interest without {CLOSING}: {text!r}")
    level, *sides = parts.split(" ")
    try:
        corners = [_WHOLE if side == ANYTHING else _corners(side) for side in sides]
        box = Box(*(tuple(corner) for corner in zip(*corners, strict=True))) if corners else None
        interest = checked(Interest(topic, box, int(level)))
    except ValueError as error:  # WireError is one
        raise WireError(f"no interest: {text!r} ({error})") from None
    if interest.text != text:
        raise WireError(f"an interest has one text only: {interest.text!r}, not {text!r}")
    return interest


def _side(low: int, high: int) -> str:
    return ANYTHING if (low, high) == _WHOLE else f"{low:x}-{high:x}"


def _corners(side: str) -> tuple[int, int]:
    low, _, high = side.partition("-")
    corners = int(low, 16), int(high, 16)
    if max(corners) > MAX_COORDINATE:
        raise ValueError(f"{side} has a coordinate of more than 32 bits")
    return corners
