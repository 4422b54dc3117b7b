"""What a node has published with custody: what nobody has taken yet, and what was taken lately.

Memory is bounded. If there is no room for a message, the newest of the lowest level below its own make room; if that
would not be enough, it is not kept itself.
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from nodes.protocol.wire import MAX_MESSAGE_BYTES, Message

AGAIN_S = 60.0  # what nobody takes is sent again after this time, then after twice as long
MAX_OWED_BYTES = MAX_MESSAGE_BYTES  # as in a queue: the largest message fits, if nothing else waits
OVERHEAD = 400  # bytes that a message takes besides its topic and payload
MAX_REPEATED = 64
MAX_REPEATED_BYTES = 64 * 1024  # of all; they go over a narrow line before new ones
MAX_REPEATED_SIZE = 8 * 1024  # of one


def size_of(message: Message) -> int:
    """Bytes that a message takes in memory."""
    return OVERHEAD + len(message.payload)


@dataclass(slots=True)
class _Waiting:
    message: Message
    again_at: float = inf
    wait: float = AGAIN_S


class Kept(NamedTuple):
    """Whether a message was kept, and which others had to go for it."""

    kept: bool
    gone: tuple[Message, ...] = ()


class Owed:
    """Publications that nobody has taken yet."""

    def __init__(self, limit: int = MAX_OWED_BYTES + OVERHEAD) -> None:
        self._limit = limit
        self._bytes = 0
        self._waiting: dict[int, _Waiting] = {}  # in the order of publishing
        self._look_at = inf  # nothing is sent again before

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._waiting

    def add(self, message: Message) -> Kept:
        """Keep a message until somebody takes it."""
        if message.message_id in self._waiting:
            return Kept(True)
        too_much = self._bytes + size_of(message) - self._limit
        gone = self._less_urgent(message.priority, too_much) if too_much > 0 else []
        if sum(map(size_of, gone)) < too_much:
            return Kept(False)
        for other in gone:
            self.remove(other.message_id)
        self._waiting[message.message_id] = _Waiting(message)
        self._bytes += size_of(message)
        return Kept(True, tuple(gone))

    def remove(self, message_id: int) -> Message | None:
        """Somebody has taken it; None if it was not owed."""
        waiting = self._waiting.pop(message_id, None)
        if waiting is None:
            return None
        self._bytes -= size_of(waiting.message)
        return waiting.message

    def sent(self, message_id: int, now: float) -> None:
        """It was sent over a link that was not there before, or for the first time."""
        waiting = self._waiting[message_id]
        waiting.wait = AGAIN_S
        waiting.again_at = now + AGAIN_S
        self._look_at = min(self._look_at, waiting.again_at)

    def link_lost(self) -> None:
        """What was sent may be lost; nothing is sent again before there is a link."""
        for waiting in self._waiting.values():
            waiting.again_at = inf
        self._look_at = inf

    def most_urgent_first(self) -> list[Message]:
        """All of them; those of a level in the order of publishing."""
        messages = [waiting.message for waiting in self._waiting.values()]
        return sorted(messages, key=lambda message: -message.priority)

    def next_deadline(self) -> float | None:
        """When `due` wants to be asked; perhaps nothing is due then."""
        return None if self._look_at == inf else self._look_at

    def due(self, now: float) -> list[Message]:
        """What is to be sent again, although the link is there: it may have been dropped on the way."""
        if now < self._look_at:
            return []
        again = [each for each in self._waiting.values() if each.again_at <= now]
        for waiting in again:
            waiting.wait *= 2
            waiting.again_at = now + waiting.wait
        self._look_at = min((each.again_at for each in self._waiting.values()), default=inf)
        return [waiting.message for waiting in again]

    def _less_urgent(self, level: int, too_much: int) -> list[Message]:
        """Enough to make room, if there is enough: the lowest level first, the newest of it first."""
        below = [each.message for each in self._waiting.values() if each.message.priority < level]
        gone = []
        below.reverse()
        below.sort(key=lambda message: message.priority)
        for message in below:
            if too_much <= 0:
                break
            too_much -= size_of(message)
            gone.append(message)
        return gone


class TakenLately:
    """Publications that others have taken; a broker that comes new may want to remember them, too."""

    def __init__(self, retain_s: float) -> None:
        self._retain_s = retain_s
        self._messages: OrderedDict[int, tuple[float, Message]] = OrderedDict()  # taken at
        self._bytes = 0

    def add(self, message: Message, now: float) -> None:
        """It was taken just now; a large one is not kept."""
        if message.message_id in self._messages or size_of(message) > MAX_REPEATED_SIZE:
            return
        self._messages[message.message_id] = (now, message)
        self._bytes += size_of(message)
        self._forget(now)

    def newest(self, now: float) -> list[Message]:
        """In the order in which they were taken."""
        self._forget(now)
        return [message for _, message in self._messages.values()]

    def _forget(self, now: float) -> None:
        while self._messages:
            identity, (at, message) = next(iter(self._messages.items()))
            few = len(self._messages) <= MAX_REPEATED and self._bytes <= MAX_REPEATED_BYTES
            if few and now - at < self._retain_s:
                return
            del self._messages[identity]
            self._bytes -= size_of(message)
