"""How fast virtual time passes: the loop alone, messages between many nodes, whole labs.

See docs/explanation/simulation.md.
`python -m benchmarks.simulation [--json] [--check] [FILE ...]`. All times are processor time of one core.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.harness import Report, run
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import Loop
from testbed.backends.simulated.network import Network
from testbed.backends.simulated.play import play
from testbed.places import RunPlace
from testbed.topology import load

LIMITS = {
    "simple_event": 1.0,  # of 5 us: 200,000 a second, with 1,000 timers pending
    "scenario": 1.0,  # of the real duration of the scenario
}
EVENTS, EVENT_S = 1_000_000, 5e-6
PLANNED = (10, 1_000, 100_000)
NODES, CHAINS, LENGTH = 100_000, 10_000, 50
FILES = (Path("topologies/demo.yaml"), Path("topologies/valleys-300.yaml"))


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=FILES, help="topology files")
    parser.add_argument("--events", type=int, default=EVENTS, help="of the loop alone")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    measure = partial(_measure, files=asked.files, events=asked.events)
    return run(Report(LIMITS), measure, as_json=asked.json, check=asked.check)


def _measure(report: Report, folder: Path, files: list[Path], events: int) -> None:
    for planned in PLANNED:
        rate = _loop_rate(planned, events)
        report.details[f"events a second, {planned} planned"] = round(rate)
        if planned == PLANNED[1]:
            report.ratios["simple_event"] = round(1 / rate / EVENT_S, 3)
    report.details[f"messages a second between {NODES} nodes"] = round(_message_rate())
    for file in files:
        _lab(report, file, folder)


def _loop_rate(planned: int, events: int) -> float:
    loop = Loop()

    def again(left: int) -> None:
        if left:
            loop.at(loop.now + 1000 * (left % 7 + 1), again, left - 1)

    for number in range(planned):
        loop.at(number, again, max(1, events // planned))
    began = time.process_time()
    loop.run(10**15)
    return loop.happened / (time.process_time() - began)


class _Pass(NamedTuple):
    to: int
    message: int


class _Passing:
    """Forwards each message to another node, as often as its content says."""

    def __init__(self, number: int) -> None:
        self._number = number

    def on_message(self, sender: int, message: int, now: float) -> list[_Pass]:
        return [_Pass((self._number * 7919 + message) % NODES, message - 1)] if message else []

    def on_peer_lost(self, number: int, now: float) -> list[_Pass]:
        return []

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[_Pass]:
        return []


def _message_rate() -> float:
    network = Network(Loop(), _Passing, lambda action: int(action.to), delay_ns=50_000_000)
    began = time.process_time()
    for number in range(CHAINS):
        network.call(number, lambda core, now: core.on_message(0, LENGTH, now))
    network.loop.run(10**15)
    return network.sent / (time.process_time() - began)


def _lab(report: Report, file: Path, folder: Path) -> None:
    topology = load(file)
    began = time.process_time()
    lab = SimulatedLab(topology, RunPlace(folder), service_ns=1_000_000)
    play(lab, lambda seconds: None)
    took = time.process_time() - began
    report.took(topology.name, took)
    report.details[f"{topology.name}: nodes, events"] = [len(topology.nodes), lab.loop.happened]
    report.details[f"{topology.name}: events a second"] = round(lab.loop.happened / took)
    worst = max(report.ratios.get("scenario", 0.0), took / topology.scenario.duration_s)
    report.ratios["scenario"] = round(worst, 3)


if __name__ == "__main__":
    sys.exit(main())
