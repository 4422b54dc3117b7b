"""One direction of a link in virtual time.

The arithmetic is that of the relay, which shapes real links (`testbed.links.relay.model`): every packet takes
size / rate on the line, those before it first; a waiting room of so many bytes; delay and jitter, none overtakes
another; loss. A line that is cut loses what is under way on it.
"""

from collections import Counter
from typing import Protocol

from testbed.backends.simulated.loop import Loop
from testbed.backends.simulated.packets import Packet
from testbed.links.relay.model import Drop, LinkModel

PARTED = "parted"  # why a packet is dropped: it wants to the other side of a partition


class Watcher(Protocol):
    """Sees each packet where captures see it: behind the line."""

    def see(self, packet: Packet, now: int) -> None:
        """It has arrived."""


class Line:
    """Takes packets, and hands each to the next line of its way, or to its receiver."""

    def __init__(self, loop: Loop, model: LinkModel, watcher: Watcher) -> None:
        self.model = model
        self.dropped: Counter[str] = Counter()  # by reason
        self._loop = loop
        self._watcher = watcher
        self._cut = False
        self._epoch = 0  # counts the cuts

    def send(self, packet: Packet) -> None:
        """A packet comes."""
        if self._cut:
            self.dropped[Drop.CUT] += 1
            return
        fate = self.model.on_packet(packet.size, self._loop.now)
        if isinstance(fate, Drop):
            self.dropped[fate] += 1
            return
        packet.epoch = self._epoch
        self._loop.at(fate, self._arrive, packet)

    def set_cut(self, cut: bool) -> None:
        """Nothing passes any more, or again."""
        if cut and not self._cut:
            self._epoch += 1
            self.model.clear()
        self._cut = cut

    def _arrive(self, packet: Packet) -> None:
        if packet.epoch != self._epoch:
            self.dropped[Drop.CUT] += 1
            return
        self._watcher.see(packet, self._loop.now)
        packet.place += 1
        flow = packet.flow
        if packet.place == flow.core and flow.parted:
            self.dropped[PARTED] += 1
            return
        if packet.place < len(flow.route):
            flow.route[packet.place].send(packet)
        else:
            flow.deliver(packet)
