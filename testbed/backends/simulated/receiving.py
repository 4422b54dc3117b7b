"""TCP's receiving side, in virtual time: bytes in their order, and acknowledgements.

Each packet is acknowledged at once where packets are missing, and at the beginning of a connection; else every second
one, or after 40 ms, as Linux does it. Where the link's method wants it sooner, the program says so when it reads. What
is sent the other way acknowledges, too.
"""

from collections.abc import Callable
from typing import Any

from testbed.backends.simulated.loop import SECOND, Loop, Timer
from testbed.backends.simulated.packets import Ack, Flow, Kind, Packet

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
        self._owed = 0  # packets not acknowledged
        self._echo = -1  # the time stamp of the first of them
        self._timer = Timer(loop, self._acknowledge)

    def on_data(self, packet: Packet) -> None:
        """A segment came."""
        self._came += 1
        self._owed += 1
        in_order = packet.start == self.up_to
        if self._owed == 1 and packet.start <= self.up_to:
            self._echo = packet.stamp
        whole_before = not self._beyond
        if in_order:
            self.up_to += packet.length
            while self.up_to in self._beyond:
                self.up_to += self._beyond.pop(self.up_to)
        elif packet.start > self.up_to:
            self._beyond[packet.start] = packet.length
        ordinary = in_order and whole_before
        if not ordinary or self._owed > 1 or self._came <= FIRST_AT_ONCE:
            self._acknowledge(packet.start if packet.start > self.up_to else -1)
        else:
            self._timer.set(self._loop.now + self.put_off_ns)
        items = self._incoming.items
        while items and items[0][0] <= self.up_to:
            self._items_up_to, item = items.popleft()
            self.on_item(item)

    @property
    def in_a_frame(self) -> bool:
        """Whether a part of something has come, and the rest has not."""
        return self.up_to > self._items_up_to or bool(self._beyond)

    def acknowledged(self) -> Ack:
        """What a packet that leaves now says, so that no other has to."""
        self._owed = 0
        self._timer.set(None)
        return Ack(self.up_to, -1, self._echo)

    def stop(self) -> None:
        """The connection has ended."""
        self._timer.set(None)

    def _acknowledge(self, sack: int = -1) -> None:
        self._owed = 0
        self._timer.set(None)
        ack = Ack(self.up_to, sack, self._echo)
        self._outgoing.send(Packet(self._outgoing, Kind.ACK, ack=ack))
