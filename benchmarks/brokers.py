"""What a broker costs, how fast an overlay forms, its idle traffic, and mosquitto beside all that.

`python -m benchmarks.brokers [--what forward,form,idle,mosquitto] [--json] [--check]`.
See docs/explanation/benchmarks.md.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from benchmarks.support.brokers.forwarding import (
    PAYLOAD_BYTES,
    ROUTINE,
    URGENT,
    Forwarded,
    forwarded,
    ours,
    theirs,
)
from benchmarks.support.brokers.mqtt_valley import MqttValley
from benchmarks.support.brokers.our_valley import HALLS, SITES, OurValley
from benchmarks.support.brokers.overlay_labs import (
    broker_pids,
    idle_rates,
    measure_formation,
    overlay_lab,
)
from benchmarks.support.brokers.pair import direct_delay
from benchmarks.support.brokers.scene import Reception, timelines
from benchmarks.support.brokers.valley import Contestant, Valleys
from benchmarks.support.delivery.contestant import Mosquitto
from benchmarks.support.harness import Report, json_row, run
from nodes.overlay import BETWEEN_BROKERS

LIMITS = {
    "forward_star": 1.0,  # 3,000 / messages for a second of the broker's processor time
    "forward_overlay": 1.0,
    "forward_custody": 1.0,
    "forward_delay": 1.0,  # of 2 ms: what the slowest of these adds to the delay of a single message
    "form": 1.0,  # of 30 s: 200 brokers, started at once, are at the places that sorting gives
    "idle": 1.0,  # of 200 B/s on a broker's link, both ways, the mean; the worst method
    "backlog_vs_mosquitto": 0.5,  # 99th percentile of the delays of level 5
    "quiet_vs_mosquitto": 1.1,
}
MESSAGES_PER_S, ADDED_S = 3_000.0, 0.002
SINGLES = 300  # messages whose delay is measured
BACKLOG, QUIET = "with a backlog of photographs", "alerts only"
FORM_S, FORM_METHOD, FORM_TOPICS = 30.0, "sg-tbps", 1
IDLE_BYTES_PER_S, IDLE_TOPICS = 200.0, 5
SEED = 2018
AFTER_S = 120.0  # wait this long after the last message for those on their way
WIDTH = 130  # columns of the tables


@dataclass(frozen=True, slots=True)
class Asked:
    """How long and how many; a quick run takes less."""

    blast_s: float
    brokers_form: int
    brokers_idle: int
    methods: tuple[str, ...]  # of idle overlays
    calm_s: float  # after the last of those is up
    idle_s: float
    play_s: float
    as_json: bool

    def show(self, *what: object) -> None:
        """Print tables, unless the output is JSON."""
        if not self.as_json:
            Console(highlight=False, width=WIDTH).print(*what)


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.brokers", description=__doc__)
    parser.add_argument("--what", default=",".join(PARTS), help="which parts; all")
    parser.add_argument("--blast", type=float, default=5.0, help="seconds as fast as it goes")
    parser.add_argument("--form", type=int, default=200, help="brokers that find one another")
    parser.add_argument("--idle", type=int, default=50, help="brokers of an idle overlay")
    parser.add_argument(
        "--methods", default=",".join(BETWEEN_BROKERS), help="idle overlays side by side; all"
    )
    parser.add_argument("--calm", type=float, default=600.0, help="seconds before they are counted")
    parser.add_argument("--idle-seconds", type=float, default=240.0, help="that are counted")
    parser.add_argument("--play", type=float, default=90.0, help="seconds beside mosquitto")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    options = parser.parse_args()
    chosen = options.what.split(",")
    if unknown := set(chosen) - PARTS.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there is {', '.join(PARTS)}")
    methods = options.methods.split(",")
    if unknown := set(methods) - set(BETWEEN_BROKERS):
        there = ", ".join(BETWEEN_BROKERS)
        parser.error(f"there is no method {', '.join(sorted(unknown))}; there is {there}")
    asked = Asked(
        options.blast,
        options.form,
        options.idle,
        tuple(methods),
        options.calm,
        options.idle_seconds,
        options.play,
        options.json,
    )

    def measure(report: Report, folder: Path) -> None:
        for part in chosen:
            (folder / part).mkdir()
            PARTS[part](report, folder / part, asked)

    return run(Report(LIMITS), measure, as_json=options.json, check=options.check)


# One broker


def forward(report: Report, folder: Path, asked: Asked) -> None:
    """Forward small messages through one broker, one after the other, on the loopback."""
    Mosquitto("mosquitto", "mqtt", ("paho", "paho-mqtt")).check()
    limited = {
        "forward_star": ours("star", "star", "fifo", ROUTINE, custody=False),
        "forward_overlay": ours("sg-tbps", "sg-tbps", "fifo", ROUTINE, custody=False),
        "forward_custody": ours("sg-tbps, custody", "sg-tbps", "fifo", URGENT, custody=True),
    }
    others = [
        ours("sg-tbps, preemptive", "sg-tbps", "preemptive", ROUTINE, custody=False),
        ours("sg-tbps, preemptive, custody", "sg-tbps", "preemptive", URGENT, custody=True),
        theirs("mosquitto, QoS 0", 0),
        theirs("mosquitto, QoS 1", 1),
    ]
    direct_s = direct_delay(PAYLOAD_BYTES, SINGLES)
    found = {
        way.name: forwarded(way, folder, asked.blast_s, SINGLES)
        for way in (*limited.values(), *others)
    }
    for ratio, way in limited.items():
        report.ratios[ratio] = round(MESSAGES_PER_S / found[way.name].per_processor_s, 3)
    report.ratios["forward_delay"] = added([found[w.name] for w in limited.values()], direct_s)
    asked.show(forwarding_table(list(found.values()), direct_s))
    if asked.as_json:
        report.details["one broker"] = [json_row(one) for one in found.values()]
        report.details["without a broker, s"] = direct_s


def added(found: Sequence[Forwarded], direct_s: float) -> float:
    """The largest addition to the delay of a single message, as a share of its limit."""
    return round((max(one.delay_s for one in found) - direct_s) / ADDED_S, 3)


# Many brokers


def form(report: Report, folder: Path, asked: Asked) -> None:
    """Start brokers with a subscriber each at once, and wait until each has the neighbours that sorting gives."""
    lab = overlay_lab(folder, "form", FORM_METHOD, asked.brokers_form, FORM_TOPICS, SEED)
    try:
        found = measure_formation(lab, asked.brokers_form)
    finally:
        lab.clear()
    report.took(f"{asked.brokers_form} brokers have found one another", found.seconds)
    report.took(f"testbed up ({2 * asked.brokers_form} nodes)", found.up_s)
    report.ratios["form"] = round(found.seconds / FORM_S, 3)
    report.details["keys, levels"] = [found.standing.keys, found.standing.levels]


def idle(report: Report, folder: Path, asked: Asked) -> None:
    """Run overlays of these methods at the same time, publish nothing, and count bytes on the brokers' links."""
    labs = {
        method: overlay_lab(folder, f"idle-{method}", method, asked.brokers_idle, IDLE_TOPICS, SEED)
        for method in asked.methods
    }
    try:
        for lab in labs.values():
            lab.up()
        pids = {method: broker_pids(lab, asked.brokers_idle) for method, lab in labs.items()}
        time.sleep(asked.calm_s)
        found = idle_rates(pids, asked.idle_s)
    finally:
        for lab in labs.values():
            lab.clear()
    report.ratios["idle"] = round(max(map(mean, found.values())) / IDLE_BYTES_PER_S, 3)
    for method, rates in found.items():
        report.details[f"idle, {method}: B/s on a broker's link, mean and most"] = [
            round(mean(rates)),
            round(max(rates)),
        ]


