"""Links in virtual time: packets, one direction of a link, and the core where links meet.

The arithmetic is that of the relay, which shapes real links (`testbed.links.model`): every packet takes
size / rate on the link, those before it first; a queue of so many bytes; delay and jitter, none overtakes
another; loss. A link that is cut loses what is under way on it.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from testbed.backends.simulated.loop import Loop
from testbed.backends.simulated.stream_contents import Ledger
from testbed.links.model import Drop, LinkModel

# The core in virtual time: it drops packets between the groups of a partition.


class Partitions:
    """The partitions that are in force."""

    def __init__(self) -> None:
        self.active: dict[int, dict[str, int]] = {}  # number -> node -> side

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Begin a partition between these groups."""
        self.active[number] = {name: side for side, names in enumerate(sides) for name in names}

    def heal(self, number: int) -> None:
        """End this partition."""
        self.active.pop(number, None)

    def between(self, one: str, other: str) -> bool:
        """Whether a partition separates these two nodes."""
        return any(
            one in side_of and other in side_of and side_of[one] != side_of[other]
            for side_of in self.active.values()
        )


# Packets, with the sizes that ours have on real links.


ETHERNET_BYTES, IP_BYTES, UDP_BYTES = 14, 20, 8
TCP_BYTES = 32  # with time stamps
BARE_TCP_BYTES = 20
OPENING_TCP_BYTES = 40  # also largest segment, window scale, selective acknowledgements
SACK_BYTES = 12  # one block
DATAGRAM_BYTES = ETHERNET_BYTES + IP_BYTES + UDP_BYTES  # headers
ANSWER_BYTES = DATAGRAM_BYTES + 1
BELOW_TCP = ETHERNET_BYTES + IP_BYTES


class Kind(IntEnum):
    """What a packet is for."""

    DATA = 0
    ACK = 1
    SYN = 2
    SYN_ACK = 3
    ANSWER = 4  # one byte by UDP
    PROBE = 5  # a keepalive probe
    RESET = 6  # the port is closed
    LOAD = 7  # a datagram of the background


class Ack(NamedTuple):
    """The acknowledgement in a packet, for the other direction."""

    up_to: int  # all bytes before this have come
    sack: int = -1  # where the bytes begin that came out of order, or -1
    echo: int = -1  # the time stamp of the packet that is acknowledged


NOTHING_YET = Ack(0)


class Packet:
    """One frame on its way; `place` is how many links it has crossed."""

    __slots__ = (
        "ack",
        "echo",
        "epoch",
        "flow",
        "kind",
        "length",
        "place",
        "sack",
        "size",
        "stamp",
        "start",
    )

    def __init__(
        self,
        flow: "Flow",
        kind: Kind,
        start: int = -1,
        length: int = 0,
        ack: "Ack | None" = None,
        stamp: int = 0,
    ) -> None:
        self.flow = flow
        self.kind = kind
        self.start = start  # of its bytes in the stream; of an answer, its number
        self.length = length
        self.ack, self.sack, self.echo = ack or NOTHING_YET
        self.stamp = stamp  # when it was sent
        self.place = 0
        self.epoch = 0
        if kind is Kind.ANSWER:
            self.size = ANSWER_BYTES
        elif kind is Kind.LOAD:
            self.size = DATAGRAM_BYTES + length
        else:
            self.size = BELOW_TCP + self.tcp_bytes + length

    @property
    def tcp_bytes(self) -> int:
        """The TCP header."""
        if self.kind is Kind.SYN or self.kind is Kind.SYN_ACK:
            return OPENING_TCP_BYTES
        if self.kind is Kind.RESET:
            return BARE_TCP_BYTES
        return TCP_BYTES if self.sack < 0 else TCP_BYTES + SACK_BYTES


class Flow:
    """One direction of a connection: the links it crosses, and what its bytes are.

    `items` are what the receiver's program gets, each when the stream's bytes up to its end have come.
    """

    def __init__(
        self,
        source: str,
        target: str,
        route: "tuple[LinkDirection, ...]",
        partitions: Partitions | None = None,
        core: int = -1,
    ) -> None:
        self.source = source
        self.target = target
        self.route = route
        self.partitions = partitions
        self.core = core  # behind so many links it crosses the core; -1: never
        self.ledger = Ledger()
        self.items: deque[tuple[int, Any]] = deque()
        self.deliver: Callable[[Packet], None] = _discard

    @property
    def partitioned(self) -> bool:
        """Whether a partition in the core drops its packets."""
        return self.partitions is not None and self.partitions.between(self.source, self.target)

    def send(self, packet: Packet) -> None:
        """Send it over the first link."""
        self.route[0].send(packet)


def _discard(_: Packet) -> None:
    """The connection has ended at the other side."""


PARTITIONED = "parted"  # why a packet is dropped: its receiver is in another group of a partition


class PacketObserver(Protocol):
    """Sees each packet where captures see it: behind the link."""

    def see(self, packet: Packet, now: int) -> None:
        """It has arrived."""


class LinkDirection:
    """One direction of a link: it hands each packet to the next link of its route, or to its receiver."""

    def __init__(self, loop: Loop, model: LinkModel, observer: PacketObserver) -> None:
        self.model = model
        self.dropped: Counter[str] = Counter()  # by reason
        self._loop = loop
        self._observer = observer
        self._cut = False
        self._epoch = 0  # counts the cuts

    def send(self, packet: Packet) -> None:
        """Take a packet."""
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
        """Cut the direction, or restore it."""
        if cut and not self._cut:
            self._epoch += 1
            self.model.clear()
        self._cut = cut

    def _arrive(self, packet: Packet) -> None:
        if packet.epoch != self._epoch:
            self.dropped[Drop.CUT] += 1
            return
        self._observer.see(packet, self._loop.now)
        packet.place += 1
        flow = packet.flow
        if packet.place == flow.core and flow.partitioned:
            self.dropped[PARTITIONED] += 1
            return
        if packet.place < len(flow.route):
            flow.route[packet.place].send(packet)
        else:
            flow.deliver(packet)
