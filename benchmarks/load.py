"""Can this machine carry a large lab? Hundreds of containers under load, and their memory.

See docs/explanation/benchmarks.md.
`python -m benchmarks.load [--count 500] [--rate 500] [--seconds 30] [--json] [--check]`
"""

import argparse
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.support.docker_engine import copy_images, own_engine
from benchmarks.support.harness import Report, run
from benchmarks.support.labs import BenchmarkLab
from benchmarks.support.process_usage import MIB, Memory, memory_of
from testbed.keeper.client import Keeper
from testbed.places import LabPlace

LIMITS = {
    "node_memory": 1.0,  # of 20 MiB: the mean of the nodes' own memory
    "container_memory": 1.0,  # of 35 MiB: with the engine's process beside each container
    "undelivered": 0.0,  # of the expected deliveries
    "capture_drops": 0.0,  # of the packets
}
NODE_MIB, CONTAINER_MIB = 20, 35
SENSORS_PER_OFFICE = 9
_LAB = """\
name: {name}
defaults:
  link: mvno-128k
nodes:
  broker: {{kind: broker, link: lan}}
{offices}
groups:
  sensors: {{kind: sensor, count: {sensors}}}
scenario:
  duration: {seconds}s
  settle: 30s
  events:
    - at: 0s
      publish: {{from: "sensors[*]", topic: "readings/{{node}}", size: 300B, period: {period}us, spread: {period}us}}
"""


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="containers")
    parser.add_argument("--rate", type=float, default=500, help="messages a second, in all")
    parser.add_argument("--seconds", type=int, default=30, help="under load")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    measure = partial(carry, count=asked.count, rate=asked.rate, seconds=asked.seconds)
    return run(Report(LIMITS), measure, as_json=asked.json, check=asked.check)


def lab_text(name: str, count: int, rate: float, seconds: int) -> str:
    """One broker; each office subscribes to the readings of nine sensors, so that each message is delivered once."""
    offices = max(1, round((count - 1) / (SENSORS_PER_OFFICE + 1)))
    sensors = count - 1 - offices
    subscribed = [
        [f"readings/sensors-{n}" for n in range(sensors)][n::offices] for n in range(offices)
    ]
    return _LAB.format(
        name=name,
        offices="\n".join(
            f"  office-{n}: {{kind: subscriber, topics: [{', '.join(topics)}]}}"
            for n, topics in enumerate(subscribed)
        ),
        sensors=sensors,
        seconds=seconds,
        period=round(sensors / rate * 1e6),
    )


def carry(report: Report, folder: Path, count: int, rate: float, seconds: int) -> None:
    """Bring the lab up, measure it idle and under load, and take it down."""
    with own_engine(folder) as address, ExitStack() as whatever_is_left:
        copy_images(address)
        text = lab_text("load", count, rate, seconds)
        lab = BenchmarkLab("load", folder, text, "docker", {"DOCKER_HOST": address})
        whatever_is_left.callback(lab.clear)
        report.took("testbed up", lab.up())
        idle = measured(folder, lab.name)
        played = lab.answer("play", lab.name)
        after = measured(folder, lab.name)
        report.took("testbed down", lab.down())
        manifest = lab.manifest()
    report.ratios["node_memory"] = round(after.node / NODE_MIB / MIB, 3)
    report.ratios["container_memory"] = round(after.container / CONTAINER_MIB / MIB, 3)
    report.ratios["undelivered"] = round(1 - played["received"] / played["expected"], 6)
    packets = sum(link["packets"] for link in manifest["capture"].values())
    dropped = sum(link["dropped"] for link in manifest["capture"].values())
    report.ratios["capture_drops"] = round(dropped / packets, 6)
    play_s = (manifest["play"]["end_ns"] - manifest["play"]["start_ns"]) / 1e9
    report.details |= {
        "containers": count,
        "messages": played["published"],
        "messages a second": round(played["published"] / seconds, 1),
        "deliveries": f"{played['received']} of {played['expected']}",
        "seconds from the first message to the last delivery": round(play_s, 1),
        "packets captured": packets,
        "memory idle": idle.in_words(),
        "memory after": after.in_words(),
    }


def measured(folder: Path, lab: str) -> Memory:
    """The memory of the lab's containers now."""
    nodes = Keeper(LabPlace(folder / "s" / lab)).status()["nodes"]
    return memory_of({name: node["pid"] for name, node in nodes.items()})


if __name__ == "__main__":
    sys.exit(main())
