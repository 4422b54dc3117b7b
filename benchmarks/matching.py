"""Whose boxes hold a point: the index of the Publish/Subscribe map beside looking at every box, and a broker's guests.

`python -m benchmarks.matching [--subscriptions N] [--events N] [--json] [--check]`. See docs/benchmarks.md.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.support.matching.guests import (
    GUESTS,
    alerts,
    seconds_each,
    with_areas,
    with_topic,
)
from benchmarks.support.matching.scans import Match, numpy_scan, plain_scan
from benchmarks.support.matching.workloads import BITS, DISTRIBUTIONS, Workload, draw
from benchmarks.support.report import Report
from benchmarks.support.running import run
from nodes.overlay.zorder_map.curve import Point
from nodes.overlay.zorder_map.matching import Matching
from testbed.errors import TestbedError

EVENTS_PER_S = 1_000  # of one core
LIMITS = {
    **{f"event, {name}": 1.0 for name in DISTRIBUTIONS},  # of 1 ms of processor time
    "event, large": 2.0,  # nearly 5,000 boxes hold each point, and to tell them all takes time
    **{f"of a scan, {name}": 0.2 for name in DISTRIBUTIONS},  # index / plain Python
    "guests": 1.0,  # of a tenth of the time that a broker has for a message: 100 guests with areas
}
SCANNED = 50  # events that are looked for in every box: a scan takes long
WEIGHED = 10_000  # subscriptions whose memory is counted
BROKER_S = 1 / 3_000  # that a broker has for a message (benchmarks.brokers, forward)
LIMITED = 100  # guests with areas, a tenth of that
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
    guests(events, report)
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
        told = ", ".join(f"{peer} {seconds * 1e3:.3f}" for peer, seconds in theirs.items())
        report.details[f"{name}: ms an event"] = f"index {ours * 1e3:.3f}, {told}"
        report.details[f"{name}: found by an event"] = round(found, 1)
        report.details[f"{name}: bytes a subscription"] = weight(name, subscriptions)


def guests(events: int, report: Report) -> None:
    """What areas cost at delivery, beside guests that want the whole topic."""
    messages = alerts(events, SEED)
    for count in GUESTS:
        ours, plain = with_areas(count, SEED), with_topic(count)
        took, whole = (seconds_each(each, messages) for each in (ours, plain))
        found = sum(len(ours.wanting(message)) for message in messages) / events
        told = f"{took * 1e6:.1f} to find {found:.1f}; {whole * 1e6:.1f} if all want the topic"
        report.details[f"{count:,} guests with areas: µs a publication"] = told
        if count == LIMITED:
            report.ratios["guests"] = round(10 * took / BROKER_S, 3)


def indexed(workload: Workload) -> Matching[int]:
    """The subscriptions, each by its number."""
    index: Matching[int] = Matching(workload.low.shape[1], BITS)
    for who, box in enumerate(workload.boxes()):
        index.add(who, box)
    return index


def per_event(match: Match, points: Sequence[Point]) -> float:
    """Seconds of processor time."""
    before = time.process_time()
    for point in points:
        match(point)
    return (time.process_time() - before) / len(points)


def must_agree(ours: Match, peer: Match, points: Sequence[Point]) -> None:
    """What is fast and wrong is not measured."""
    for point in points:
        if sorted(ours(point)) != peer(point):
            raise TestbedError(
                f"the index and a scan differ at {point}", "python -m pytest -k zorder_matching"
            )


def weight(name: str, subscriptions: int) -> int:
    """What the index takes of memory, boxes included."""
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