# Beside mosquitto, on narrow links


def beside_mosquitto(report: Report, folder: Path, asked: Asked) -> None:
    """Send alerts on 3G links through our overlay and through mosquitto, with and without a backlog."""
    halls, sites = OurValley(HALLS), OurValley(SITES)
    hubs = [MqttValley("mosquitto"), MqttValley("mosquitto, two connections", two=True)]
    contestants_here: list[Contestant] = [halls, sites, *hubs]
    for contestant in contestants_here:
        contestant.check()
    with Valleys(folder) as valleys:
        for title in (BACKLOG, QUIET):
            for contestant in contestants_here:
                sent = timelines(asked.play_s, SEED, backlog=title is BACKLOG)
                valleys.add(title, contestant, sent)
        valleys.up()
        found = valleys.played(asked.play_s + AFTER_S)
    for title, ratio in ((BACKLOG, "backlog_vs_mosquitto"), (QUIET, "quiet_vs_mosquitto")):
        rows = {row.name: row for row in found[title]}
        report.ratios[ratio] = compared(rows, halls.name, [hub.name for hub in hubs])
        asked.show(alerts_table(title, found[title]))
        if asked.as_json:
            report.details[f"alerts, {title}"] = [json_row(row) for row in found[title]]


def compared(rows: dict[str, Reception], ours: str, theirs: Sequence[str]) -> float:
    """The 99th percentile of our delays / that of the best of theirs."""
    return round(rows[ours].p99_s / min(rows[name].p99_s for name in theirs), 3)


# The results as tables


def forwarding_table(found: Sequence[Forwarded], direct_s: float) -> Table:
    """The cost of one broker."""
    title = f"one broker; {direct_s * 1e3:.3f} ms without any"
    columns = ("messages a processor second", "a second", "delay ms", "added ms")
    shown = _empty_table(title, columns)
    for one in found:
        shown.add_row(
            one.name,
            f"{one.per_processor_s:,.0f}",
            f"{one.per_s:,.0f}",
            f"{one.delay_s * 1e3:.3f}",
            f"{(one.delay_s - direct_s) * 1e3:.3f}",
        )
    return shown


def alerts_table(title: str, found: Sequence[Reception]) -> Table:
    """The delays of level 5."""
    shown = _empty_table(title, ("alerts", "p50 s", "p99 s", "largest s", "photographs"))
    for one in found:
        delays = (one.p50_s, one.p99_s, one.largest_s)
        photographs = "" if math.isnan(one.photographs) else f"{one.photographs:.0%}"
        arrived = f"{one.arrived} of {one.due}"
        shown.add_row(one.name, arrived, *(f"{delay:.3f}" for delay in delays), photographs)
    return shown


def _empty_table(title: str, columns: Sequence[str]) -> Table:
    shown = Table(title=title)
    shown.add_column("", no_wrap=True)
    for column in columns:
        shown.add_column(column, justify="right")
    return shown


PARTS: dict[str, Callable[[Report, Path, Asked], None]] = {
    "forward": forward,
    "form": form,
    "idle": idle,
    "mosquitto": beside_mosquitto,
}


if __name__ == "__main__":
    sys.exit(main())
