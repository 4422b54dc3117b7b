"""First in, first out: whole messages in the order of their arrival, whatever their priority.

The queue holds at most `limit_bytes` of publications. A message that does not fit is refused and nothing else changes:
what waits already is older, and first come is first served.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodes.delivery.base import CONTROL_BYTES, Queued
from nodes.parameters import ParameterError, check_known
from nodes.wire import MAX_MESSAGE_BYTES

LIMIT_BYTES = MAX_MESSAGE_BYTES  # the largest message fits, if nothing else waits


class _Waiting(NamedTuple):
    data: bytes
    control: bool


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

    def offer(self, data: bytes, priority: int, now: float, *, control: bool = False) -> str | None:
        taken, limit = self._bytes[control], self._limits[control]
        if taken + len(data) > limit:
            return f"{len(data)} bytes do not fit: {taken} of {limit} are taken"
        self._waiting.append(_Waiting(data, control))
        self._bytes[control] += len(data)
        return None

    def next_chunk(self, now: float) -> bytes | None:
        if self._in_hand is None and self._waiting:
            self._in_hand = self._waiting.popleft()
        return None if self._in_hand is None else self._in_hand.data

    def on_progress(self, unsent_bytes: int, now: float) -> None:
        if self._in_hand is not None:
            self._bytes[self._in_hand.control] -= len(self._in_hand.data)
            self._in_hand = None

    def on_link_lost(self, now: float) -> None:
        if self._in_hand is not None:
            self._waiting.appendleft(self._in_hand)
            self._in_hand = None
        self._waiting = deque(waiting for waiting in self._waiting if not waiting.control)
        self._bytes[True] = 0

    def next_deadline(self) -> float | None:
        return None


class Whole:
    """Each chunk is a message."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        _limit(parameters)

    def on_chunk(self, chunk: bytes) -> list[bytes]:
        return [chunk]


def _limit(parameters: Mapping[str, Any]) -> int:
    check_known("fifo", parameters, ("limit_bytes",))
    limit = parameters.get("limit_bytes", LIMIT_BYTES)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ParameterError(
            "limit_bytes", f"fifo's limit_bytes is {limit!r}; it takes a whole number, 1 or more"
        )
    return limit
