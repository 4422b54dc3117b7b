"""First in, first out: whole messages in the order of their arrival, whatever their priority.

The queue holds at most `limit_bytes`. A message that does not fit is refused and nothing else changes: what waits
already is older, and first come is first served.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

from nodes.delivery.base import Queued
from nodes.parameters import check_known
from nodes.wire import MAX_MESSAGE_BYTES

LIMIT_BYTES = MAX_MESSAGE_BYTES  # the largest message fits, if nothing else waits


class Fifo:
    """The queue."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._limit = _limit(parameters)
        self._waiting: deque[bytes] = deque()
        self._in_hand: bytes | None = None
        self._bytes = 0

    @property
    def queued(self) -> Queued:
        return Queued(len(self._waiting) + (self._in_hand is not None), self._bytes)

    def offer(self, data: bytes, priority: int, now: float) -> str | None:
        if self._bytes + len(data) > self._limit:
            return f"{len(data)} bytes do not fit: {self._bytes} of {self._limit} are taken"
        self._waiting.append(data)
        self._bytes += len(data)
        return None

    def next_chunk(self, now: float) -> bytes | None:
        if self._in_hand is None and self._waiting:
            self._in_hand = self._waiting.popleft()
        return self._in_hand

    def on_progress(self, unsent_bytes: int, now: float) -> None:
        if self._in_hand is not None:
            self._bytes -= len(self._in_hand)
            self._in_hand = None

    def on_link_lost(self, now: float) -> None:
        if self._in_hand is not None:
            self._waiting.appendleft(self._in_hand)
            self._in_hand = None

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
        raise ValueError(f"fifo's limit_bytes is {limit!r}; it takes a whole number, 1 or more")
    return limit
