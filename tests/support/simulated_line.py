"""A line for tests, exact to the byte: rate, delay either way, packets, acknowledgements; no clock, no chance.

The kernel takes everything at once and sends packets of at most `mss` bytes, one after the other. Each packet is
acknowledged when its last byte has arrived.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from nodes.delivery.base import Scheduler

HEADERS = 66
FRAME = 4


@dataclass
class SimulatedLine:
    """What was handed over, and when it was through."""

    rate: float  # bytes a second, headers included
    there_s: float = 0.0
    back_s: float = 0.0
    mss: int = 1448
    bucket: float = 0.0  # bytes that pass at once after a pause
    slower: tuple[float, float] | None = None  # from this time on: this rate
    cut: tuple[float, float] | None = None  # nothing passes from, until
    every_second: float | None = None  # acknowledge each second packet, or after so many seconds
    handed: int = 0
    _free_at: float = 0.0
    _ends: list[int] = field(default_factory=list)  # stream positions of packets ...
    _through: list[float] = field(default_factory=list)  # ... when they were through
    _acks: list[float] = field(default_factory=list)
    _tokens: float = 0.0
    _tokens_at: float = 0.0

    def __post_init__(self) -> None:
        self._tokens = self.bucket

    def hand(self, size: int, now: float) -> None:
        size += FRAME
        while size > 0:
            part = min(size, self.mss)
            size -= part
            self.handed += part
            self._ends.append(self.handed)
            self._through.append(self._pass(part + HEADERS, now))
            self._acks.append(self._through[-1] + self.there_s + self.back_s)
            if self.every_second is not None:
                self._delay_ack()

    def _delay_ack(self) -> None:
        if len(self._acks) % 2 == 0:
            self._acks[-2] = min(self._acks[-2], self._acks[-1])
        else:
            self._acks[-1] += self.every_second or 0.0

    def _pass(self, size: int, now: float) -> float:
        begin = max(self._free_at, now)
        rate = self.rate
        if self.slower is not None and begin >= self.slower[0]:
            rate = self.slower[1]
        self._tokens = min(self.bucket, self._tokens + max(0.0, begin - self._tokens_at) * rate)
        free = min(self._tokens, size)
        self._tokens -= free
        self._free_at = self._tokens_at = begin + (size - free) / rate
        if self.cut is not None and begin < self.cut[1] and self._free_at > self.cut[0]:
            self._free_at = self._tokens_at = self.cut[1] + size / rate
        return self._free_at

    def unsent(self, now: float) -> int:
        acknowledged = bisect_right(self._acks, now)
        return self.handed - (self._ends[acknowledged - 1] if acknowledged else 0)

    def in_front(self, now: float) -> float:
        """Seconds until all that was handed over is through."""
        return max(0.0, self._free_at - now)

    def passed(self, until: float) -> int:
        through = bisect_right(self._through, until)
        return self._ends[through - 1] if through else 0


@dataclass
class Run:
    """What `drive` saw."""

    line: SimulatedLine
    waits: list[
        tuple[float, float]
    ]  # when a chunk was handed over, seconds in front of the next then
    looks: int
    chunks: list[tuple[float, int]]

    def utilisation(self, begin: float, end: float) -> float:
        """Of the payload that full packets could have carried."""
        carried = self.line.passed(end) - self.line.passed(begin)
        full = self.line.mss / (self.line.mss + HEADERS)
        return carried / ((end - begin) * self.line.rate * full)

    def longest_wait(self, begin: float) -> float:
        return max(wait for at, wait in self.waits if at >= begin)


def drive(
    scheduler: Scheduler,
    line: SimulatedLine,
    until: float,
    room: int = 1444,
    offers: list[tuple[float, bytes, int]] | None = None,
) -> Run:
    """As the shell does it: offer, give out, look when asked to."""
    run = Run(line, [], 0, [])
    coming = sorted(offers or [], key=lambda offer: offer[0], reverse=True)
    now, round_trip = 0.0, line.there_s + line.back_s + 0.0005
    scheduler.on_link_up(room, now)
    while now < until:
        while coming and coming[-1][0] <= now:
            _, data, level = coming.pop()
            assert scheduler.offer(data, level, now) == ()
        if (chunk := scheduler.next_chunk(now)) is not None:
            line.hand(len(chunk.data), now)
            run.waits.append((now, line.in_front(now)))
            run.chunks.append((now, len(chunk.data)))
        else:
            times = [scheduler.next_deadline(), coming[-1][0] if coming else None, until]
            later = min(time for time in times if time is not None)
            assert later > now - 1e-9, "it looks without end"
            now = max(later, now + 1e-6)
            run.looks += 1
        scheduler.on_progress(line.unsent(now), now, round_trip)
    return run
