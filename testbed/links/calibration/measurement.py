"""The measurements of a link: a quick one beside each `up`, and a full one with TCP in each direction."""

import math
import os
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from testbed.links.calibration import probes
from testbed.links.calibration.exchange import (
    DOWN,
    UP,
    Exchange,
    Frame,
    missed,
    stream_rate_bps,
    tcp,
)
from testbed.links.calibration.probes import (
    Lone,
    ProbedDirection,
    Purpose,
    Train,
    train_times,
    under_way_s,
)
from testbed.links.calibration.verdict import (
    DELAY_S,
    DELAY_SHARE,
    Calibrated,
    Evidence,
    Method,
    Numbers,
    judge,
)
from testbed.links.model import ETHERNET_HEADER, queue_bytes
from testbed.links.namespaces import inside, open_own
from testbed.topology.model import Profile, Shape

_SETTLE_S = 0.3


def lanes_for_quick(profile: Profile) -> int:
    """How many scratch links it takes."""
    return 1 + max(probes.quick_lone(shape).lanes for shape in (profile.up, profile.down))


def quick(exchange: Exchange, directions: Sequence[ProbedDirection]) -> list[Calibrated]:
    """Rate and delay of each direction; not its loss, which needs many packets."""
    lone = {probed.number: probes.quick_lone(probed.shape) for probed in directions}
    trains = trains_of(directions)
    departs = train_times(trains, directions)
    sends = [send for probed in directions for send in probed.scattered(lone[probed.number])]
    for probed in directions:
        if probed.number in departs:
            sends += probed.back_to_back(trains[probed.number], departs[probed.number])
    arrivals = exchange.probe(sends, under_way_s(directions, trains) + _SETTLE_S)
    found = []
    for probed in directions:
        alone = probed.arrivals(arrivals, Purpose.DELAY)
        rate_bps = probed.train_rate_bps(probed.arrivals(arrivals, Purpose.TRAIN))
        evidence = Evidence(
            lone_sent=lone[probed.number].count,
            lone_received=len(alone),
            **length_of(probed, trains.get(probed.number)),
        )
        achieved = Numbers(rate_bps, probed.delay_s(alone))
        name, way = probed.profile.name, probed.direction
        found.append(judge(name, way, Method.QUICK, probed.shape, achieved, evidence))
    return found


def trains_of(directions: Sequence[ProbedDirection]) -> dict[int, Train]:
    """By the direction's number, where a train is possible."""
    found = ((probed.number, probed.train()) for probed in directions)
    return {number: train for number, train in found if train is not None}


def length_of(probed: ProbedDirection, train: Train | None) -> dict[str, Any]:
    """A train as evidence."""
    if train is None or probed.shape.rate_bps is None:
        return {}
    return {"train_packets": train.count, "train_s": train.lasts_s(probed.shape.rate_bps)}


# TCP streams that fill directions of scratch links.


LaneDirection = tuple[str, str]  # lane and direction
_CHUNK = bytes(1 << 18)
_CONNECT_S = 15.0
_TURN_S = 0.05


class Stream:
    """One stream: from one end of the lane to the other, as fast as TCP goes."""

    def __init__(self, exchange: Exchange, probed: LaneDirection, seconds: float) -> None:
        self.frames: list[Frame] = []
        self.missed = 0
        self._exchange = exchange
        self._seconds = seconds
        self._began = time.monotonic()
        self._ends_at: float | None = None  # known once its first data came
        lane = exchange.lanes[probed[0]]
        self._listener = lane.listeners[probed[1]]
        own = open_own()
        try:
            ends = ((own, exchange.gateway), (lane.ns_fd, lane.address))
            receiving, sending = ends if probed[1] == UP else ends[::-1]
            with inside(receiving[0]):
                self._listening = tcp(receiving[1])
                self._listening.listen()
            with inside(sending[0]):
                self._sender = tcp(sending[1])
        finally:
            os.close(own)
        self._receiver: socket.socket | None = None
        missed(self._listener.sock)  # reset the count of missed frames
        self._listener.frames = self.frames
        exchange.watch(self._listening, select.EPOLLIN, self._accept)
        exchange.watch(self._sender, select.EPOLLOUT, self._send)
        with suppress(BlockingIOError):
            self._sender.connect(self._listening.getsockname())

    def ended(self) -> bool:
        """Whether it has lasted long enough, or never began."""
        now = time.monotonic()
        if self._ends_at is None:
            if self.frames and self.frames[-1].carries:
                self._ends_at = now + self._seconds
            return now > self._began + _CONNECT_S + self._seconds
        return now > self._ends_at

    def close(self) -> None:
        """Cut it off."""
        if self._listener.frames is self.frames:
            self._listener.frames = None
            self.missed = missed(self._listener.sock)
        for sock in (self._sender, self._listening, self._receiver):
            if sock is not None and sock.fileno() >= 0:
                self._exchange.forget(sock)

    def _accept(self) -> None:
        self._receiver, _ = self._listening.accept()
        self._receiver.setblocking(False)
        self._exchange.watch(self._receiver, select.EPOLLIN, self._receive)

    def _send(self) -> None:
        try:
            self._sender.send(_CHUNK)
        except BlockingIOError:
            return
        except OSError:  # refused or timed out: what came so far counts
            self._exchange.forget(self._sender)

    def _receive(self) -> None:
        assert self._receiver is not None
        with suppress(BlockingIOError):
            self._receiver.recv(len(_CHUNK))


