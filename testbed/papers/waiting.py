"""How long a broker should wait for others' readings: what Kawakami 2016 leaves open, on simulated 3G and MVNO lines.

Sites with a broker and a gauge each, on a line of their own, push readings to one office (`collection`, descending).
For each time to wait: how late readings come, how old the newest reading of each gauge is at the office, averaged over
time, and how many messages between brokers a reading costs.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from nodes.wire import Kind
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.node import EPOCH_NS
from testbed.backends.simulated.playing import play
from testbed.backends.simulated.trace import MESSAGES, link_row
from testbed.places import RunPlace
from testbed.topology import load_text
from testbed.topology.model import NodeKind

SERVICE_NS = 1_000_000
TOPIC, OFFICE = "water", "office"
PERIODS_S = range(1, 11)
LINES = ("3g-384k", "mvno-128k")
# The brokers form their graph, then gauges begin; when three of the longest periods are over, every key is final.
BEGIN_S, LEARNT_S = 20, 55
SECOND = 1_000_000_000


class Reading(NamedTuple):
    """At the office."""

    gauge: int
    published_ns: int
    came_ns: int


def topology_of(wait_ms: int, rounds: int, seed: int, measured_s: int) -> str:
    """As a topology file; `rounds`: sites for each period."""
    groups, events = [], []
    for line, profile in enumerate(LINES):
        count = rounds * len(PERIODS_S[line :: len(LINES)])
        groups += [
            f"  lines-{line}: {{kind: router, count: {count}, link: {profile}}}",
            f'  brokers-{line}: {{kind: broker, count: {count}, router: "lines-{line}[*]"}}',
            f'  gauges-{line}: {{kind: sensor, count: {count}, router: "lines-{line}[*]"}}',
        ]
    for place, period in enumerate(PERIODS_S):
        line, first = place % len(LINES), place // len(LINES) * rounds
        chosen = f"gauges-{line}[{first}..{first + rounds - 1}]"
        events.append(
            f"    - {{at: {BEGIN_S}s, publish: {{from: '{chosen}', topic: {TOPIC}, size: 4B, period: {period}s}}}}"
        )
    return "\n".join(
        [
            "name: waiting",
            f"seed: {seed}",
            "groups:",
            *groups,
            "nodes:",
            "  center: {kind: broker, link: lan}",
            f"  {OFFICE}: {{kind: subscriber, link: lan, topics: [{TOPIC}], home: center}}",
            f"overlay: {{method: collection, wait_s: {wait_ms / 1000:g}}}",
            "scenario:",
            f"  duration: {LEARNT_S + measured_s}s",
            "  settle: 15s",
            "  events:",
            *events,
            "",
        ]
    )


def measure_waiting(
    wait_ms: int, rounds: int, seed: int, trial: int, measured_s: int
) -> Iterator[dict[str, Any]]:
    """One row: of what was published in this time, when all periods were known."""
    text = topology_of(wait_ms, rounds, seed + trial, measured_s)
    with TemporaryDirectory() as folder:
        lab = SimulatedLab(load_text(text, "waiting.yaml"), RunPlace(Path(folder)), SERVICE_NS)
        played = play(lab, lambda seconds: None)
    begin_ns = played.start + LEARNT_S * SECOND
    end_ns = begin_ns + measured_s * SECOND
    readings = list(_readings(lab))
    counted = [one for one in readings if begin_ns <= one.published_ns < end_ns]
    due = [one for one in played.timeline if begin_ns <= played.start + one.at_ns < end_ns]
    delays = sorted((one.came_ns - one.published_ns) / SECOND for one in counted)
    ages = [mean_age(of_one, begin_ns, end_ns) for of_one in _by_gauge(readings)]
    yield {
        "trial": trial,
        "sites": rounds * len(PERIODS_S),
        "wait_ms": wait_ms,
        "missing": len(due) - len(counted),
        "delay_s": sum(delays) / len(delays),
        "delay_p95_s": delays[int(0.95 * (len(delays) - 1))],
        "age_s": sum(ages) / len(ages),
        "messages": _messages(lab, begin_ns, end_ns) / len(counted),
    }


def mean_age(readings: Iterable[Reading], begin_ns: int, end_ns: int) -> float:
    """How old the newest reading of a gauge was at the office, on average over this time; seconds.

    From the first reading on that had come by then, or later if none had.
    """
    newest: list[tuple[int, int]] = []  # from when on, and when that one was published
    for one in sorted(readings, key=lambda reading: reading.came_ns):
        if not newest or one.published_ns > newest[-1][1]:
            newest.append((one.came_ns, one.published_ns))
    total = span = 0.0
    for (came_ns, published_ns), (until_ns, _) in pairwise([*newest, (end_ns, 0)]):
        since, until = max(came_ns, begin_ns), min(until_ns, end_ns)
        if since < until:
            # The age grows steadily from one moment to the other.
            total += (until - since) * ((since + until) / 2 - published_ns)
            span += until - since
    return total / span / SECOND


def _readings(lab: SimulatedLab) -> Iterator[Reading]:
    """All that the office's application was handed, on the loop's clock."""
    for line in lab.nodes[OFFICE].log.lines:
        told = json.loads(line)
        if told["event"] == "receive":
            moments = (told["published_ns"] - EPOCH_NS, told["t"] - EPOCH_NS)
            yield Reading(told["origin"], *moments)


def _by_gauge(readings: Iterable[Reading]) -> Iterable[list[Reading]]:
    found: defaultdict[int, list[Reading]] = defaultdict(list)
    for one in readings:
        found[one.gauge].append(one)
    return found.values()


def _messages(lab: SimulatedLab, begin_ns: int, end_ns: int) -> float:
    """How many messages between brokers carried readings that were published in this time; one that is joined of
    several counts in parts.
    """
    brokers = {node.name for node in lab.topology.nodes if node.kind is NodeKind.BROKER}
    rows: dict[str, list[Any]] = {name: [] for name in MESSAGES.names}
    for watch in lab.watches:
        if watch.link in brokers and watch.direction == "up":
            link_row(watch, {}, rows)
    names = ("kind", "dst", "published_ns", "joined")
    parts: list[float] = [
        1 / joined
        for kind, dst, published_ns, joined in zip(*(rows[name] for name in names), strict=True)
        if kind == Kind.PUBLISH.name and dst in brokers
        if begin_ns <= published_ns - EPOCH_NS < end_ns
    ]
    return sum(parts)
