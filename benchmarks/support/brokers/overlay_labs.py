"""Labs of many brokers, each with one subscriber that wants a few topics; on fast links that cost little, with
nothing published."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from benchmarks.support.labs import BenchmarkLab
from testbed.keeper.client import Keeper
from testbed.places import LabPlace

TOPICS = 40  # in all
_LAB = """\
name: {name}
seed: {seed}
links: {{emulator: tbf}}
defaults:
  link: lan
overlay: {{method: {method}}}
capture: {{enabled: false}}
groups:
  brokers: {{kind: broker, count: {brokers}}}
nodes:
{offices}
scenario:
  duration: 1s
"""


def overlay_text(name: str, method: str, brokers: int, most_topics: int, seed: int) -> str:
    """The topology: subscribers want one to so many topics, each at a broker of its own."""
    chances = Random(seed)
    every = [f"topics/{number}" for number in range(TOPICS)]
    offices = "\n".join(
        f"  office-{n}: {{kind: subscriber, home: brokers-{n}, topics: {_drawn(chances, every, most_topics)}}}"
        for n in range(brokers)
    )
    return _LAB.format(name=name, seed=seed, method=method, brokers=brokers, offices=offices)


def _drawn(chances: Random, every: list[str], most: int) -> str:
    return json.dumps(chances.sample(every, chances.randint(1, most)))


def overlay_lab(
    folder: Path, name: str, method: str, brokers: int, most_topics: int, seed: int
) -> BenchmarkLab:
    """As processes in network namespaces."""
    text = overlay_text(name, method, brokers, most_topics, seed)
    return BenchmarkLab(name, folder, text, "netns", {})


def place_of(lab: BenchmarkLab) -> LabPlace:
    """The lab's state folder."""
    return LabPlace(lab.folder / "s" / lab.name)


def broker_names(brokers: int) -> list[str]:
    """Of such a lab."""
    return [f"brokers-{number}" for number in range(brokers)]


def broker_pids(lab: BenchmarkLab, brokers: int) -> list[int]:
    """The brokers' processes."""
    nodes = Keeper(place_of(lab)).status()["nodes"]
    return [nodes[name]["pid"] for name in broker_names(brokers)]


def idle_rates(pids: Mapping[str, Sequence[int]], seconds: float) -> dict[str, list[float]]:
    """Bytes a second on the links of these processes, by lab, while nobody does anything for so long."""
    before = {lab: [link_bytes(pid) for pid in those] for lab, those in pids.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return {
        lab: [
            (link_bytes(pid) - earlier) / took
            for pid, earlier in zip(those, before[lab], strict=True)
        ]
        for lab, those in pids.items()
    }


def link_bytes(pid: int) -> int:
    """Bytes that have crossed the link of this process' namespace, both ways, as whole Ethernet frames."""
    total = 0
    for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() != "lo":
            fields = numbers.split()
            total += int(fields[0]) + int(fields[8])
    return total
