"""One direction of a profile on its scratch links: what to send over it, and what the arrivals show."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from statistics import median

from testbed.links.calibration.exchange import DOWN, UP, Arrival, Send, delay_s, train_rate_bps
from testbed.links.model import ETHERNET_HEADER, queue_bytes, tbf_burst
from testbed.topology.model import Emulator, Profile, Shape

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
_GOOD_TRAIN = 40  # packets, where the queue holds so many
_SHORTEST_TRAIN = 5
_SMALLEST_IN_TRAIN = 100  # bytes
_QUEUE_SHARE_USED = 0.9  # of the queue


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
        """Its transmission time."""
        return self.count * self.size * 8 / rate_bps


def serialisation_s(emulator: Emulator, shape: Shape, size: int) -> float:
    """The transmission time of a lone packet; a token bucket lets it pass on its credit."""
    if shape.rate_bps is None or emulator is Emulator.TBF:
        return 0.0
    return size * 8 / shape.rate_bps


def credit_bytes(emulator: Emulator, shape: Shape, mtu: int) -> int:
    """Bytes that pass at once through a link that was idle."""
    if shape.rate_bps is None or emulator is not Emulator.TBF:
        return 0
    return tbf_burst(shape.rate_bps, mtu, shape.burst_bytes)


def lone(shape: Shape, count: int, within_s: float, size: int = SMALL) -> Lone:
    """So many lone packets, on as many links as it takes to be done in time."""
    on_link_s = size * 8 / shape.rate_bps if shape.rate_bps else 0.0
    gap_s = max(_SHORTEST_GAP_S, 2 * on_link_s, 2 * shape.jitter_s)
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
    on_link_s = SMALL * 8 / shape.rate_bps if shape.rate_bps else 0.0
    gap_s = max(_SHORTEST_GAP_S / 2, 2 * on_link_s)
    lanes = min(MOST_LANES, max(1, math.ceil(LOSS_PACKETS * gap_s / LOSS_S)))
    return Lone(LOSS_PACKETS, SMALL, gap_s, lanes)


def packet_train(emulator: Emulator, shape: Shape, mtu: int) -> Train | None:
    """A train for this direction; None if there is no rate to measure, or the queue is too short for a train."""
    if shape.rate_bps is None:
        return None
    credit = credit_bytes(emulator, shape, mtu)
    queue_limit = _QUEUE_SHARE_USED * queue_bytes(shape, mtu)
    budget = min(queue_limit, shape.rate_bps / 8 * QUICK_S) + credit
    size = min(mtu + ETHERNET_HEADER, max(_SMALLEST_IN_TRAIN, int(budget / _GOOD_TRAIN)))
    count = min(_LONGEST_TRAIN, int(budget / size))
    usable = count - credit // size
    return Train(count, size) if usable >= _SHORTEST_TRAIN else None


# The first lane of a direction is for trains and streams, the others are for lone packets.


FAST_BPS = (
    5e6  # trains on faster links go one after the other, so that they do not measure each other
)
_SLOT_S = 0.02  # between the beginnings of trains on slow links
_SHORT_S = 0.1
_SHORT_TRAINS = 3
_APART = 1 << 16  # between the first indexes of two trains


class Purpose(IntEnum):
    """What a probe is sent for."""

    DELAY = 0
    KILOBYTE = 1
    LOSS = 2
    TRAIN = 3


@dataclass(frozen=True, slots=True)
class ProbedDirection:
    """A direction of a profile, with its lanes."""

    number: int
    emulator: Emulator
    profile: Profile
    direction: str
    lanes: tuple[str, ...]

    @property
    def shape(self) -> Shape:
        return self.profile.up if self.direction == UP else self.profile.down

    @property
    def back(self) -> Shape:
        """The other direction."""
        return self.profile.down if self.direction == UP else self.profile.up

    def arrivals(self, by_stream: Mapping[int, list[Arrival]], purpose: Purpose) -> list[Arrival]:
        """The arrivals of this direction's probes of one purpose."""
        return by_stream.get(self._stream(purpose), [])

    def scattered(self, lone: Lone, purpose: Purpose = Purpose.DELAY) -> list[Send]:
        """Lone packets, on the lanes for them in turn."""
        return [
            self._send(lone.at_s(i), self.lanes[1 + i % lone.lanes], purpose, i, lone.size)
            for i in range(lone.count)
        ]

    def back_to_back(self, train: Train, departures: Sequence[float]) -> list[Send]:
        """Trains on the first lane."""
        return [
            self._send(at_s, self.lanes[0], Purpose.TRAIN, number * _APART + i, train.size)
            for number, at_s in enumerate(departures)
            for i in range(train.count)
        ]

    def kilobytes(self, lone: Lone) -> list[Send]:
        """Lone packets on the first lane."""
        return [
            self._send(lone.at_s(i), self.lanes[0], Purpose.KILOBYTE, i, lone.size)
            for i in range(lone.count)
        ]

    def _send(self, at_s: float, lane: str, purpose: Purpose, index: int, size: int) -> Send:
        return Send(at_s, lane, self.direction, self._stream(purpose), index, size)

    def _stream(self, purpose: Purpose) -> int:
        return self.number * len(Purpose) + purpose

    def train(self) -> Train | None:
        """The train that suits this direction."""
        return packet_train(self.emulator, self.shape, self.profile.mtu)

    def train_rate_bps(self, arrivals: Sequence[Arrival]) -> float | None:
        """From how trains were spread out; of several the median, as one may have met a busy moment."""
        credit = credit_bytes(self.emulator, self.shape, self.profile.mtu)
        trains: dict[int, list[Arrival]] = {}
        for one in arrivals:
            number, index = divmod(one.index, _APART)
            trains.setdefault(number, []).append(replace(one, index=index))
        rates = [
            train_rate_bps(train, credit, lost_on_link=self.emulator is Emulator.RELAY)
            for train in trains.values()
        ]
        found = [rate for rate in rates if rate is not None]
        return median(found) if found else None

    def delay_s(self, arrivals: Sequence[Arrival]) -> float | None:
        """The delay of lone packets, without their transmission time."""
        if not arrivals:
            return None
        on_link_s = serialisation_s(self.emulator, self.shape, arrivals[0].size)
        return delay_s(arrivals, on_link_s)


