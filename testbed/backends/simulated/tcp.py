"""TCP in virtual time: one side of a connection from its opening to its end, with its sender and its receiver.

A stream ends with one byte more (really with an empty packet that counts like a byte): it is sent again until it is
acknowledged, as everything else. The program may be gone by then; its kernel does that.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from nodes.runtime.connection import PROBE_AFTER_S, PROBE_EVERY_S, VANISHED_AFTER_S
from nodes.runtime.tcp_info import segment_payload
from testbed.backends.simulated.congestion import (
    FIRST_PACKETS,
    Delivery,
    FastRecovery,
    window_of,
)
from testbed.backends.simulated.link_layer import (
    IP_BYTES,
    NOTHING_YET,
    TCP_BYTES,
    Ack,
    Flow,
    Kind,
    Packet,
)
from testbed.backends.simulated.loop import SECOND, Loop, Timer
from testbed.topology.model import CongestionControl

# Retransmission timeout, from the round trips. Pure; nanoseconds.


LEAST_RTO, LONGEST_RTO, FIRST_RTO = SECOND // 5, 120 * SECOND, SECOND
TICK = SECOND // 250  # of the kernel


class RoundTrips:
    """Round-trip times: the shortest, and the smoothed one with its variation (RFC 6298)."""

    def __init__(self) -> None:
        self.shortest: int | None = None
        self._smooth = 0
        self._vary = 0

    @property
    def known(self) -> bool:
        return self.shortest is not None

    def on_sample(self, took: int) -> None:
        """Take a round-trip sample."""
        if self.shortest is None:
            self.shortest, self._smooth, self._vary = took, took, took // 2
            return
        self.shortest = min(self.shortest, took)
        self._vary += (abs(self._smooth - took) - self._vary) // 4
        self._smooth += (took - self._smooth) // 8

    def timeout(self, backoff: int) -> int:
        """After so long without an acknowledgement, all that is in flight counts as lost."""
        if not self.known:
            return FIRST_RTO * backoff
        return min((self._smooth + max(4 * self._vary, LEAST_RTO)) * backoff, LONGEST_RTO)

    def before_probe(self, alone: bool) -> int:
        """When to probe (RFC 8985, 7.2); the acknowledgement of a packet that is alone may have been put off."""
        return min(self.timeout(1), 2 * self._smooth + (LEAST_RTO if alone else 2 * TICK))


# The sender: segments, acknowledgements, retransmissions.
#
# Modelled, as Linux does it: segments of at most one packet, sent at once (TCP_NODELAY) while the window allows; what
# was written in small pieces and still waits leaves in full packets; selective acknowledgements; a packet counts as
# lost when three that were sent later have arrived, or one, and a quarter of the shortest round trip has passed (RACK,
# RFC 8985); a probe when the last packets are not acknowledged (TLP, same RFC); the retransmission timer (RFC 6298, at
# least 200 ms), which is taken back if time stamps show that packets were only late.
# How many packets may be in flight is the window's part (`congestion`).
# Not modelled: pacing, a receiver that is too slow (its window is never full), ECN.


VANISHED_AFTER = VANISHED_AFTER_S * SECOND
ENOUGH = 3  # later packets that have arrived: the one before them is lost


class Segment:
    """Bytes in flight."""

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

    def __init__(self, loop: Loop, flow: Flow, segment: int, tcp: CongestionControl) -> None:
        self.written = 0
        self.round_trips = RoundTrips()
        self.on_writable: Callable[[], None] = _ignore
        self.on_vanished: Callable[[], None] = _ignore
        self.received: Callable[[], Ack] = lambda: NOTHING_YET  # acknowledged by what is sent
        self._loop = loop
        self._flow = flow
        self._segment = segment
        self._window = window_of(tcp, segment)
        self._fast_recovery: FastRecovery | None = None
        self._loss_until: int | None = None  # after a timeout: until all before this byte has come
        self._full = False  # the window was used, as Linux counts it (RFC 7661)
        self._most_out, self._most_out_until = 0, 0
        self._last_sent_at = 0
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
        self._received_at = 0  # or since when an acknowledgement is due
        self._probed = False
        self._timed_out_at: int | None = None
        self._judge_at: int | None = None  # then those sent before an arrived one are lost
        self._timer = Timer(loop, self._on_timer)

    @property
    def unacknowledged(self) -> int:
        """What the kernel would call unsent (SIOCOUTQ)."""
        return self.written - self._acknowledged

    @property
    def can_write(self) -> bool:
        """Whether the kernel takes more."""
        window = max(self._window.packets, FIRST_PACKETS)
        return self.unacknowledged < self._window.BUFFER_WINDOWS * window * self._segment

    def write(self, size: int, item: object) -> None:
        """Write so many bytes; when all have come, the other side gets the item."""
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
                arrived += self._arrived(segment, echo)
                newest = segment
        apart = self._at.get(sack)
        if apart is not None and not apart.sacked:
            apart.sacked = True
            self._sacked += 1
            arrived += self._arrived(apart, echo)
            newest = apart
        if ack > self._acknowledged or newest is not None:
            self._acknowledged = max(ack, self._acknowledged)
            self._progress_at = self._received_at = self._loop.now
            self._backoff, self._probed = 1, False
            self._end_recovery()
        if newest is not None:
            self._learn(newest, arrived, echo)
        self._judge()
        if self._fast_recovery is not None:
            self._fast_recovery.on_ack(arrived, self._in_flight)
        self._push()
        if self.can_write:
            self.on_writable()

    def _arrived(self, segment: Segment, echo: int) -> int:
        if not segment.lost:
            self._in_flight -= 1
        segment.lost = False
        self._delivered += segment.length
        # RFC 8985, 6.2, step 2: what arrived of a packet that was sent twice may be its first copy.
        first_copy = segment.again and 0 <= echo < segment.sent_at and self._window.follows_rack
        if not first_copy:
            self._newest_arrived = max(self._newest_arrived, segment.order)
        return 1

    def _learn(self, newest: Segment, packets: int, echo: int) -> None:
        now = self._loop.now
        self._delivered_at = now
        took: int | None = None
        if not newest.again:
            took = now - newest.sent_at
        elif echo >= 0 and not newest.sacked:
            took = now - echo
        if took is not None:
            self.round_trips.on_sample(took)
        if self._fast_recovery is not None:
            return
        shortest = self.round_trips.shortest or 0
        self._window.on_delivered(
            Delivery(
                packets,
                self._delivered,
                newest.delivered,
                max(now - newest.delivered_at, shortest),
                shortest,
                took,
                now,
                newest.limited,
                self._uses_window(),
            )
        )

    def _uses_window(self) -> bool:
        """Whether the window limits the sender, or will soon: at the beginning it doubles in a round trip."""
        begins = self._window.begins and self._window.packets < 2 * self._most_out
        return self._full or begins

    def _note_use(self) -> None:
        """Note how much of the window is used, for at least a round trip, as Linux does it."""
        full, out = not self._allows_more(), len(self._segments)
        more = out > self._most_out and not self._full
        if self._acknowledged >= self._most_out_until or full or more:
            self._full, self._most_out, self._most_out_until = full, out, self._next

    def _begin_recovery(self) -> None:
        """Reduce the window for losses, once for all that is in flight now (RFC 6582, 3.2; RFC 6675, 5)."""
        if not self._window.reacts_to_loss or self._recovers:
            return
        before = self._window.packets
        self._window.on_loss()
        self._fast_recovery = FastRecovery(before, self._window.packets, self._next)

    def _end_recovery(self) -> None:
        if self._fast_recovery is not None and self._acknowledged >= self._fast_recovery.ends_at:
            self._fast_recovery = None
        if self._loss_until is not None and self._acknowledged >= self._loss_until:
            self._loss_until = None

    @property
    def _recovers(self) -> bool:
        return self._fast_recovery is not None or self._loss_until is not None

    def _allows_more(self) -> bool:
        if self._fast_recovery is not None:
            return self._in_flight < self._fast_recovery.packets
        return self._window.allows(self._in_flight)

    def _judge(self) -> None:
        """Links keep the order: what was sent before something that has arrived is lost."""
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
            self._begin_recovery()

    def _lose(self, segment: Segment) -> None:
        segment.lost = True
        self._in_flight -= 1
        self._lost.append(segment)

    def _push(self) -> None:
        """Send what the window allows."""
        while self._allows_more():
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
        self._note_use()
        self._set_timer()

    def _fresh(self) -> Segment:
        segment = Segment(self._next, min(self._segment, self.written - self._next))
        self._next += segment.length
        self._segments.append(segment)
        self._at[segment.start] = segment
        return segment

    def _send(self, segment: Segment) -> None:
        now = self._loop.now
        if len(self._segments) == 1 and not segment.again:  # no acknowledgement was due before
            self._delivered_at = self._progress_at = self._received_at = now
            if self._orders:
                self._window.on_idle(now - self._last_sent_at, self.round_trips.timeout(1))
        self._last_sent_at = now
        if self._fast_recovery is not None:
            self._fast_recovery.on_sent()
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
            self._timer.set(self._timer_at())

    def _timer_at(self) -> int:
        """When the sender probes, or takes all for lost.

        The time to a probe begins again with each packet that leaves (RFC 8985, 7.2; not with BBR, see `Bbr`), but a
        probe is never later than the retransmission timer (7.3).
        """
        timeout_at = self._progress_at + self.round_trips.timeout(self._backoff)
        if not self._may_probe():
            return timeout_at
        before_probe = self.round_trips.before_probe(alone=len(self._segments) == 1)
        since = self._last_sent_at if self._window.follows_rack else 0
        return min(max(self._progress_at, since) + before_probe, timeout_at)

    def _may_probe(self) -> bool:
        """Once, and only while nothing indicates losses."""
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
        if self._loop.now - self._received_at > VANISHED_AFTER:
            self.on_vanished()
            return
        self._backoff *= 2
        self._progress_at = self._loop.now
        if self._timed_out_at is None:
            self._timed_out_at = self._loop.now
        self._window.on_timeout(recovering=self._recovers)
        self._fast_recovery, self._loss_until = None, self._next
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
        self._loss_until = None
        self._window.on_undo()


# The receiver: bytes in their order, and acknowledgements.
#
# Each packet is acknowledged at once where packets are missing, and at the beginning of a connection; else every second
# one, or after 40 ms, as Linux does it. Where the link's method wants it sooner, the program sets it when it reads.
# What is sent the other way acknowledges, too.


PUT_OFF = SECOND // 25
FIRST_AT_ONCE = 16  # packets


class Receiver:
    """The bytes from the other side to this one."""

    def __init__(self, loop: Loop, incoming: Flow, outgoing: Flow) -> None:
        self.put_off_ns = PUT_OFF  # how long an acknowledgement may wait
        self.on_item: Callable[[Any], None] = lambda item: None
        self.up_to = 0  # all before this has come
        self._loop = loop
        self._incoming = incoming
        self._outgoing = outgoing
        self._beyond: dict[int, int] = {}  # start -> length
        self._items_up_to = 0  # all before this was handed to the program
        self._came = 0
        self._pending_acks = 0  # packets not acknowledged
        self._echo = -1  # the time stamp of the first of them
        self._timer = Timer(loop, self._acknowledge)

    def on_data(self, packet: Packet) -> None:
        """A segment came."""
        self._came += 1
        self._pending_acks += 1
        in_order = packet.start == self.up_to
        if self._pending_acks == 1 and packet.start <= self.up_to:
            self._echo = packet.stamp
        whole_before = not self._beyond
        if in_order:
            self.up_to += packet.length
            while self.up_to in self._beyond:
                self.up_to += self._beyond.pop(self.up_to)
        elif packet.start > self.up_to:
            self._beyond[packet.start] = packet.length
        ordinary = in_order and whole_before
        if not ordinary or self._pending_acks > 1 or self._came <= FIRST_AT_ONCE:
            self._acknowledge(packet.start if packet.start > self.up_to else -1)
        else:
            self._timer.set(self._loop.now + self.put_off_ns)
        items = self._incoming.items
        while items and items[0][0] <= self.up_to:
            self._items_up_to, item = items.popleft()
            self.on_item(item)

    @property
    def in_a_frame(self) -> bool:
        """Whether a part of an item has come, and the rest has not."""
        return self.up_to > self._items_up_to or bool(self._beyond)

    def acknowledged(self) -> Ack:
        """The acknowledgement for a packet that leaves now, so that no other has to carry it."""
        self._pending_acks = 0
        self._timer.set(None)
        return Ack(self.up_to, -1, self._echo)

    def stop(self) -> None:
        """The connection has ended."""
        self._timer.set(None)

    def _acknowledge(self, sack: int = -1) -> None:
        self._pending_acks = 0
        self._timer.set(None)
        ack = Ack(self.up_to, sack, self._echo)
        self._outgoing.send(Packet(self._outgoing, Kind.ACK, ack=ack))


END = object()  # what a program gets when the other side's stream has ended


class Endpoint:
    """One end of a connection: the program's socket and the kernel's state of it."""

    def __init__(
        self,
        loop: Loop,
        outgoing: Flow,
        incoming: Flow,
        mtu: int,
        *,
        client: bool,
        tcp: CongestionControl,
    ) -> None:
        segment = mtu - IP_BYTES - TCP_BYTES
        self.sender = Sender(loop, outgoing, segment, tcp)
        self.receiver = Receiver(loop, incoming, outgoing)
        self.sender.received = self.receiver.acknowledged
        self.on_open: Callable[[], None] = _ignore
        self.on_vanished: Callable[[], None] = _ignore
        self.on_refused: Callable[[], None] = _ignore
        self.admits: Callable[[], bool] = lambda: True  # whether the port is open
        self.on_ack: Callable[[int], None] = lambda number: None
        self.sender.on_vanished = self._vanish
        self.packet_payload = segment_payload(segment, masked=client)
        self.client = client
        self._loop = loop
        self._outgoing = outgoing
        self._open, self._finished, self._gone = False, False, False
        self._opened_at = 0
        self._tries = 0
        self._received_at, self._lived_at = 0, 0
        self._timer = Timer(loop, self.connect)
        self._silence = Timer(loop, self._on_silence)
        incoming.deliver = self._receive

    def connect(self) -> None:
        """Begin to open the connection, again and again without an answer (RFC 6298: after 1 s, 2 s, 4 s, ...)."""
        self._send_opening(Kind.SYN)
        self._timer.set(self._loop.now + (SECOND << min(self._tries - 1, 6)))

    def write(self, size: int, item: Any) -> None:
        """Hand so many bytes to the kernel; the other side's program gets the item with the last of them."""
        self.sender.write(size, item)

    def answer(self, number: int) -> None:
        """Send an answer: one byte by UDP."""
        self._outgoing.send(Packet(self._outgoing, Kind.ANSWER, number, 1))

    @property
    def round_trip_s(self) -> float | None:
        """The shortest that TCP has seen."""
        shortest = self.sender.round_trips.shortest
        return None if shortest is None else shortest / SECOND

    @property
    def lived_s(self) -> float:
        """When the other side gave a sign of life: data, or that it has some of what is under way."""
        return self._lived_at / SECOND

    def finish(self) -> None:
        """The program is done with it: what it has written still goes out, and then the end of the stream."""
        if self._finished:
            return
        self._finished = True
        self.receiver.on_item = lambda item: None
        self.on_open = self.on_vanished = self.on_refused = _ignore
        self._timer.set(None)
        self._silence.set(None)
        if self._open:
            self._outgoing.ledger.note_protocol(self.sender.written, 1)
            self.write(1, END)
        else:
            self.stop()

    def stop(self) -> None:
        """The connection is gone: a peer that still sends gets a reset."""
        self._gone = True
        self._timer.set(None)
        self._silence.set(None)
        self.sender.stop()
        self.receiver.stop()

    def _send_opening(self, kind: Kind) -> None:
        self._tries += 1
        self._opened_at = self._loop.now
        self._outgoing.send(Packet(self._outgoing, kind))

    def _receive(self, packet: Packet) -> None:
        kind = packet.kind
        if self._gone:
            if kind is not Kind.RESET and kind is not Kind.ANSWER:
                self._outgoing.send(Packet(self._outgoing, Kind.RESET))
            return
        self._received_at = self._loop.now
        if kind is Kind.ANSWER:
            self.on_ack(packet.start)
        elif kind is Kind.SYN:
            self._send_opening(Kind.SYN_ACK if self.admits() else Kind.RESET)
        elif kind is Kind.RESET:
            self.stop()
            (self.on_vanished if self._open else self.on_refused)()
        elif kind is Kind.SYN_ACK:
            self._outgoing.send(Packet(self._outgoing, Kind.ACK))
            self._be_open()
        elif kind is Kind.PROBE:
            self._outgoing.send(Packet(self._outgoing, Kind.ACK, ack=self.receiver.acknowledged()))
        else:
            self._be_open()
            before = self.sender.unacknowledged
            self.sender.on_ack(packet.ack, packet.sack, packet.echo)
            if kind is Kind.DATA or 0 < self.sender.unacknowledged < before:
                self._lived_at = self._loop.now
            if kind is Kind.DATA:
                self.receiver.on_data(packet)

    def _be_open(self) -> None:
        if self._open:
            return
        self._open = True
        self._timer.set(None)
        self._silence.set(self._loop.now + PROBE_AFTER_S * SECOND)
        if self._tries == 1:
            self.sender.round_trips.on_sample(self._loop.now - self._opened_at)
        self.on_open()

    def _on_silence(self) -> None:
        """The keepalive: probe a peer that was silent for a minute, give it up after two."""
        silent = self._loop.now - self._received_at
        if silent < PROBE_AFTER_S * SECOND:
            self._silence.set(self._received_at + PROBE_AFTER_S * SECOND)
        elif silent < VANISHED_AFTER_S * SECOND:
            self._outgoing.send(Packet(self._outgoing, Kind.PROBE))
            self._silence.set(self._loop.now + PROBE_EVERY_S * SECOND)
        else:
            self._vanish()

    def _vanish(self) -> None:
        self.stop()
        self.on_vanished()


def _ignore() -> None:
    """Do nothing."""
