"""What to send over a direction of a link to find out about it. Pure.

Lone small packets tell the delay: so far apart that none waits for another on the line, and none is held back
by jitter to keep the order. A train, sent all at once, tells the rate: it fits the queue and lasts less than a second.
"""

import math
from dataclasses import dataclass

from testbed.links.sizes import ETHERNET_HEADER, queue_bytes, tbf_burst
from testbed.topology.model import Emulator, Shape

SMALL = 64  # bytes of a lone packet's frame
KILOBYTE = 1000  # bytes of the lone packet that shows whether there is free credit
QUICK_S = 0.8  # for the lone packets, and for the train beside them
QUICK_LONE = 15
FULL_LONE = 51
FULL_LONE_S = 4.0
FULL_KILOBYTES = 5
LOSS_PACKETS = 1000
LOSS_S = 8.0
MOST_LANES = 8
_SHORTEST_GAP_S = 0.01
_LONGEST_TRAIN = 400  # packets
_GOOD_TRAIN = 40  # packets, where there is room for so many
_SHORTEST_TRAIN = 5
_SMALLEST_IN_TRAIN = 100  # bytes
_ROOM_USED = 0.9  # of the queue


@dataclass(frozen=True, slots=True)
class Lone:
    """Packets far apart from each other, dealt out in turn to `lanes` links of the same kind."""

    count: int
    size: int
    gap_s: float  # between two packets on one link
    lanes: int

    @property
    def lasts_s(self) -> float:
        """From the first packet to the last."""
        return math.ceil(self.count / self.lanes) * self.gap_s

    def at_s(self, index: int) -> float:
        """When a packet is sent, after the beginning; the links take turns evenly."""
        return index * self.gap_s / self.lanes


@dataclass(frozen=True, slots=True)
class Train:
    """Packets back to back."""

    count: int
    size: int

    def lasts_s(self, rate_bps: float) -> float:
        """Its length on the line."""
        return self.count * self.size * 8 / rate_bps


def serialisation_s(emulator: Emulator, shape: Shape, size: int) -> float:
    """The time on the line of a lone packet; a token bucket lets it pass on its credit."""
    if shape.rate_bps is None or emulator is Emulator.TBF:
        return 0.0
    return size * 8 / shape.rate_bps


def credit_bytes(emulator: Emulator, shape: Shape, mtu: int) -> int:
    """What passes at once through a line that was idle."""
    if shape.rate_bps is None or emulator is not Emulator.TBF:
        return 0
    return tbf_burst(shape.rate_bps, mtu, shape.burst_bytes)


def lone(shape: Shape, count: int, within_s: float, size: int = SMALL) -> Lone:
    """So many lone packets, on as many links as it takes to be done in time."""
    on_line_s = size * 8 / shape.rate_bps if shape.rate_bps else 0.0
    gap_s = max(_SHORTEST_GAP_S, 2 * on_line_s, 2 * shape.jitter_s)
    lanes = min(MOST_LANES, max(1, math.ceil(count * gap_s / within_s)))
    return Lone(count, size, gap_s, lanes)


def quick_lone(shape: Shape) -> Lone:
    """An odd number that is done in time: a median is one of them."""
    wanted = lone(shape, QUICK_LONE, QUICK_S)
    fitting = int(QUICK_S / wanted.gap_s) * wanted.lanes
    count = max(1, min(QUICK_LONE, fitting))
    return Lone(count - (count + 1) % 2, wanted.size, wanted.gap_s, wanted.lanes)


def losses(shape: Shape) -> Lone:
    """Many small packets at half the rate or less; they need not arrive one by one."""
    on_line_s = SMALL * 8 / shape.rate_bps if shape.rate_bps else 0.0
    gap_s = max(_SHORTEST_GAP_S / 2, 2 * on_line_s)
    lanes = min(MOST_LANES, max(1, math.ceil(LOSS_PACKETS * gap_s / LOSS_S)))
    return Lone(LOSS_PACKETS, SMALL, gap_s, lanes)


def train(emulator: Emulator, shape: Shape, mtu: int) -> Train | None:
    """A train for this line; None if there is no rate to find out, or no room for a train in front of it."""
    if shape.rate_bps is None:
        return None
    credit = credit_bytes(emulator, shape, mtu)
    room = _ROOM_USED * queue_bytes(shape, mtu)
    budget = min(room, shape.rate_bps / 8 * QUICK_S) + credit
    size = min(mtu + ETHERNET_HEADER, max(_SMALLEST_IN_TRAIN, int(budget / _GOOD_TRAIN)))
    count = min(_LONGEST_TRAIN, int(budget / size))
    usable = count - credit // size
    return Train(count, size) if usable >= _SHORTEST_TRAIN else None
