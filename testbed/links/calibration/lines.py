"""One direction of a profile on its scratch links: what is sent over it, and what its arrivals tell.

The first of its lanes is for trains and streams, the others are for lone packets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from statistics import median

from testbed.links.calibration import probing
from testbed.links.calibration.exchange import DOWN, UP, Send
from testbed.links.calibration.probing import Lone, Train
from testbed.links.calibration.reading import Heard, delay_s, train_rate_bps
from testbed.topology.model import Emulator, Profile, Shape

FAST_BPS = (
    5e6  # trains of faster lines go one after the other, so that they do not measure each other
)
_SLOT_S = 0.02  # between the beginnings of slow lines' trains
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
class Line:
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

    def heard(self, by_stream: Mapping[int, list[Heard]], purpose: Purpose) -> list[Heard]:
        """What was heard of this line's probes of one purpose."""
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
        """The train that suits this line."""
        return probing.train(self.emulator, self.shape, self.profile.mtu)

    def train_rate_bps(self, heard: Sequence[Heard]) -> float | None:
        """From how trains were spread out; of several the median, as one may have met a busy moment."""
        credit = probing.credit_bytes(self.emulator, self.shape, self.profile.mtu)
        trains: dict[int, list[Heard]] = {}
        for one in heard:
            number, index = divmod(one.index, _APART)
            trains.setdefault(number, []).append(replace(one, index=index))
        rates = [
            train_rate_bps(train, credit, lost_on_line=self.emulator is Emulator.RELAY)
            for train in trains.values()
        ]
        found = [rate for rate in rates if rate is not None]
        return median(found) if found else None

    def delay_s(self, heard: Sequence[Heard]) -> float | None:
        """Of lone packets, without their time on the line."""
        if not heard:
            return None
        on_line_s = probing.serialisation_s(self.emulator, self.shape, heard[0].size)
        return delay_s(heard, on_line_s)


def lines_of(
    emulator: Emulator, lanes: Sequence[tuple[Profile, tuple[str, ...]]]
) -> tuple[Line, ...]:
    """Both directions of each profile."""
    ways = [(profile, way, own) for profile, own in lanes for way in (UP, DOWN)]
    return tuple(Line(n, emulator, profile, way, own) for n, (profile, way, own) in enumerate(ways))


def train_times(trains: Mapping[int, Train], lines: Sequence[Line]) -> dict[int, list[float]]:
    """When each line's trains depart: slow ones shortly after one another, fast ones each after the one before.

    Fast lines have short trains, which one busy moment of the machine can spoil: they have several.
    """
    times: dict[int, list[float]] = {}
    slow_at = 0.0
    fast_at = _SLOT_S * len(trains)
    for line in lines:
        train, rate_bps = trains.get(line.number), line.shape.rate_bps
        if train is None or rate_bps is None:
            continue
        if rate_bps < FAST_BPS:
            times[line.number] = [slow_at]
            slow_at += _SLOT_S
            continue
        lasts_s = train.lasts_s(rate_bps) + line.shape.jitter_s + _SLOT_S
        count = _SHORT_TRAINS if lasts_s < _SHORT_S else 1
        times[line.number] = [fast_at + number * lasts_s for number in range(count)]
        fast_at += count * lasts_s
    return times


def under_way_s(lines: Sequence[Line], trains: Mapping[int, Train]) -> float:
    """How long the last packets may take to arrive."""
    longest = 0.0
    for line in lines:
        shape, train = line.shape, trains.get(line.number)
        on_line_s = train.lasts_s(shape.rate_bps) if train and shape.rate_bps else 0.0
        longest = max(longest, shape.delay_s + shape.jitter_s + on_line_s)
    return longest
