"""One direction of a link, as arithmetic: when does a packet arrive, or why does it not. Pure.

A packet waits until the link is free, occupies it for size / rate (there is no stored credit: a lone small packet takes
its time too), then travels for the delay, varied by the jitter; packets never overtake each other. A lost packet
occupies the link like any other. The queue holds `queue_bytes` beside the packet on the link.
"""

import math
from collections import deque
from enum import StrEnum
from random import Random

from testbed.topology.model import Emulator, Shape

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
        self._free_at = 0  # the link is busy until then
        self._on_link: deque[tuple[int, int]] = deque()  # accepted: (leaves the link at, size)
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
        """Drop what waits and what is in flight: the link was cut."""
        self._free_at = self._last_arrival = self._backlog = 0
        self._on_link.clear()

    def reseed(self, random: Random) -> None:
        """Loss and jitter follow this randomness from now on."""
        self._random = random

    def on_packet(self, size: int, now: int) -> int | Drop:
        """A frame of `size` bytes comes: when it arrives at the other end, or why it does not."""
        through = now
        if self._rate is not None:
            self._clear_link(now)
            if self._on_link and self._waiting() + size > self._queue_bytes:
                return Drop.QUEUE
            through = max(now, self._free_at) + math.ceil(size * 8 * SECOND / self._rate)
            self._free_at = through
            self._on_link.append((through, size))
            self._backlog += size
        if self._loss and self._random.random() < self._loss:
            return Drop.LOSS
        self._last_arrival = max(self._last_arrival, through + self._travel())
        return self._last_arrival

    def _clear_link(self, now: int) -> None:
        while self._on_link and self._on_link[0][0] <= now:
            self._backlog -= self._on_link.popleft()[1]

    def _waiting(self) -> int:
        """Bytes queued behind the packet that the link transmits now."""
        return self._backlog - self._on_link[0][1]

    def _travel(self) -> int:
        if not self._jitter:
            return round(self._delay)
        return max(0, round(self._delay + self._random.uniform(-self._jitter, self._jitter)))


# Sizes: the queue in front of a link, and the burst of a token bucket.


ETHERNET_HEADER = 14
SMALLEST_BURST = 1600  # bytes; below a full frame (1,514) tbf drops every full-size packet
BURST_S = (
    0.0005  # on fast links the timer needs some slack; the credit stays below half a millisecond
)
SMALLEST_QUEUE = 16  # packets
QUEUE_S = 1.0


def queue_bytes(shape: Shape, mtu: int) -> int:
    """The queue in front of a link: as asked, else the bytes of one second, at least 16 packets."""
    if shape.queue_bytes is not None:
        return shape.queue_bytes
    smallest = SMALLEST_QUEUE * (mtu + ETHERNET_HEADER)
    if shape.rate_bps is None:
        return smallest
    return max(smallest, math.ceil(shape.rate_bps / 8 * QUEUE_S))


def queue_limit(emulator: str, shape: Shape, mtu: int) -> int | None:
    """The bytes that may wait in front of the link, as the emulator has them; None: nothing ever waits there.

    A link that none of our emulators serves, such as a board's own, has what was asked for.
    """
    if shape.rate_bps is None:
        return None
    if emulator not in set(Emulator):
        return shape.queue_bytes
    limit = queue_bytes(shape, mtu)
    if emulator == Emulator.TBF:
        return max(limit, tbf_burst(shape.rate_bps, mtu, shape.burst_bytes))
    return limit


def tbf_burst(rate_bps: float, mtu: int, asked: int | None = None) -> int:
    """Stored credit of a token bucket: as asked, but at least one full frame, which is also what it is unasked.

    More would let more of rare small packets pass for free.
    """
    if asked is not None:
        return max(asked, mtu + ETHERNET_HEADER)
    return max(SMALLEST_BURST, mtu + ETHERNET_HEADER, math.ceil(rate_bps / 8 * BURST_S))


# Randomness: one source per direction of a link, so that a seed gives the same losses whatever the other links do.


def direction_random(seed: int | None, link: str, direction: str) -> Random:
    """Loss and jitter of one direction; without a seed they differ each time."""
    return Random() if seed is None else Random(f"{seed}/{link}/{direction}")
