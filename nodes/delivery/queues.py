"""Queues by level, and what is dropped when they are full.

When a message does not fit, the newest message of the lowest level is dropped first: never one of which a part was
sent, never one of the same or a higher level. If that would not be enough, only the message itself is dropped. Each
dropped message is returned with the reason, so nothing is lost silently.

Control messages and upkeep have queues and a capacity of their own (`nodes.delivery.base`). Upkeep is sent in the order
of arrival among the messages of its level.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from typing import Any

from nodes.delivery.base import CONTROL_BYTES, UPKEEP_LEVEL, Dropped, Queued
from nodes.parameters import whole_number
from nodes.protocol.wire import HIGHEST_PRIORITY, LOWEST_PRIORITY, MAX_MESSAGE_BYTES

LIMIT_BYTES = MAX_MESSAGE_BYTES  # the largest message fits, if nothing else waits


def limit_bytes(method: str, parameters: Mapping[str, Any]) -> int:
    """The parameter of that name, for publications; ParameterError if it is no number of bytes."""
    return whole_number(method, parameters, "limit_bytes", LIMIT_BYTES, least=1)


def queue_full(size: int, used: int, limit: int) -> str:
    """Why a message was not queued."""
    return f"{size} bytes do not fit: {used} of {limit} are taken"


LEVELS = range(HIGHEST_PRIORITY, LOWEST_PRIORITY - 1, -1)  # the most urgent first


@dataclass(slots=True, eq=False)
class Waiting:
    """A message that the kernel does not have completely; it counts whole until then."""

    data: bytes
    level: int
    order: int  # of its coming
    control: bool = False
    upkeep: bool = False
    sent: int = 0  # bytes that are with the kernel
    begun: bool = False  # whether a part of it was sent

    @property
    def left(self) -> int:
        return len(self.data) - self.sent


class Levels:
    """The queues of all levels, the one of control messages, and the one of upkeep."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queues: dict[int, deque[Waiting]] = {level: deque() for level in LEVELS}
        self._bytes = dict.fromkeys(LEVELS, 0)
        self._control: deque[Waiting] = deque()
        self._upkeep: deque[Waiting] = deque()
        self._control_bytes = 0  # and those of upkeep
        self._came = 0

    @property
    def queued(self) -> Queued:
        apart = len(self._control) + len(self._upkeep)
        messages = apart + sum(len(queue) for queue in self._queues.values())
        return Queued(messages, self._control_bytes + sum(self._bytes.values()))

    def offer(self, data: bytes, level: int, control: bool, upkeep: bool) -> tuple[Dropped, ...]:
        """Queue a message; the messages that were dropped for it, or the message itself."""
        self._came += 1
        message = Waiting(data, UPKEEP_LEVEL if upkeep else level, self._came, control, upkeep)
        if control or upkeep:
            if self._control_bytes + len(data) > CONTROL_BYTES:
                reason = queue_full(len(data), self._control_bytes, CONTROL_BYTES)
                return (Dropped(data, level, reason),)
            (self._upkeep if upkeep else self._control).append(message)
            self._control_bytes += len(data)
            return ()
        used = sum(self._bytes.values())
        too_much = used + len(data) - self._limit
        if too_much > 0 and too_much > self._could_go(level):
            return (Dropped(data, level, queue_full(len(data), used, self._limit)),)
        dropped = tuple(self._make_room(too_much, level))
        self._queues[level].append(message)
        self._bytes[level] += len(data)
        return dropped

    def control(self) -> Waiting | None:
        """The oldest control message."""
        return self._control[0] if self._control else None

    def head(self, level: int) -> Waiting | None:
        """The oldest message of the level."""
        if level == UPKEEP_LEVEL and self._upkeep:
            return next(self.following(level))
        queue = self._queues[level]
        return queue[0] if queue else None

    def oldest(self, levels: Iterable[int]) -> Waiting | None:
        """The one of all these levels that came first."""
        heads = [head for level in levels if (head := self.head(level)) is not None]
        return min(heads, key=lambda message: message.order, default=None)

    def following(self, level: int) -> Iterator[Waiting]:
        """The messages of the level in their order."""
        if level == UPKEEP_LEVEL and self._upkeep:
            return merge(self._upkeep, self._queues[level], key=lambda message: message.order)
        return iter(self._queues[level])

    def remove(self, message: Waiting) -> None:
        """Remove a message that the kernel has: the oldest of its queue."""
        if message.control or message.upkeep:
            self._control_bytes -= len(message.data)
            (self._upkeep if message.upkeep else self._control).popleft()
        else:
            self._bytes[message.level] -= len(message.data)
            self._queues[message.level].popleft()

    def begin_anew(self, *, keep_all: bool = False) -> None:
        """After the end of a connection: messages that were sent in part are whole again.

        Control messages and upkeep are dropped, unless `keep_all`.
        """
        if not keep_all:
            self._control.clear()
            self._upkeep.clear()
            self._control_bytes = 0
        for queue in (self._control, self._upkeep, *self._queues.values()):
            for message in queue:
                if not message.begun:
                    break
                message.sent, message.begun = 0, False

    def withdraw(self, unwanted: Callable[[bytes], bool]) -> None:
        """Drop the publications for which this is true; no part of them was sent."""
        for level, queue in self._queues.items():
            self._queues[level] = deque(each for each in queue if not unwanted(each.data))
            self._bytes[level] = sum(len(each.data) for each in self._queues[level])

    def _could_go(self, level: int) -> int:
        """Bytes that a message of this level may displace."""
        return sum(
            self._bytes[lower] - sum(len(message.data) for message in self._begun(lower))
            for lower in range(LOWEST_PRIORITY, level)
        )

    def _make_room(self, too_much: int, level: int) -> Iterator[Dropped]:
        for lower in range(LOWEST_PRIORITY, level):
            queue = self._queues[lower]
            while too_much > 0 and queue and not queue[-1].begun:
                message = queue.pop()
                self._bytes[lower] -= len(message.data)
                too_much -= len(message.data)
                yield Dropped(message.data, lower, f"made room for a message of level {level}")

    def _begun(self, level: int) -> Iterator[Waiting]:
        for message in self._queues[level]:
            if not message.begun:
                return
            yield message
