"""First in, first out: whole messages in the order of their arrival, whatever their priority.

The queue holds at most `limit_bytes` of publications. A message that does not fit is refused and nothing else changes:
what waits already is older, and first come is first served.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nodes.delivery.base import CONTROL_BYTES, Chunk, Dropped, Needs, Queued
from nodes.delivery.queues import limit_bytes, queue_full
from nodes.parameters import check_known


class _Waiting(NamedTuple):
    data: bytes
    control: bool  # or upkeep


class Fifo:
    """The queue."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._limits = {False: _limit(parameters), True: CONTROL_BYTES}  # control or not: bytes
        self._bytes = {False: 0, True: 0}
        self._waiting: deque[_Waiting] = deque()
        self._in_hand: _Waiting | None = None

    @property
    def queued(self) -> Queued:
        messages = len(self._waiting) + (self._in_hand is not None)
        return Queued(messages, sum(self._bytes.values()))

    def offer(
        self,
        data: bytes,
        priority: int,
        now: float,
        *,
        control: bool = False,
        upkeep: bool = False,
    ) -> tuple[Dropped, ...]:
        control = control or upkeep
        used, limit = self._bytes[control], self._limits[control]
        if used + len(data) > limit:
            return (Dropped(data, priority, queue_full(len(data), used, limit)),)
        self._waiting.append(_Waiting(data, control))
        self._bytes[control] += len(data)
        return ()

    def on_link_up(self, packet_payload: int, now: float) -> None:
        pass

    def next_chunk(self, now: float) -> Chunk | None:
        if self._in_hand is None and self._waiting:
            self._in_hand = self._waiting.popleft()
        return None if self._in_hand is None else Chunk(self._in_hand.data)

    def on_progress(self, unsent_bytes: int, now: float, round_trip_s: float | None = None) -> None:
        if self._in_hand is not None:
            self._bytes[self._in_hand.control] -= len(self._in_hand.data)
            self._in_hand = None

    def on_ack(self, number: int, now: float) -> None:
        pass

    def on_link_lost(self, now: float, *, orderly: bool = False) -> None:
        if self._in_hand is not None:
            self._waiting.appendleft(self._in_hand)
            self._in_hand = None
        if orderly:
            return
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.control)
        self._bytes[True] = 0

    def withdraw(self, unwanted: Callable[[bytes], bool]) -> None:
        self._waiting = deque(waiting for waiting in self._waiting if not unwanted(waiting.data))
        self._bytes[False] = sum(len(waiting.data) for waiting in self._waiting)

    def next_deadline(self) -> float | None:
        return None


class Whole:
    """Each chunk is a message."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        _limit(parameters)

    def on_chunk(self, chunk: Chunk) -> list[bytes]:
        return [chunk.data]


def needs(parameters: Mapping[str, Any]) -> Needs:
    """Nothing: an ordinary WebSocket connection."""
    _limit(parameters)
    return Needs()


def _limit(parameters: Mapping[str, Any]) -> int:
    check_known("fifo", parameters, ("limit_bytes",))
    return limit_bytes("fifo", parameters)
