"""One side of a TCP connection in virtual time, from its opening to its end.

A stream ends with one byte more (really with an empty packet that counts like a byte): it is sent again until it is
acknowledged, as everything else. The program may be gone by then; its kernel does that.
"""

from collections.abc import Callable
from typing import Any

from nodes.runtime.connection import PROBE_AFTER_S, PROBE_EVERY_S, VANISHED_AFTER_S
from nodes.runtime.kernel import segment_room
from testbed.backends.simulated.loop import SECOND, Loop, Timer
from testbed.backends.simulated.packets import IP_BYTES, TCP_BYTES, Flow, Kind, Packet
from testbed.backends.simulated.receiving import Receiver
from testbed.backends.simulated.sending import Sender

END = object()  # what a program gets when the other side's stream has ended


class Endpoint:
    """What a program has of a connection, and what its kernel knows of it."""

    def __init__(
        self, loop: Loop, outgoing: Flow, incoming: Flow, mtu: int, *, client: bool
    ) -> None:
        segment = mtu - IP_BYTES - TCP_BYTES
        self.sender = Sender(loop, outgoing, segment)
        self.receiver = Receiver(loop, incoming, outgoing)
        self.sender.received = self.receiver.acknowledged
        self.on_open: Callable[[], None] = _ignore
        self.on_vanished: Callable[[], None] = _ignore
        self.on_refused: Callable[[], None] = _ignore
        self.admits: Callable[[], bool] = lambda: True  # whether somebody listens here
        self.on_answer: Callable[[int], None] = lambda number: None
        self.sender.on_vanished = self._vanish
        self.packet_room = segment_room(segment, masked=client)
        self.client = client
        self._loop = loop
        self._outgoing = outgoing
        self._open, self._finished, self._gone = False, False, False
        self._opened_at = 0
        self._tries = 0
        self._heard_at, self._lived_at = 0, 0
        self._timer = Timer(loop, self.connect)
        self._silence = Timer(loop, self._on_silence)
        incoming.deliver = self._receive

    def connect(self) -> None:
        """Begin to open the connection, again and again if nobody answers (RFC 6298: after 1 s, 2 s, 4 s, ...)."""
        self._say(Kind.SYN)
        self._timer.set(self._loop.now + (SECOND << min(self._tries - 1, 6)))

    def write(self, size: int, item: Any) -> None:
        """So many bytes to the kernel; the other side's program gets the item with the last of them."""
        self.sender.write(size, item)

    def answer(self, number: int) -> None:
        """One byte by UDP."""
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
        """The connection is gone: whoever still sends is told so."""
        self._gone = True
        self._timer.set(None)
        self._silence.set(None)
        self.sender.stop()
        self.receiver.stop()

    def _say(self, kind: Kind) -> None:
        self._tries += 1
        self._opened_at = self._loop.now
        self._outgoing.send(Packet(self._outgoing, kind))

    def _receive(self, packet: Packet) -> None:
        kind = packet.kind
        if self._gone:
            if kind is not Kind.RESET and kind is not Kind.ANSWER:
                self._outgoing.send(Packet(self._outgoing, Kind.RESET))
            return
        self._heard_at = self._loop.now
        if kind is Kind.ANSWER:
            self.on_answer(packet.start)
        elif kind is Kind.SYN:
            self._say(Kind.SYN_ACK if self.admits() else Kind.RESET)
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
        """The keepalive: a peer that has not been heard of for a minute is asked, one of two minutes given up."""
        silent = self._loop.now - self._heard_at
        if silent < PROBE_AFTER_S * SECOND:
            self._silence.set(self._heard_at + PROBE_AFTER_S * SECOND)
        elif silent < VANISHED_AFTER_S * SECOND:
            self._outgoing.send(Packet(self._outgoing, Kind.PROBE))
            self._silence.set(self._loop.now + PROBE_EVERY_S * SECOND)
        else:
            self._vanish()

    def _vanish(self) -> None:
        self.stop()
        self.on_vanished()


def _ignore() -> None:
    """Nobody waits for it."""
