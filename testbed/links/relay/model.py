"""One direction of a link, as arithmetic: when does a packet arrive, or why does it not. Pure.

A packet waits until the line is free, occupies it for size / rate (there is no stored credit: a lone small packet takes
its time too), then travels for the delay, varied by the jitter; packets never overtake each other. A lost packet
occupies the line like any other. The waiting room holds `queue_bytes` beside the packet on the line.
"""

import math
from collections import deque
from enum import StrEnum
from random import Random

from testbed.topology.model import Shape

SECOND = 10**9


class Drop(StrEnum):
    """Why a packet does not arrive."""

    QUEUE = "queue"
    LOSS = "loss"
    CUT = "cut"


class LinkModel:
    """State of one direction; times are nanoseconds of any steady clock."""

    def __init__(self, shape: Shape, queue_bytes: int, random: Random) -> None:
        self._random = random
        self._free_at = 0  # the line is busy until then
        self._on_line: deque[tuple[int, int]] = deque()  # accepted: (leaves the line at, size)
        self._backlog = 0  # bytes in _on_line
        self._last_arrival = 0
        self.reshape(shape, queue_bytes)

    def reshape(self, shape: Shape, queue_bytes: int) -> None:
        """From now on, packets see this shape; those accepted before keep their time."""
        self._rate = shape.rate_bps
        self._delay = shape.delay_s * SECOND
        self._jitter = shape.jitter_s * SECOND
        self._loss = shape.loss
        self._queue_bytes = queue_bytes

    def clear(self) -> None:
        """Nothing waits, nothing is under way: the line was cut."""
        self._free_at = self._last_arrival = self._backlog = 0
        self._on_line.clear()

    def reseed(self, random: Random) -> None:
        """Loss and jitter follow this randomness from now on."""
        self._random = random

    def on_packet(self, size: int, now: int) -> int | Drop:
        """A frame of `size` bytes comes: when it arrives at the other end, or why it does not."""
        through = now
        if self._rate is not None:
            self._clear_line(now)
            if self._on_line and self._waiting() + size > self._queue_bytes:
                return Drop.QUEUE
            through = max(now, self._free_at) + math.ceil(size * 8 * SECOND / self._rate)
            self._free_at = through
            self._on_line.append((through, size))
            self._backlog += size
        if self._loss and self._random.random() < self._loss:
            return Drop.LOSS
        self._last_arrival = max(self._last_arrival, through + self._travel())
        return self._last_arrival

    def _clear_line(self, now: int) -> None:
        while self._on_line and self._on_line[0][0] <= now:
            self._backlog -= self._on_line.popleft()[1]

    def _waiting(self) -> int:
        """Bytes behind the packet that is on the line."""
        return self._backlog - self._on_line[0][1]

    def _travel(self) -> int:
        if not self._jitter:
            return round(self._delay)
        return max(0, round(self._delay + self._random.uniform(-self._jitter, self._jitter)))
