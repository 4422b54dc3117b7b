"""What travels on lines: packets, with the sizes that ours have on real ones."""

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed.backends.simulated.dividing import Divide
from testbed.backends.simulated.reading import Ledger

if TYPE_CHECKING:
    from testbed.backends.simulated.line import Line

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
    PROBE = 5  # is anybody there?
    RESET = 6  # nobody listens here
    LOAD = 7  # a datagram of the background


class Ack(NamedTuple):
    """What a packet says of the other direction."""

    up_to: int  # all bytes before this have come
    sack: int = -1  # where the bytes begin that came out of order, or -1
    echo: int = -1  # the time stamp of the packet that is acknowledged


NOTHING_YET = Ack(0)


class Packet:
    """One frame on its way; `place` is how many lines it has crossed."""

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
    """One direction of a connection: the lines it crosses, and what its bytes are.

    `items` are what the receiver's program gets, each when the stream's bytes up to its end have come.
    """

    def __init__(
        self,
        source: str,
        target: str,
        route: "tuple[Line, ...]",
        divide: Divide | None = None,
        core: int = -1,
    ) -> None:
        self.source = source
        self.target = target
        self.route = route
        self.divide = divide
        self.core = core  # behind so many lines it crosses the core; -1: never
        self.ledger = Ledger()
        self.items: deque[tuple[int, Any]] = deque()
        self.deliver: Callable[[Packet], None] = _nobody

    @property
    def parted(self) -> bool:
        """Whether the core lets nothing of it pass."""
        return self.divide is not None and self.divide.between(self.source, self.target)

    def send(self, packet: Packet) -> None:
        """Put it on the first line."""
        self.route[0].send(packet)


def _nobody(_: Packet) -> None:
    """The connection has ended at the other side."""
