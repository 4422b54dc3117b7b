"""TCP's sending side, in virtual time: segments, acknowledgements, what is lost is sent again.

Modelled, as Linux does it: segments of at most one packet, sent at once (TCP_NODELAY) while the window allows; what was
written in small pieces and still waits leaves in full packets; selective acknowledgements; a packet counts as lost when
three that were sent later have arrived, or one, and a quarter of the shortest round trip has passed (RACK, RFC 8985); a
probe when the last packets are not acknowledged (TLP, same RFC); the retransmission timer (RFC 6298, at least 200 ms),
which is taken back if time stamps show that packets were only late.
Not modelled: pacing, a receiver that is too slow (its window is never full), ECN.
"""

from collections import deque
from collections.abc import Callable

from nodes.runtime.connection import VANISHED_AFTER_S
from testbed.backends.simulated.loop import SECOND, Loop, Timer
from testbed.backends.simulated.packets import NOTHING_YET, Ack, Flow, Kind, Packet
from testbed.backends.simulated.round_trips import RoundTrips
from testbed.backends.simulated.window import FIRST_PACKETS, Window

VANISHED_AFTER = VANISHED_AFTER_S * SECOND
ENOUGH = 3  # later packets that have arrived: the one before them is lost
# What the kernel takes: its buffer is for twice the window; it allows 4.3 kB for a packet, and counts about 2.5 kB.
BUFFER_WINDOWS = 3.4


class Segment:
    """Bytes that are under way."""

    __slots__ = (
        "again",
        "delivered",
        "delivered_at",
        "length",
        "limited",
        "lost",
        "order",
        "sacked",
        "sent_at",
        "start",
    )

    def __init__(self, start: int, length: int) -> None:
        self.start = start
        self.length = length
        self.sent_at = 0
        self.order = 0  # of sending
        self.delivered = 0  # of all bytes, when it was sent
        self.delivered_at = 0
        self.limited = False
        self.sacked = False
        self.lost = False  # and not sent again yet
        self.again = False


