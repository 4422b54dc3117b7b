"""The outbox: publications with custody that no broker has acknowledged yet, and those acknowledged lately.

Memory is bounded. If a message does not fit, the outbox evicts the newest messages of the lowest level below its own;
if that would not be enough, it does not store the message.
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from nodes.protocol.wire import MAX_MESSAGE_BYTES, Message

RETRY_S = 60.0  # a message without acknowledgement is sent again after this time, then after twice as long
MAX_OUTBOX_BYTES = (
    MAX_MESSAGE_BYTES  # as in a queue: the largest message fits, if nothing else waits
)
OVERHEAD = 400  # bytes that a message takes besides its topic and payload
MAX_REPEATED = 64
MAX_REPEATED_BYTES = 64 * 1024  # of all; they go over a narrow link before new ones
MAX_REPEATED_SIZE = 8 * 1024  # of one


def size_of(message: Message) -> int:
    """Bytes that a message takes in memory."""
    return OVERHEAD + len(message.payload)


@dataclass(slots=True)
class _Pending:
    message: Message
    retry_at: float = inf
    wait: float = RETRY_S


class Admission(NamedTuple):
    """Whether a message was stored, and which others were evicted for it."""

    stored: bool
    evicted: tuple[Message, ...] = ()


class Outbox:
    """Publications without an acknowledgement."""

    def __init__(self, limit: int = MAX_OUTBOX_BYTES + OVERHEAD) -> None:
        self._limit = limit
        self._bytes = 0
        self._pending: dict[int, _Pending] = {}  # in the order of publishing
        self._next_check_at = inf  # nothing is sent again before

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._pending

    def add(self, message: Message) -> Admission:
        """Store a message until it is acknowledged."""
        if message.message_id in self._pending:
            return Admission(True)
        too_much = self._bytes + size_of(message) - self._limit
        evicted = self._less_urgent(message.priority, too_much) if too_much > 0 else []
        if sum(map(size_of, evicted)) < too_much:
            return Admission(False)
        for other in evicted:
            self.remove(other.message_id)
        self._pending[message.message_id] = _Pending(message)
        self._bytes += size_of(message)
        return Admission(True, tuple(evicted))

    def remove(self, message_id: int) -> Message | None:
        """The message is acknowledged; None if it is not in the outbox."""
        pending = self._pending.pop(message_id, None)
        if pending is None:
            return None
        self._bytes -= size_of(pending.message)
        return pending.message

    def sent(self, message_id: int, now: float) -> None:
        """The message was sent for the first time, or over a new link."""
        pending = self._pending[message_id]
        pending.wait = RETRY_S
        pending.retry_at = now + RETRY_S
        self._next_check_at = min(self._next_check_at, pending.retry_at)

    def link_lost(self) -> None:
        """The link is down: messages on it may be lost; nothing is sent again before there is a new link."""
        for pending in self._pending.values():
            pending.retry_at = inf
        self._next_check_at = inf

    def most_urgent_first(self) -> list[Message]:
        """All of them; those of a level in the order of publishing."""
        messages = [pending.message for pending in self._pending.values()]
        return sorted(messages, key=lambda message: -message.priority)

    def next_deadline(self) -> float | None:
        """When to call `due` next; perhaps nothing is due then."""
        return None if self._next_check_at == inf else self._next_check_at

    def due(self, now: float) -> list[Message]:
        """The messages to send again although the link is up: they may have been dropped on the way."""
        if now < self._next_check_at:
            return []
        retried = [each for each in self._pending.values() if each.retry_at <= now]
        for pending in retried:
            pending.wait *= 2
            pending.retry_at = now + pending.wait
        self._next_check_at = min((each.retry_at for each in self._pending.values()), default=inf)
        return [pending.message for pending in retried]

    def _less_urgent(self, level: int, too_much: int) -> list[Message]:
        """Messages to evict, the lowest level first and the newest of it first; maybe not enough of them."""
        below = [each.message for each in self._pending.values() if each.message.priority < level]
        evicted = []
        below.reverse()
        below.sort(key=lambda message: message.priority)
        for message in below:
            if too_much <= 0:
                break
            too_much -= size_of(message)
            evicted.append(message)
        return evicted


class RecentlyAcknowledged:
    """Publications that were acknowledged lately; the node repeats them to a new broker, which remembers them, too."""

    def __init__(self, retain_s: float) -> None:
        self._retain_s = retain_s
        self._messages: OrderedDict[int, tuple[float, Message]] = OrderedDict()  # when acknowledged
        self._bytes = 0

    def add(self, message: Message, now: float) -> None:
        """The message was acknowledged just now; a large one is not stored."""
        if message.message_id in self._messages or size_of(message) > MAX_REPEATED_SIZE:
            return
        self._messages[message.message_id] = (now, message)
        self._bytes += size_of(message)
        self._forget(now)

    def newest(self, now: float) -> list[Message]:
        """All of them, in the order of their acknowledgements."""
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