def run_streams(
    exchange: Exchange, wanted: Mapping[LaneDirection, float]
) -> dict[LaneDirection, Stream]:
    """Run all streams at once, each for its seconds from its first data on."""
    streams: dict[LaneDirection, Stream] = {}
    try:
        for probed, seconds in wanted.items():
            streams[probed] = Stream(exchange, probed, seconds)
        going: Sequence[Stream] = list(streams.values())
        while going:
            exchange.turn(_TURN_S)
            for stream in [stream for stream in going if stream.ended()]:
                stream.close()
            going = [stream for stream in going if not stream.ended()]
    finally:
        for stream in streams.values():
            stream.close()
    return streams


# The full measurement: many lone packets, a thousand for the loss, then seconds of TCP in each direction.


Progress = Callable[[str], None]  # called with what was done, once a unit
AT_ONCE_BPS = 20e6  # streams that run at the same time have this rate together, or are alone
_FULL_SETTLE_S = 0.5
_FEWEST_FRAMES = 20  # of a stream, however slow the link
_MOST_LOSS = 0.01  # beyond it, TCP does not fill a link
_LEAST_QUEUE = 0.5  # of rate times round trip: TCP does not fill a link with a shorter one


@dataclass(frozen=True, slots=True)
class Effort:
    """How thorough."""

    seconds: float = 5.0  # of TCP
    skip_s: float = 1.0  # at its beginning: TCP has to find the rate first
    lone: int = probes.FULL_LONE
    lone_s: float = probes.FULL_LONE_S
    sigmas: float = (
        0.0  # as many lone packets as it takes for jitter to move their median so rarely
    )

    def lone_of(self, shape: Shape) -> Lone:
        """The lone packets for a direction; an odd number, so that a median is one of them."""
        tolerance_s = DELAY_S + DELAY_SHARE * shape.delay_s
        # The median of n values that are uniform within +-J has a standard deviation of about J / sqrt(n).
        needed = math.ceil((self.sigmas * shape.jitter_s / tolerance_s) ** 2)
        return probes.lone(shape, max(self.lone, needed) | 1, self.lone_s)


def lanes_for_full(profile: Profile, effort: Effort) -> int:
    """How many scratch links it takes."""
    shapes = (profile.up, profile.down)
    alone = max(effort.lone_of(shape).lanes for shape in shapes)
    lossy = max(probes.losses(shape).lanes if shape.loss else 1 for shape in shapes)
    return 1 + max(alone, lossy)


def units(directions: Sequence[ProbedDirection]) -> int:
    """How many times `progress` will be called."""
    return 3 + sum(tcp_fills(probed) for probed in directions)


def full(
    exchange: Exchange, directions: Sequence[ProbedDirection], effort: Effort, progress: Progress
) -> list[Calibrated]:
    """Rate, delay, loss and the lone kilobyte of each direction."""
    found = {probed.number: (Numbers(), Evidence(by_train=False)) for probed in directions}
    for step in (_delays, _losses, _trains):
        step(exchange, directions, effort, found)
        progress(step.__name__.strip("_"))
    _streams(exchange, directions, effort, found, progress)
    return [
        judge(
            probed.profile.name, probed.direction, Method.FULL, probed.shape, *found[probed.number]
        )
        for probed in directions
    ]


Found = dict[int, tuple[Numbers, Evidence]]


def _delays(
    exchange: Exchange, directions: Sequence[ProbedDirection], effort: Effort, found: Found
) -> None:
    """Lone packets, small ones and of 1 kB. Where nothing should be lost, they also show that nothing was."""
    sends = []
    for probed in directions:
        sends += probed.scattered(effort.lone_of(probed.shape))
        if probes.serialisation_s(probed.emulator, probed.shape, probes.KILOBYTE):
            sends += probed.kilobytes(_kilobytes(probed.shape))
    arrivals = exchange.probe(sends, under_way_s(directions, {}) + _FULL_SETTLE_S)
    for probed in directions:
        alone, sent = probed.arrivals(arrivals, Purpose.DELAY), effort.lone_of(probed.shape).count
        large = probed.arrivals(arrivals, Purpose.KILOBYTE)
        on_link_s = probes.serialisation_s(probed.emulator, probed.shape, probes.KILOBYTE)
        kilobyte_s = probed.delay_s(large)
        achieved, evidence = found[probed.number]
        if on_link_s and kilobyte_s is not None:
            evidence = replace(
                evidence,
                kilobyte_asked_s=probed.shape.delay_s + on_link_s,
                kilobyte_achieved_s=kilobyte_s + on_link_s,
                kilobytes_received=len(large),
            )
        found[probed.number] = (
            replace(achieved, delay_s=probed.delay_s(alone), loss=(sent - len(alone)) / sent),
            replace(
                evidence,
                lone_sent=sent,
                lone_received=len(alone),
                loss_sent=sent,
                loss_received=len(alone),
            ),
        )


