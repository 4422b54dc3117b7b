"""A link for tests, exact to the byte: rate, delay in each direction, packets, acknowledgements; a seed decides chance.

The kernel accepts everything at once and sends packets of at most `mss` bytes, one after the other. Each packet and all
before it are acknowledged when its last byte has arrived. With jitter each packet and each acknowledgement takes its
own time, but none overtakes another. A lost packet comes `again_s` later, and so does the acknowledgement of all
packets behind it. The next acknowledgement makes up for a lost one.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from nodes.delivery.base import Scheduler
from nodes.protocol.wire import HIGHEST_PRIORITY

HEADERS = 66
FRAME = 4


@dataclass
class SimulatedLink:
    """A link that records what was handed over, and when it was through."""

    rate: float  # bytes a second, headers included
    there_s: float = 0.0
    back_s: float = 0.0
    mss: int = 1448
    bucket: float = 0.0  # bytes that pass at once after a pause
    slower: tuple[float, float] | None = None  # from this time on: this rate
    cut: tuple[float, float] | None = None  # nothing passes from, until
    every_second: float | None = None  # acknowledge each second packet, or after so many seconds
    jitter_s: float = 0.0  # either delay varies uniformly by +- so much
    loss: float = 0.0  # the share of packets, and of acknowledgements, that are lost
    again_s: float = 0.0
    seed: int = 1
    handed: int = 0
    _free_at: float = 0.0
    _ends: list[int] = field(default_factory=list)  # stream positions of packets ...
    _through: list[float] = field(default_factory=list)  # ... when they were through
    _arrived: list[float] = field(default_factory=list)  # ... and at the other side, in order
    _acks: list[float] = field(default_factory=list)
    _last_ack: float = 0.0  # when the last one came that was not lost
    _trips: list[float] = field(default_factory=list)  # the shortest round trip, with each packet
    _tokens: float = 0.0
    _tokens_at: float = 0.0

    def __post_init__(self) -> None:
        self._tokens = self.bucket
        self._random = Random(self.seed)
        self._handshake = self._vary(self.there_s) + self._vary(self.back_s) + 0.0005

    def _vary(self, delay_s: float) -> float:
        return max(0.0, delay_s + self._random.uniform(-self.jitter_s, self.jitter_s))

    def _is_lost(self) -> bool:
        return self._random.random() < self.loss

    def hand(self, size: int, now: float) -> None:
        size += FRAME
        while size > 0:
            part = min(size, self.mss)
            size -= part
            self.handed += part
            self._ends.append(self.handed)
            self._through.append(self._pass(part + HEADERS, now))
            self._arrive()
            self._acknowledge(now)

    def _arrive(self) -> None:
        late = self.again_s if self._is_lost() else 0.0
        arrived = self._through[-1] + self._vary(self.there_s) + late
        self._arrived.append(max(arrived, self._arrived[-1] if self._arrived else 0.0))

    def _acknowledge(self, now: float) -> None:
        ack = max(self._arrived[-1] + self._vary(self.back_s), self._last_ack)
        trip = min(ack - now, self._trips[-1] if self._trips else self._handshake)
        self._trips.append(trip)
        if self._is_lost():
            self._acks.append(ack + self.again_s)
        else:
            self._acks.append(ack)
            self._last_ack = ack
            for earlier in reversed(range(len(self._acks) - 1)):
                if self._acks[earlier] <= ack:
                    break
                self._acks[earlier] = ack
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

    def acknowledged(self, now: float) -> int:
        packets = bisect_right(self._acks, now)
        return self._ends[packets - 1] if packets else 0

    def unsent(self, now: float) -> int:
        return self.handed - self.acknowledged(now)

    def shortest_round_trip(self, now: float) -> float:
        """The shortest round trip that TCP has measured: in the handshake, and with every acknowledged packet."""
        acknowledged = bisect_right(self._acks, now)
        return self._trips[acknowledged - 1] if acknowledged else self._handshake

    def arrival(self, position: int) -> float:
        """When all bytes up to this one were at the other end."""
        return self._arrived[bisect_right(self._ends, position - 1)]

    def in_front(self, now: float) -> float:
        """Seconds until everything that was handed over is through."""
        return max(0.0, self._free_at - now)

    def passed(self, until: float) -> int:
        through = bisect_right(self._through, until)
        return self._ends[through - 1] if through else 0


@dataclass
class Run:
    """What `drive` recorded."""

    link: SimulatedLink
    waits: list[
        tuple[float, float]
    ]  # when a chunk was handed over, seconds in front of the next then
    looks: int
    chunks: list[tuple[float, int]]

    def utilisation(self, begin: float, end: float) -> float:
        """The share of the payload that full packets could have carried."""
        carried = self.link.passed(end) - self.link.passed(begin)
        full = self.link.mss / (self.link.mss + HEADERS)
        return carried / ((end - begin) * self.link.rate * full)

    def longest_wait(self, begin: float) -> float:
        return max(wait for at, wait in self.waits if at >= begin)


def drive(
    scheduler: Scheduler,
    link: SimulatedLink,
    until: float,
    packet_payload: int = 1444,
    offers: list[tuple[float, bytes, int]] | None = None,
    given_out: Callable[[int], None] | None = None,
) -> Run:
    """Drive the scheduler as the shell does: offer, give out, wake at deadlines. `given_out` gets a first byte."""
    run = Run(link, [], 0, [])
    coming = sorted(offers or [], key=lambda offer: offer[0], reverse=True)
    now = 0.0
    scheduler.on_link_up(packet_payload, now)
    while now < until:
        while coming and coming[-1][0] <= now:
            _, data, level = coming.pop()
            assert scheduler.offer(data, level, now) == ()
        if (chunk := scheduler.next_chunk(now)) is not None:
            link.hand(len(chunk.data), now)
            run.waits.append((now, link.in_front(now)))
            run.chunks.append((now, len(chunk.data)))
            if given_out is not None:
                given_out(chunk.data[0])
        else:
            times = [scheduler.next_deadline(), coming[-1][0] if coming else None, until]
            later = min(time for time in times if time is not None)
            assert later > now - 1e-9, "the scheduler wakes up without end"
            now = max(later, now + 1e-6)
            run.looks += 1
        scheduler.on_progress(link.unsent(now), now, link.shortest_round_trip(now))
    return run


def burst(
    scheduler: Scheduler,
    link: SimulatedLink,
    sizes: list[int],
    at: float = 0.0,
    before: list[tuple[float, bytes, int]] | None = None,
) -> list[float]:
    """How long each of several emergencies takes if all are offered at once, each small enough for one chunk.

    `before` must have left by then, or the result would count it as one of them.
    """
    offers = [*(before or []), *((at, bytes(size), HIGHEST_PRIORITY) for size in sizes)]
    most_s = sum(len(data) + 2 * HEADERS for _, data, _ in offers) / link.rate
    until = at + 2 * most_s + 10 * (link.there_s + link.back_s + link.jitter_s + link.again_s) + 1.0
    run = drive(scheduler, link, until, offers=offers)
    assert scheduler.queued.messages == 0
    ends, position = [], 0
    for handed_at, size in run.chunks:
        position += size + FRAME
        if handed_at >= at:
            ends.append(position)
    return [link.arrival(end) - at for end in ends[-len(sizes) :]]
