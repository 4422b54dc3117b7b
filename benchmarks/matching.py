"""Which boxes hold a point: the index of the Publish/Subscribe map beside a scan of every box, and a broker's clients.

`python -m benchmarks.matching [--subscriptions N] [--events N] [--json] [--check]`. See docs/explanation/benchmarks.md.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from benchmarks.support.harness import Report, run
from nodes.overlay.broker.subscriptions import Subscriptions
from nodes.overlay.zorder_map.registry import Matching
from nodes.protocol.interests import Interest
from nodes.protocol.regions import Box, Point
from nodes.protocol.wire import MAX_COORDINATE, Kind, Message
from testbed.errors import TestbedError

# Boxes and points to match, drawn in several ways; the seed decides everything.


BITS = 16  # of a coordinate
SIDE = 2**BITS
Corners = NDArray[np.int64]  # [box, dimension]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of boxes and points. Lengths are shares of the space's side."""

    dimensions: int
    reach: float  # from a box's middle to its sides, in the mean; exponentially distributed
    around: (
        float | None
    )  # mean distance from the space's centre in a dimension, exponentially; None: anywhere


DISTRIBUTIONS: Mapping[str, Distribution] = {
    "exponential": Distribution(2, 1 / 100, 1 / 8),
    "uniform": Distribution(2, 1 / 100, None),
    "large": Distribution(2, 1 / 8, None),
    "four dimensions": Distribution(4, 1 / 10, None),
}


@dataclass(frozen=True, slots=True)
class Workload:
    """Subscriptions, numbered, and events."""

    low: Corners
    high: Corners
    points: list[Point]

    def boxes(self) -> list[Box]:
        """The subscriptions as the index needs them."""
        corners = zip(self.low.tolist(), self.high.tolist(), strict=True)
        return [Box(tuple(low), tuple(high)) for low, high in corners]


def draw(name: str, subscriptions: int, events: int, seed: int) -> Workload:
    """Draw boxes and points; boxes that reach over the edge of the space end there."""
    how = DISTRIBUTIONS[name]
    random = np.random.default_rng([seed, *name.encode()])

    def places(count: int) -> NDArray[np.float64]:
        if how.around is None:
            return random.uniform(0, SIDE, (count, how.dimensions))
        return random.laplace(SIDE / 2, how.around * SIDE, (count, how.dimensions))

    middles = _within(places(subscriptions))
    reach = random.exponential(how.reach * SIDE, middles.shape)
    points = _within(places(events)).astype(np.int64)
    return Workload(
        _within(middles - reach).astype(np.int64),
        _within(middles + reach).astype(np.int64),
        [tuple(point) for point in points.tolist()],
    )