def _kilobytes(shape: Shape) -> Lone:
    """On one lane: they are for slow links."""
    wanted = probes.lone(shape, probes.FULL_KILOBYTES, probes.FULL_LONE_S, probes.KILOBYTE)
    return replace(wanted, lanes=1)


def _losses(
    exchange: Exchange, directions: Sequence[ProbedDirection], effort: Effort, found: Found
) -> None:
    """Many packets where some should be lost."""
    lossy = {probed: probes.losses(probed.shape) for probed in directions if probed.shape.loss}
    sends = [
        send for probed, lone in lossy.items() for send in probed.scattered(lone, Purpose.LOSS)
    ]
    arrivals = exchange.probe(sends, under_way_s(directions, {}) + _FULL_SETTLE_S)
    for probed, lone in lossy.items():
        arrived = len(probed.arrivals(arrivals, Purpose.LOSS))
        achieved, evidence = found[probed.number]
        found[probed.number] = (
            replace(achieved, loss=(lone.count - arrived) / lone.count),
            replace(evidence, loss_sent=lone.count, loss_received=arrived),
        )


def tcp_fills(probed: ProbedDirection) -> bool:
    """Whether TCP can be expected to keep this link busy: little loss, and a queue that suits the round trip."""
    shape = probed.shape
    if shape.rate_bps is None or shape.loss > _MOST_LOSS or probed.back.loss > _MOST_LOSS:
        return False
    under_way = shape.rate_bps / 8 * (shape.delay_s + probed.back.delay_s)
    return queue_bytes(shape, probed.profile.mtu) >= _LEAST_QUEUE * under_way


def _trains(
    exchange: Exchange, directions: Sequence[ProbedDirection], effort: Effort, found: Found
) -> None:
    """For the links that TCP would not fill."""
    short = [probed for probed in directions if not tcp_fills(probed)]
    trains = trains_of(short)
    departs = train_times(trains, short)
    sends = [
        send
        for probed in short
        if probed.number in departs
        for send in probed.back_to_back(trains[probed.number], departs[probed.number])
    ]
    arrivals = exchange.probe(sends, under_way_s(short, trains) + _FULL_SETTLE_S)
    for probed in short:
        achieved, evidence = found[probed.number]
        length = length_of(probed, trains.get(probed.number))
        rate_bps = probed.train_rate_bps(probed.arrivals(arrivals, Purpose.TRAIN))
        found[probed.number] = (
            replace(achieved, rate_bps=rate_bps),
            replace(evidence, by_train=True, **length),
        )


def _streams(
    exchange: Exchange,
    directions: Sequence[ProbedDirection],
    effort: Effort,
    found: Found,
    progress: Progress,
) -> None:
    """One direction after the other, so that data does not wait behind the other's acknowledgements."""
    for way in (UP, DOWN):
        wanted = [probed for probed in directions if probed.direction == way and tcp_fills(probed)]
        for together in side_by_side(wanted):
            lasts = {probed: _lasts_s(probed, effort) for probed in together}
            streams = run_streams(
                exchange, {(probed.lanes[0], way): lasts[probed] for probed in together}
            )
            for probed in together:
                stream = streams[probed.lanes[0], way]
                rate_bps = stream_rate_bps(stream.frames, effort.skip_s, stream.missed)
                achieved, evidence = found[probed.number]
                found[probed.number] = (
                    replace(achieved, rate_bps=rate_bps),
                    replace(evidence, train_packets=len(stream.frames) or 1, train_s=lasts[probed]),
                )
                progress(f"{probed.profile.name} {way}")


def _lasts_s(probed: ProbedDirection, effort: Effort) -> float:
    """As asked, or a few frames on very slow links."""
    assert probed.shape.rate_bps is not None
    frame = probed.profile.mtu + ETHERNET_HEADER
    return max(effort.seconds, _FEWEST_FRAMES * frame * 8 / probed.shape.rate_bps)


def side_by_side(directions: Sequence[ProbedDirection]) -> list[list[ProbedDirection]]:
    """Slow links at the same time, fast ones alone."""
    groups: list[list[ProbedDirection]] = []
    load = 0.0
    for probed in sorted(directions, key=lambda probed: probed.shape.rate_bps or 0.0):
        rate_bps = probed.shape.rate_bps or 0.0
        if groups and load + rate_bps <= AT_ONCE_BPS:
            groups[-1].append(probed)
            load += rate_bps
        else:
            groups.append([probed])
            load = rate_bps
    return groups