class Sender:
    """The bytes from this side to the other."""

    def __init__(self, loop: Loop, flow: Flow, segment: int) -> None:
        self.written = 0
        self.round_trips = RoundTrips()
        self.on_room: Callable[[], None] = _ignore
        self.on_vanished: Callable[[], None] = _ignore
        self.received: Callable[[], Ack] = lambda: NOTHING_YET  # acknowledged by what is sent
        self._loop = loop
        self._flow = flow
        self._segment = segment
        self._window = Window(segment)
        self._next = 0
        self._acknowledged = 0
        self._segments: deque[Segment] = deque()
        self._at: dict[int, Segment] = {}
        self._lost: deque[Segment] = deque()
        self._in_flight = 0
        self._sacked = 0  # segments
        self._orders = 0
        self._newest_arrived = 0  # the highest order of those that have arrived
        self._delivered, self._delivered_at = 0, 0
        self._backoff = 1
        self._progress_at = 0
        self._heard_at = 0  # or since when there is something to hear of
        self._probed = False
        self._timed_out_at: int | None = None
        self._judge_at: int | None = None  # then those sent before an arrived one are lost
        self._timer = Timer(loop, self._on_timer)

    @property
    def unacknowledged(self) -> int:
        """What the kernel would call unsent (SIOCOUTQ)."""
        return self.written - self._acknowledged

    @property
    def has_room(self) -> bool:
        """Whether the kernel takes more."""
        window = max(self._window.packets, FIRST_PACKETS)
        return self.unacknowledged < BUFFER_WINDOWS * window * self._segment

    def write(self, size: int, item: object) -> None:
        """So many bytes more; when all have come, the other side gets the item."""
        self.written += size
        self._flow.items.append((self.written, item))
        self._push()

    def stop(self) -> None:
        """The connection has ended."""
        self._timer.set(None)
        self._segments.clear()
        self._lost.clear()

    def on_ack(self, ack: int, sack: int, echo: int) -> None:
        """The other side has all bytes up to `ack`, and the segment that begins at `sack`.

        `echo` is when the packet was sent that it acknowledges.
        """
        newest, arrived = None, 0
        if ack > self._acknowledged and self._timed_out_at is not None:
            if 0 <= echo < self._timed_out_at:
                self._undo()
            self._timed_out_at = None
        while self._segments and self._segments[0].start + self._segments[0].length <= ack:
            segment = self._segments.popleft()
            del self._at[segment.start]
            if segment.sacked:
                self._sacked -= 1
            else:
                arrived += self._arrived(segment)
                newest = segment
        apart = self._at.get(sack)
        if apart is not None and not apart.sacked:
            apart.sacked = True
            self._sacked += 1
            arrived += self._arrived(apart)
            newest = apart
        if ack > self._acknowledged or newest is not None:
            self._acknowledged = max(ack, self._acknowledged)
            self._progress_at = self._heard_at = self._loop.now
            self._backoff, self._probed = 1, False
        if newest is not None:
            self._learn(newest, arrived, echo)
        self._judge()
        self._push()
        if self.has_room:
            self.on_room()

    def _arrived(self, segment: Segment) -> int:
        if not segment.lost:
            self._in_flight -= 1
        segment.lost = False
        self._delivered += segment.length
        self._newest_arrived = max(self._newest_arrived, segment.order)
        return 1

    def _learn(self, newest: Segment, packets: int, echo: int) -> None:
        now = self._loop.now
        self._delivered_at = now
        if not newest.again:
            self.round_trips.on_sample(now - newest.sent_at)
        elif echo >= 0 and not newest.sacked:
            self.round_trips.on_sample(now - echo)
        shortest = self.round_trips.shortest or 0
        took = max(now - newest.delivered_at, shortest)
        self._window.on_delivered(
            packets, self._delivered, newest.delivered, took, shortest, newest.limited
        )

    def _judge(self) -> None:
        """Lines keep the order: what was sent before something that has arrived is lost."""
        segments = self._segments
        if not segments or (not self._sacked and segments[0].order > self._newest_arrived):
            self._judge_at = None
            return
        doubtful = [
            segment
            for segment in segments
            if segment.order < self._newest_arrived and not segment.sacked and not segment.lost
        ]
        if not doubtful:
            self._judge_at = None
            return
        now = self._loop.now
        if self._judge_at is None:
            self._judge_at = now + (self.round_trips.shortest or 0) // 4
        if self._sacked >= ENOUGH or now >= self._judge_at:
            self._judge_at = None
            for segment in doubtful:
                self._lose(segment)

    def _lose(self, segment: Segment) -> None:
        segment.lost = True
        self._in_flight -= 1
        self._lost.append(segment)

    def _push(self) -> None:
        """Send what the window allows."""
        while self._in_flight < self._window.packets:
            if self._lost:
                segment = self._lost.popleft()
                if not segment.lost:
                    continue  # it came after all
                segment.lost, segment.again = False, True
            elif self._next < self.written:
                segment = self._fresh()
            else:
                break
            self._send(segment)
            self._in_flight += 1
        self._set_timer()

    def _fresh(self) -> Segment:
        segment = Segment(self._next, min(self._segment, self.written - self._next))
        self._next += segment.length
        self._segments.append(segment)
        self._at[segment.start] = segment
        return segment

    def _send(self, segment: Segment) -> None:
        now = self._loop.now
        if len(self._segments) == 1 and not segment.again:  # there was nothing to hear of before
            self._delivered_at = self._progress_at = self._heard_at = now
        self._orders += 1
        segment.order, segment.sent_at = self._orders, now
        segment.delivered, segment.delivered_at = self._delivered, self._delivered_at
        segment.limited = self._next == self.written
        self._flow.send(
            Packet(self._flow, Kind.DATA, segment.start, segment.length, self.received(), now)
        )

    def _set_timer(self) -> None:
        if not self._segments:
            self._timer.set(None)
        elif self._judge_at is not None:
            self._timer.set(self._judge_at)
        else:
            self._timer.set(self._progress_at + self._patience())

    def _patience(self) -> int:
        if self._may_probe():
            return self.round_trips.before_probe(alone=len(self._segments) == 1)
        return self.round_trips.timeout(self._backoff)

    def _may_probe(self) -> bool:
        """Once, and only while nothing tells of losses."""
        trouble = self._probed or self._lost or self._backoff > 1 or self._sacked
        return self.round_trips.known and not trouble

    def _on_timer(self) -> None:
        if self._judge_at is not None:
            self._judge()
            self._push()
            return
        if self._may_probe():
            self._probe()
        else:
            self._time_out()

    def _probe(self) -> None:
        """Something new if there is any, else the last packet again."""
        self._probed = True
        self._progress_at = self._loop.now
        if self._next < self.written:
            segment = self._fresh()
            self._in_flight += 1
        else:
            segment = self._segments[-1]
            segment.again = True
        self._send(segment)
        self._set_timer()

    def _time_out(self) -> None:
        if self._loop.now - self._heard_at > VANISHED_AFTER:
            self.on_vanished()
            return
        self._backoff *= 2
        self._progress_at = self._loop.now
        if self._timed_out_at is None:
            self._timed_out_at = self._loop.now
        self._window.on_timeout()
        for segment in self._segments:
            if not segment.sacked and not segment.lost:
                self._lose(segment)
        self._push()

    def _undo(self) -> None:
        """The packets had only been late: those that were not sent again yet need not be (RFC 4015)."""
        for segment in self._lost:
            self._in_flight += segment.lost
            segment.lost = False
        self._lost.clear()
        self._window.on_undo()


def _ignore() -> None:
    """Nobody waits for it."""
