"""The quick look: a train and a few lone packets for each line, all at the same time."""

from collections.abc import Sequence
from typing import Any

from testbed.links.calibration import probing
from testbed.links.calibration.exchange import Exchange
from testbed.links.calibration.lines import Line, Purpose, train_times, under_way_s
from testbed.links.calibration.probing import Train
from testbed.links.calibration.verdict import Calibrated, Evidence, Method, Numbers, judge
from testbed.topology.model import Profile

_SETTLE_S = 0.3


def lanes_for_quick(profile: Profile) -> int:
    """How many scratch links it takes."""
    return 1 + max(probing.quick_lone(shape).lanes for shape in (profile.up, profile.down))


def quick(exchange: Exchange, lines: Sequence[Line]) -> list[Calibrated]:
    """Rate and delay of each line; not its loss, which needs many packets."""
    lone = {line.number: probing.quick_lone(line.shape) for line in lines}
    trains = trains_of(lines)
    departs = train_times(trains, lines)
    sends = [send for line in lines for send in line.scattered(lone[line.number])]
    for line in lines:
        if line.number in departs:
            sends += line.back_to_back(trains[line.number], departs[line.number])
    heard = exchange.probe(sends, under_way_s(lines, trains) + _SETTLE_S)
    found = []
    for line in lines:
        alone = line.heard(heard, Purpose.DELAY)
        rate_bps = line.train_rate_bps(line.heard(heard, Purpose.TRAIN))
        evidence = Evidence(
            lone_sent=lone[line.number].count,
            lone_heard=len(alone),
            **length_of(line, trains.get(line.number)),
        )
        achieved = Numbers(rate_bps, line.delay_s(alone))
        name, way = line.profile.name, line.direction
        found.append(judge(name, way, Method.QUICK, line.shape, achieved, evidence))
    return found


def trains_of(lines: Sequence[Line]) -> dict[int, Train]:
    """By the line's number, where there can be one."""
    found = ((line.number, line.train()) for line in lines)
    return {number: train for number, train in found if train is not None}


def length_of(line: Line, train: Train | None) -> dict[str, Any]:
    """A train as evidence."""
    if train is None or line.shape.rate_bps is None:
        return {}
    return {"train_packets": train.count, "train_s": train.lasts_s(line.shape.rate_bps)}
