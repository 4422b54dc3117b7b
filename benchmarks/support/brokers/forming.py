"""How long brokers that are started at once take to find their places."""

import time
from dataclasses import dataclass

from benchmarks.support.brokers.overlay_labs import broker_names, place_of
from benchmarks.support.brokers.standing import Standing, standing
from benchmarks.support.labs import BenchmarkLab, ready_at
from testbed.control import request_all
from testbed.errors import TestbedError

LOOK_S = 1.0
LONGEST_S = 180.0
ANSWER_S = 30.0


@dataclass(frozen=True, slots=True)
class Formed:
    """When all brokers stood where they should."""

    seconds: float  # since the first broker was ready to be called
    up_s: float  # what `testbed up` took
    standing: Standing


def formed(lab: BenchmarkLab, brokers: int) -> Formed:
    """Bring the lab up, then look at its brokers until their graph is right.

    Not sooner: to tell its whole graph costs each broker time, which it needs to find its place.
    """
    up_s = lab.up()
    ended, found = _until_exact(lab, brokers)
    return Formed(ended - _first_ready(lab, brokers), up_s, found)


def _until_exact(lab: BenchmarkLab, brokers: int) -> tuple[float, Standing]:
    """When the graph was right, and what it was."""
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
    """Seconds since 1970."""
    logs = [lab.newest_run().log(name) for name in broker_names(brokers)]
    return min(map(ready_at, logs)) / 1e9
