"""The thorough look: many lone packets, a thousand for the loss, then seconds of TCP in each direction."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from testbed.links.calibration import probing
from testbed.links.calibration.exchange import DOWN, UP, Exchange
from testbed.links.calibration.lines import Line, Purpose, train_times, under_way_s
from testbed.links.calibration.probing import Lone
from testbed.links.calibration.quick import length_of, trains_of
from testbed.links.calibration.reading import stream_rate_bps
from testbed.links.calibration.streams import run_streams
from testbed.links.calibration.verdict import (
    DELAY_S,
    DELAY_SHARE,
    Calibrated,
    Evidence,
    Method,
    Numbers,
    judge,
)
from testbed.links.sizes import ETHERNET_HEADER, queue_bytes
from testbed.topology.model import Profile, Shape

Progress = Callable[[str], None]  # told what was done, once a unit
AT_ONCE_BPS = 20e6  # streams that run at the same time have this rate together, or are alone
_SETTLE_S = 0.5
_FEWEST_FRAMES = 20  # of a stream, however slow the line
_MOST_LOSS = 0.01  # beyond it, TCP does not fill a line
_LEAST_QUEUE = 0.5  # of rate times round trip: TCP does not fill a line with a shorter one


@dataclass(frozen=True, slots=True)
class Effort:
    """How thorough."""

    seconds: float = 5.0  # of TCP
    skip_s: float = 1.0  # at its beginning: TCP has to find the rate first
    lone: int = probing.FULL_LONE
    lone_s: float = probing.FULL_LONE_S
    sigmas: float = (
        0.0  # as many lone packets as it takes for jitter to move their median so rarely
    )

    def lone_of(self, shape: Shape) -> Lone:
        """The lone packets for a direction; an odd number, so that a median is one of them."""
        tolerance_s = DELAY_S + DELAY_SHARE * shape.delay_s
        # The median of n values that are uniform within +-J has a standard deviation of about J / sqrt(n).
        needed = math.ceil((self.sigmas * shape.jitter_s / tolerance_s) ** 2)
        return probing.lone(shape, max(self.lone, needed) | 1, self.lone_s)


def lanes_for_full(profile: Profile, effort: Effort) -> int:
    """How many scratch links it takes."""
    shapes = (profile.up, profile.down)
    alone = max(effort.lone_of(shape).lanes for shape in shapes)
    lossy = max(probing.losses(shape).lanes if shape.loss else 1 for shape in shapes)
    return 1 + max(alone, lossy)


def units(lines: Sequence[Line]) -> int:
    """How many times the progress will be told."""
    return 3 + sum(tcp_fills(line) for line in lines)


def full(
    exchange: Exchange, lines: Sequence[Line], effort: Effort, progress: Progress
) -> list[Calibrated]:
    """Rate, delay, loss and the lone kilobyte of each line."""
    found = {line.number: (Numbers(), Evidence(by_train=False)) for line in lines}
    for step in (_delays, _losses, _trains):
        step(exchange, lines, effort, found)
        progress(step.__name__.strip("_"))
    _streams(exchange, lines, effort, found, progress)
    return [
        judge(line.profile.name, line.direction, Method.FULL, line.shape, *found[line.number])
        for line in lines
    ]


Found = dict[int, tuple[Numbers, Evidence]]


def _delays(exchange: Exchange, lines: Sequence[Line], effort: Effort, found: Found) -> None:
    """Lone packets, small ones and of 1 kB. Where nothing should be lost, they also tell that nothing was."""
    sends = []
    for line in lines:
        sends += line.scattered(effort.lone_of(line.shape))
        if probing.serialisation_s(line.emulator, line.shape, probing.KILOBYTE):
            sends += line.kilobytes(_kilobytes(line.shape))
    heard = exchange.probe(sends, under_way_s(lines, {}) + _SETTLE_S)
    for line in lines:
        alone, sent = line.heard(heard, Purpose.DELAY), effort.lone_of(line.shape).count
        large = line.heard(heard, Purpose.KILOBYTE)
        on_line_s = probing.serialisation_s(line.emulator, line.shape, probing.KILOBYTE)
        kilobyte_s = line.delay_s(large)
        achieved, evidence = found[line.number]
        if on_line_s and kilobyte_s is not None:
            evidence = replace(
                evidence,
                kilobyte_asked_s=line.shape.delay_s + on_line_s,
                kilobyte_achieved_s=kilobyte_s + on_line_s,
                kilobytes_heard=len(large),
            )
        found[line.number] = (
            replace(achieved, delay_s=line.delay_s(alone), loss=(sent - len(alone)) / sent),
            replace(
                evidence,
                lone_sent=sent,
                lone_heard=len(alone),
                loss_sent=sent,
                loss_heard=len(alone),
            ),
        )


def _kilobytes(shape: Shape) -> Lone:
    """On one lane: it is slow lines that they are for."""
    wanted = probing.lone(shape, probing.FULL_KILOBYTES, probing.FULL_LONE_S, probing.KILOBYTE)
    return replace(wanted, lanes=1)


def _losses(exchange: Exchange, lines: Sequence[Line], effort: Effort, found: Found) -> None:
    """Many packets where some should be lost."""
    lossy = {line: probing.losses(line.shape) for line in lines if line.shape.loss}
    sends = [send for line, lone in lossy.items() for send in line.scattered(lone, Purpose.LOSS)]
    heard = exchange.probe(sends, under_way_s(lines, {}) + _SETTLE_S)
    for line, lone in lossy.items():
        arrived = len(line.heard(heard, Purpose.LOSS))
        achieved, evidence = found[line.number]
        found[line.number] = (
            replace(achieved, loss=(lone.count - arrived) / lone.count),
            replace(evidence, loss_sent=lone.count, loss_heard=arrived),
        )


def tcp_fills(line: Line) -> bool:
    """Whether TCP can be expected to keep this line busy: little loss, and a queue that suits the round trip."""
    shape = line.shape
    if shape.rate_bps is None or shape.loss > _MOST_LOSS or line.back.loss > _MOST_LOSS:
        return False
    under_way = shape.rate_bps / 8 * (shape.delay_s + line.back.delay_s)
    return queue_bytes(shape, line.profile.mtu) >= _LEAST_QUEUE * under_way


def _trains(exchange: Exchange, lines: Sequence[Line], effort: Effort, found: Found) -> None:
    """For the lines that TCP would not fill."""
    short = [line for line in lines if not tcp_fills(line)]
    trains = trains_of(short)
    departs = train_times(trains, short)
    sends = [
        send
        for line in short
        if line.number in departs
        for send in line.back_to_back(trains[line.number], departs[line.number])
    ]
    heard = exchange.probe(sends, under_way_s(short, trains) + _SETTLE_S)
    for line in short:
        achieved, evidence = found[line.number]
        length = length_of(line, trains.get(line.number))
        rate_bps = line.train_rate_bps(line.heard(heard, Purpose.TRAIN))
        found[line.number] = (
            replace(achieved, rate_bps=rate_bps),
            replace(evidence, by_train=True, **length),
        )


def _streams(
    exchange: Exchange,
    lines: Sequence[Line],
    effort: Effort,
    found: Found,
    progress: Progress,
) -> None:
    """One direction after the other: what is measured shall not wait behind the other's acknowledgements."""
    for way in (UP, DOWN):
        wanted = [line for line in lines if line.direction == way and tcp_fills(line)]
        for together in side_by_side(wanted):
            lasts = {line: _lasts_s(line, effort) for line in together}
            streams = run_streams(
                exchange, {(line.lanes[0], way): lasts[line] for line in together}
            )
            for line in together:
                stream = streams[line.lanes[0], way]
                rate_bps = stream_rate_bps(stream.frames, effort.skip_s, stream.missed)
                achieved, evidence = found[line.number]
                found[line.number] = (
                    replace(achieved, rate_bps=rate_bps),
                    replace(evidence, train_packets=len(stream.frames) or 1, train_s=lasts[line]),
                )
                progress(f"{line.profile.name} {way}")


def _lasts_s(line: Line, effort: Effort) -> float:
    """As asked, or a few frames on very slow lines."""
    assert line.shape.rate_bps is not None
    frame = line.profile.mtu + ETHERNET_HEADER
    return max(effort.seconds, _FEWEST_FRAMES * frame * 8 / line.shape.rate_bps)


def side_by_side(lines: Sequence[Line]) -> list[list[Line]]:
    """Slow lines at the same time, fast ones alone."""
    groups: list[list[Line]] = []
    load = 0.0
    for line in sorted(lines, key=lambda line: line.shape.rate_bps or 0.0):
        rate_bps = line.shape.rate_bps or 0.0
        if groups and load + rate_bps <= AT_ONCE_BPS:
            groups[-1].append(line)
            load += rate_bps
        else:
            groups.append([line])
            load = rate_bps
    return groups