def _within(places: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(places, 0, SIDE - 1)


# The index's peers: a comparison with every box, in plain Python and with numpy.


Match = Callable[[Point], list[int]]


def plain_scan(workload: Workload) -> Match:
    """Keep all corners of a box in one tuple: of the variants tried, this one is fastest in Python."""
    if workload.low.shape[1] != 2:
        return _any_dimensions(workload)
    sides = np.stack([workload.low, workload.high], axis=2).reshape(len(workload.low), -1)
    rows = [(*corners, subscription) for subscription, corners in enumerate(sides.tolist())]

    def match(point: Point) -> list[int]:
        x, y = point
        return [subscription for a, b, c, d, subscription in rows if a <= x <= b and c <= y <= d]

    return match


def _any_dimensions(workload: Workload) -> Match:
    boxes = list(enumerate(workload.boxes()))
    return lambda point: [subscription for subscription, box in boxes if box.contains(point)]


def numpy_scan(workload: Workload) -> Match:
    """A column for each side; later dimensions are compared only for boxes that matched in the earlier ones."""
    sides = [
        (np.ascontiguousarray(low), np.ascontiguousarray(high))
        for low, high in zip(workload.low.T, workload.high.T, strict=True)
    ]

    def match(point: Point) -> list[int]:
        (low, high), *others = sides
        left = np.flatnonzero((low <= point[0]) & (point[0] <= high))
        for (low, high), coordinate in zip(others, point[1:], strict=True):
            left = left[(low[left] <= coordinate) & (coordinate <= high[left])]
        found: list[int] = left.tolist()
        return found

    return match


# A broker's clients that subscribe to areas: the cost of finding those that get a publication.
#
# A broker compares every publication with the interests of its own clients
# (`nodes.overlay.broker.subscriptions`), one after the other. Clients that want the whole topic share one
# interest; a client that wants an area has one of its own.


TOPIC = "alerts"
CLIENTS = (10, 100, 1_000)  # of one broker
LEVELS = (1, 3, 4)  # the lowest levels that they want
REACH = 1 / 20  # from an area's middle to its sides, as a share of the space's side
ROUNDS = 5  # the fastest counts: others may use the machine


def with_areas(count: int, seed: int) -> Subscriptions:
    """Clients that each want events around a place of their own, from some level on."""
    random, found = Random(f"{seed} {count}"), Subscriptions(by_area=False)
    reach = round(REACH * MAX_COORDINATE)
    for number in range(count):
        middle = _place(random)
        box = Box(
            tuple(max(0, at - reach) for at in middle),
            tuple(min(MAX_COORDINATE, at + reach) for at in middle),
        )
        found.add(f"siren-{number}", Interest(TOPIC, box, random.choice(LEVELS)).text)
    return found


def with_topic(count: int) -> Subscriptions:
    """Clients that each want the whole topic."""
    found = Subscriptions(by_area=False)
    for number in range(count):
        found.add(f"siren-{number}", TOPIC)
    return found


def alerts(count: int, seed: int) -> list[Message]:
    """Publications at any place, of all levels."""
    random = Random(seed)
    return [
        Message(Kind.PUBLISH, random.randint(1, 5), topic=TOPIC, place=_place(random))
        for _ in range(count)
    ]


def seconds_each(subscriptions: Subscriptions, messages: Sequence[Message]) -> float:
    """Processor time to find the subscribers of one publication."""
    return min(_timed(subscriptions, messages) for _ in range(ROUNDS)) / len(messages)


def _timed(subscriptions: Subscriptions, messages: Sequence[Message]) -> float:
    before = time.process_time()
    for message in messages:
        subscriptions.wanting(message)
    return time.process_time() - before


def _place(random: Random) -> tuple[int, int]:
    return random.randrange(MAX_COORDINATE + 1), random.randrange(MAX_COORDINATE + 1)


EVENTS_PER_S = 1_000  # of one core
LIMITS = {
    **{f"event, {name}": 1.0 for name in DISTRIBUTIONS},  # of 1 ms of processor time
    "event, large": 2.0,  # nearly 5,000 boxes contain each point, and listing them all takes time
    **{f"of a scan, {name}": 0.2 for name in DISTRIBUTIONS},  # index / plain Python
    "clients": 1.0,  # of a tenth of the time that a broker has for a message: 100 clients with areas
}
SCANNED = 50  # events that are compared with every box: a scan takes long
WEIGHED = 10_000  # subscriptions in the measurement of memory
BROKER_S = 1 / 3_000  # that a broker has for a message (benchmarks.brokers, forward)
LIMITED = 100  # clients with areas, a tenth of that
SEED = 1


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.matching", description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=100_000, metavar="N")
    parser.add_argument("--events", type=int, default=2_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    if min(asked.subscriptions, asked.events) < 1:
        parser.error("at least one subscription and one event are needed")
    return run(
        Report(LIMITS),
        partial(_measure, asked.subscriptions, asked.events),
        as_json=asked.json,
        check=asked.check,
    )


def _measure(subscriptions: int, events: int, report: Report, _: Path) -> None:
    clients(events, report)
    for name in DISTRIBUTIONS:
        workload = draw(name, subscriptions, events, SEED)
        before = time.process_time()
        index = indexed(workload)
        took = time.process_time() - before
        report.took(f"{name}: {subscriptions:,} subscriptions added", took)

        scans = {"plain Python": plain_scan(workload), "numpy": numpy_scan(workload)}
        few = workload.points[:SCANNED]
        must_agree(index.match, scans["plain Python"], few)
        must_agree(index.match, scans["numpy"], workload.points)
        ours = per_event(index.match, workload.points)
        theirs = {peer: per_event(scan, few) for peer, scan in scans.items()}
        found = sum(len(index.match(point)) for point in workload.points) / events
        report.ratios[f"event, {name}"] = round(ours * EVENTS_PER_S, 3)
        report.ratios[f"of a scan, {name}"] = round(ours / theirs["plain Python"], 4)
        scanned = ", ".join(f"{peer} {seconds * 1e3:.3f}" for peer, seconds in theirs.items())
        report.details[f"{name}: ms an event"] = f"index {ours * 1e3:.3f}, {scanned}"
        report.details[f"{name}: found by an event"] = round(found, 1)
        report.details[f"{name}: bytes a subscription"] = weight(name, subscriptions)


def clients(events: int, report: Report) -> None:
    """Measure what areas cost at delivery, beside clients that want the whole topic."""
    messages = alerts(events, SEED)
    for count in CLIENTS:
        ours, plain = with_areas(count, SEED), with_topic(count)
        took, whole = (seconds_each(each, messages) for each in (ours, plain))
        found = sum(len(ours.wanting(message)) for message in messages) / events
        cost = f"{took * 1e6:.1f} to find {found:.1f}; {whole * 1e6:.1f} if all want the topic"
        report.details[f"{count:,} clients with areas: µs a publication"] = cost
        if count == LIMITED:
            report.ratios["clients"] = round(10 * took / BROKER_S, 3)


def indexed(workload: Workload) -> Matching[int]:
    """The index of the subscriptions, each by its number."""
    index: Matching[int] = Matching(workload.low.shape[1], BITS)
    for subscription, box in enumerate(workload.boxes()):
        index.add(subscription, box)
    return index


def per_event(match: Match, points: Sequence[Point]) -> float:
    """Seconds of processor time for each event."""
    before = time.process_time()
    for point in points:
        match(point)
    return (time.process_time() - before) / len(points)


def must_agree(ours: Match, peer: Match, points: Sequence[Point]) -> None:
    """Fail unless index and scan agree: a fast but wrong index is not measured."""
    for point in points:
        if sorted(ours(point)) != peer(point):
            raise TestbedError(
                f"the index and a scan differ at {point}", "python -m pytest -k zorder_matching"
            )


def weight(name: str, subscriptions: int) -> int:
    """The memory of the index, boxes included."""
    workload = draw(name, min(subscriptions, WEIGHED), 1, SEED)
    tracemalloc.start()
    try:
        index = indexed(workload)
        taken, _ = tracemalloc.get_traced_memory()
        return taken // len(index.boxes)
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    sys.exit(main())
