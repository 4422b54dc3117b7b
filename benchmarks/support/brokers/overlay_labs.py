"""Labs of many brokers, each with one subscriber of a few topics; on fast, cheap links, without publications."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.support.labs import BenchmarkLab, ready_at
from nodes.protocol.skipgraph_messages import VECTOR_BITS
from testbed.control import request_all
from testbed.errors import TestbedError
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
    """The topology: each subscriber wants up to this many topics, at a broker of its own."""
    chances = Random(seed)
    every = [f"topics/{number}" for number in range(TOPICS)]
    offices = "\n".join(
        f"  office-{n}: {{kind: subscriber, brokers: brokers-{n}, topics: {_drawn(chances, every, most_topics)}}}"
        for n in range(brokers)
    )
    return _LAB.format(name=name, seed=seed, method=method, brokers=brokers, offices=offices)


def _drawn(chances: Random, every: list[str], most: int) -> str:
    return json.dumps(chances.sample(every, chances.randint(1, most)))


def overlay_lab(
    folder: Path, name: str, method: str, brokers: int, most_topics: int, seed: int
) -> BenchmarkLab:
    """The lab as processes in network namespaces."""
    text = overlay_text(name, method, brokers, most_topics, seed)
    return BenchmarkLab(name, folder, text, "netns", {})


def place_of(lab: BenchmarkLab) -> LabPlace:
    """The lab's state folder."""
    return LabPlace(lab.folder / "s" / lab.name)


def broker_names(brokers: int) -> list[str]:
    """The brokers of such a lab."""
    return [f"brokers-{number}" for number in range(brokers)]


def broker_pids(lab: BenchmarkLab, brokers: int) -> list[int]:
    """The brokers' processes."""
    nodes = Keeper(place_of(lab)).status()["nodes"]
    return [nodes[name]["pid"] for name in broker_names(brokers)]


def idle_rates(pids: Mapping[str, Sequence[int]], seconds: float) -> dict[str, list[float]]:
    """Bytes a second on the links of these processes, by lab, while the labs are idle for this long."""
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


# Whether the brokers' Skip Graph equals the one made by sorting. Pure: brokers' own descriptions in, answer out.


Side = str | None
Links = dict[str, list[tuple[Side, Side]]]  # key -> left and right neighbour, level by level


@dataclass(frozen=True, slots=True)
class Standing:
    """How many of the brokers' keys are at their places."""

    keys: int
    wrong: int  # keys with a link that is not the right one, or still changing
    levels: int  # the most that a key has

    @property
    def exact(self) -> bool:
        """Whether every key is at its place."""
        return self.keys > 0 and not self.wrong


def standing(graphs: Iterable[Mapping[str, Any]]) -> Standing:
    """From the part `graph` of what each broker answers to the question `overlay`."""
    described = list(graphs)
    right = expected(described)
    wrong = 0
    for graph in described:
        for peer in graph["peers"]:
            links = [(left, right_) for left, right_ in peer["links"]]
            wrong += not peer["settled"] or links != right[peer["key"]]
    return Standing(len(right), wrong, max(map(len, right.values()), default=0))


def expected(graphs: Iterable[Mapping[str, Any]]) -> Links:
    """The links by sorting: in each level the neighbours among keys of a like vector, until a broker is alone there."""
    owners = [
        (peer["key"], number, int(graph["vector"], 16))
        for number, graph in enumerate(graphs)
        for peer in graph["peers"]
    ]
    links: Links = {key: [] for key, _, _ in owners}
    groups = [sorted(owners)]
    for bit in reversed(range(VECTOR_BITS)):
        further = []
        for group in groups:
            keys: list[Side] = [None, *(key for key, _, _ in group), None]
            for place, (key, _, _) in enumerate(group):
                links[key].append((keys[place], keys[place + 2]))
            if len({number for _, number, _ in group}) > 1:
                further += [[one for one in group if one[2] >> bit & 1 == half] for half in (0, 1)]
        groups = further
    return links


# The time that brokers which start at once need to find their places.


LOOK_S = 1.0
LONGEST_S = 180.0
ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class Formation:
    """The time when all brokers were at their places."""

    seconds: float  # since the first broker was ready to be called
    up_s: float  # what `testbed up` took
    standing: Standing


def measure_formation(lab: BenchmarkLab, brokers: int) -> Formation:
    """Bring the lab up, then ask its brokers until their graph is right.

    Do not ask sooner: reporting its whole graph costs each broker time that it needs to find its place.
    """
    up_s = lab.up()
    ended, found = _until_exact(lab, brokers)
    return Formation(ended - _first_ready(lab, brokers), up_s, found)


def _until_exact(lab: BenchmarkLab, brokers: int) -> tuple[float, Standing]:
    """When the graph was right, and how many of its keys are at their places."""
    place = place_of(lab)
    controls = {name: place.node_control(name) for name in broker_names(brokers)}
    deadline = time.monotonic() + LONGEST_S
    while True:
        looked = time.time()
        answers = request_all(controls, {"do": "overlay"}, ANSWER_S)
        graphs = [answer["overlay"]["graph"] for answer in answers.values()]
        found = standing(graphs)
        if found.exact and len(graphs) == brokers and all(graph["peers"] for graph in graphs):
            return looked, found
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_S)
    problem = f"{found.wrong} of {found.keys} keys have a wrong link"
    raise TestbedError(f"after {LONGEST_S:.0f} s {problem}; {len(graphs)} brokers answered")


def _first_ready(lab: BenchmarkLab, brokers: int) -> float:
    """When the first broker was ready, in seconds since 1970."""
    logs = [lab.newest_run().log(name) for name in broker_names(brokers)]
    return min(map(ready_at, logs)) / 1e9
