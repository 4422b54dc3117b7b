"""Publications: requests of the control socket and of timelines, checked and numbered."""

from dataclasses import dataclass
from typing import Any

from nodes.protocol.interests import OPENING, is_plain
from nodes.protocol.wire import (
    HIGHEST_PRIORITY,
    LOWEST_PRIORITY,
    MAX_COORDINATE,
    MAX_DIMENSIONS,
    MAX_PAYLOAD_BYTES,
    Kind,
    Message,
    WireError,
    encode_topic,
    message_id,
)

_PATTERN = bytes(range(256))


class InvalidPublication(ValueError):
    """The request is no valid publication; the text says why."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A message to be published."""

    topic: str
    priority: int
    size: int  # payload bytes
    place: tuple[int, ...] = ()  # its coordinates, if it has a place


def publication(topic: Any, priority: Any, size: Any, place: Any = ()) -> Publication:
    """From JSON values; Unpublishable if they make no sense."""
    if not isinstance(topic, str) or not topic:
        raise InvalidPublication(f"topic is {topic!r}; it must be a text, not empty")
    try:
        encode_topic(topic)
    except WireError as error:
        raise InvalidPublication(str(error)) from error
    if not is_plain(topic):
        raise InvalidPublication(f"topic is {topic!r}; only subscriptions begin with {OPENING}")
    if not whole(priority) or not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise InvalidPublication(f"priority is {priority!r}; it goes from 1 to 5")
    if not whole(size) or not 0 <= size <= MAX_PAYLOAD_BYTES:
        raise InvalidPublication(f"size is {size!r}; it goes from 0 to {MAX_PAYLOAD_BYTES} bytes")
    if not isinstance(place, list | tuple) or len(place) > MAX_DIMENSIONS:
        raise InvalidPublication(f"place is {place!r}; it has at most {MAX_DIMENSIONS} coordinates")
    if not all(whole(each) and 0 <= each <= MAX_COORDINATE for each in place):
        raise InvalidPublication(f"place is {place!r}; coordinates go from 0 to {MAX_COORDINATE}")
    return Publication(topic, priority, size, tuple(place))


class Publisher:
    """Numbers a node's publications."""

    def __init__(self, number: int, last_counter: int) -> None:
        self._number = number
        self._counter = last_counter

    def make(self, what: Publication, published_ns: int) -> Message:
        """The next message; its payload is a pattern of the size asked for."""
        self._counter += 1
        return Message(
            Kind.PUBLISH,
            priority=what.priority,
            origin=self._number,
            message_id=message_id(self._number, self._counter),
            published_ns=published_ns,
            topic=what.topic,
            payload=(_PATTERN * (what.size // 256 + 1))[: what.size],
            place=what.place,
        )


def whole(value: Any) -> bool:
    """Whether a JSON value is a whole number (for Python, true is one too)."""
    return isinstance(value, int) and not isinstance(value, bool)
