"""The cost of the schedulers alone. They are pure, so that the calls to one on a link can be replayed without the link.

First each one serves a model of a link, and every call is recorded. Then a new one gets the same calls without pauses;
the time of the loop around them is subtracted.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.support.delivery.contestant import ROUTINE, ROUTINE_LEVEL, URGENT, URGENT_LEVEL
from benchmarks.support.delivery.traffic import Due
from nodes.delivery import METHODS
from nodes.protocol.wire import Kind, Message, encode

PACKET_PAYLOAD = 1444  # a WebSocket message that fills one packet at MTU 1500
PACKET, AROUND = 1448, 66
ROUNDS = 5
Call = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time of one scheduler, in microseconds."""

    method: str
    per_message: float
    per_chunk: float
    chunks: int  # in all
    calls: int


class ModelLink:
    """Packets pass one after the other; acknowledgements come at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0
        self._under_way: deque[tuple[float, int]] = deque()  # when through, bytes
        self.through: list[float] = []  # when each chunk was

    def take(self, size: int, now: float) -> None:
        """Accept a chunk."""
        left = size + 4  # the WebSocket header
        while left > 0:
            part = min(left, PACKET)
            self._free_at = max(self._free_at, now) + (part + AROUND) / self._rate
            self._under_way.append((self._free_at, part))
            left -= part
        self.through.append(self._free_at)

    def unsent(self, now: float) -> int:
        """Bytes not acknowledged."""
        while self._under_way and self._under_way[0][0] <= now:
            self._under_way.popleft()
        return sum(size for _, size in self._under_way)


def cost(
    method: str, parameters: Mapping[str, Any], timeline: Sequence[Due], rate: float, title: str
) -> Cost:
    """The cost of the method that sends these messages over a link of this many bytes a second."""
    calls, chunks = recorded(method, parameters, timeline, rate)
    best_ns = min(_replayed(method, parameters, calls) for _ in range(ROUNDS))
    per_message = best_ns / 1000 / len(timeline)
    return Cost(title, per_message, best_ns / 1000 / chunks, chunks, len(calls))


def recorded(
    method: str, parameters: Mapping[str, Any], timeline: Sequence[Due], rate: float
) -> tuple[list[Call], int]:
    """Record all calls that the scheduler gets until everything was sent; return them with the number of chunks."""
    scheduler: Any = METHODS[method].scheduler(parameters)
    udp_acks = METHODS[method].needs(parameters).udp_acks
    line = ModelLink(rate)
    calls: list[Call] = []

    def call(name: str, *arguments: Any) -> Any:
        calls.append((name, arguments))
        return getattr(scheduler, name)(*arguments)

    now, answered, chunks = 0.0, 0, 0
    offers = deque((due.at_ns / 1e9, *_encoded(due)) for due in timeline)
    call("on_link_up", PACKET_PAYLOAD, now)
    while offers or scheduler.queued.messages:
        while offers and offers[0][0] <= now:
            _, data, priority = offers.popleft()
            call("offer", data, priority, now)
        while udp_acks and answered < chunks and line.through[answered] <= now:
            call("on_ack", answered % 256, now)
            answered += 1
        if (chunk := call("next_chunk", now)) is not None:
            line.take(len(chunk.data), now)
            chunks += 1
        else:  # as a link waits: for work, or for the scheduler's deadline
            times = [call("next_deadline"), offers[0][0] if offers else None]
            times += [line.through[answered]] if udp_acks and answered < chunks else []
            now = max(now, min(at for at in times if at is not None))
        call("on_progress", line.unsent(now), now, 0.0)
    return calls, chunks


def _encoded(due: Due) -> tuple[bytes, int]:
    priority = URGENT_LEVEL if due.urgent else ROUTINE_LEVEL
    topic = URGENT if due.urgent else ROUTINE
    return encode(Message(Kind.PUBLISH, priority, topic=topic, payload=bytes(due.size))), priority


def _replayed(method: str, parameters: Mapping[str, Any], calls: Sequence[Call]) -> int:
    scheduler = METHODS[method].scheduler(parameters)

    def nothing(*_: Any) -> None:
        pass

    whole = _timed([(getattr(scheduler, name), arguments) for name, arguments in calls])
    return whole - _timed([(nothing, arguments) for _, arguments in calls])


def _timed(calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> int:
    began = time.process_time_ns()
    for call, arguments in calls:
        call(*arguments)
    return time.process_time_ns() - began