def probed_directions(
    emulator: Emulator, lanes: Sequence[tuple[Profile, tuple[str, ...]]]
) -> tuple[ProbedDirection, ...]:
    """Both directions of each profile."""
    ways = [(profile, way, own) for profile, own in lanes for way in (UP, DOWN)]
    return tuple(
        ProbedDirection(n, emulator, profile, way, own)
        for n, (profile, way, own) in enumerate(ways)
    )


def train_times(
    trains: Mapping[int, Train], directions: Sequence[ProbedDirection]
) -> dict[int, list[float]]:
    """When each direction's trains depart: slow ones shortly after one another, fast ones each after the one before.

    Fast links have short trains, which one busy moment of the machine can spoil: they have several.
    """
    times: dict[int, list[float]] = {}
    slow_at = 0.0
    fast_at = _SLOT_S * len(trains)
    for probed in directions:
        train, rate_bps = trains.get(probed.number), probed.shape.rate_bps
        if train is None or rate_bps is None:
            continue
        if rate_bps < FAST_BPS:
            times[probed.number] = [slow_at]
            slow_at += _SLOT_S
            continue
        lasts_s = train.lasts_s(rate_bps) + probed.shape.jitter_s + _SLOT_S
        count = _SHORT_TRAINS if lasts_s < _SHORT_S else 1
        times[probed.number] = [fast_at + number * lasts_s for number in range(count)]
        fast_at += count * lasts_s
    return times


def under_way_s(directions: Sequence[ProbedDirection], trains: Mapping[int, Train]) -> float:
    """How long the last packets may take to arrive."""
    longest = 0.0
    for probed in directions:
        shape, train = probed.shape, trains.get(probed.number)
        on_link_s = train.lasts_s(shape.rate_bps) if train and shape.rate_bps else 0.0
        longest = max(longest, shape.delay_s + shape.jitter_s + on_link_s)
    return longest
