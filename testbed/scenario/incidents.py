"""What fails in a scenario, and when: the same seed strikes the same nodes.

Whoever is down already is not struck again, and only what is broken is mended.
"""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nodes.overlay.promises import promises
from testbed.scenario.compile import Action, expected_deliveries
from testbed.scenario.pace import played_ns
from testbed.topology.model import FaultKind, Topology
from testbed.topology.volume import nanoseconds


@dataclass(frozen=True, slots=True)
class Incident:
    """What happens to these nodes, or to their links, `at_ns` after the scenario's start."""

    at_ns: int
    kind: FaultKind
    nodes: tuple[str, ...]


def compile_incidents(topology: Topology) -> tuple[Incident, ...]:
    """All of them in the order of time; those that strike nobody are left out."""
    down: set[str] = set()
    cut: set[str] = set()
    incidents = []
    for place, fault in enumerate(topology.scenario.faults):
        broken = cut if fault.kind.of_links else down
        mends = fault.kind in (FaultKind.RESTART, FaultKind.HEAL)
        able = [name for name in fault.nodes if (name in broken) is mends]
        if not mends:
            wanted = max(1, round(fault.share * len(fault.nodes)))
            chance = random.Random(f"{topology.seed}/fault/{place}")
            struck = set(chance.sample(able, min(wanted, len(able))))
            able = [name for name in able if name in struck]
        broken.symmetric_difference_update(able)
        if able:
            at_ns = played_ns(nanoseconds(fault.at_s), topology.scenario.speed)
            incidents.append(Incident(at_ns, fault.kind, tuple(able)))
    return tuple(incidents)


class Downtimes:
    """Who is down when."""

    def __init__(self, incidents: Iterable[Incident]) -> None:
        self._turns: dict[str, list[tuple[int, bool]]] = {}  # node -> since when it is down, or up
        for incident in incidents:
            if not incident.kind.of_links:
                falls = incident.kind is not FaultKind.RESTART
                for name in incident.nodes:
                    self._turns.setdefault(name, []).append((incident.at_ns, falls))

    @property
    def concerned(self) -> frozenset[str]:
        """All who are down at some time."""
        return frozenset(self._turns)

    @property
    def down_at_the_end(self) -> frozenset[str]:
        """Who is not started again."""
        return frozenset(name for name, turns in self._turns.items() if turns[-1][1])

    def down(self, name: str, at_ns: int) -> bool:
        """Whether this node is down then."""
        before = [falls for since, falls in self._turns.get(name, ()) if since <= at_ns]
        return bool(before) and before[-1]


def without_the_fallen(
    timeline: Iterable[Action], incidents: Iterable[Incident]
) -> tuple[Action, ...]:
    """The publications of those who are up when their time comes."""
    times = Downtimes(incidents)
    return tuple(action for action in timeline if not times.down(action.node, action.at_ns))


def expected_despite(
    topology: Topology, timeline: tuple[Action, ...], incidents: tuple[Incident, ...]
) -> Counter[str]:
    """How many messages each subscriber should get: what it misses while it is down comes later only with custody."""
    expected = expected_deliveries(topology, timeline)
    times = Downtimes(incidents)
    kept = promises(topology.overlay.method, dict(topology.overlay.parameters)).custody
    for name in times.concerned.intersection(expected):
        expected[name] -= sum(
            not kept(action.priority)
            and times.down(name, action.at_ns)
            and name in topology.receivers(action.topic, action.priority, action.place)
            for action in timeline
        )
    return expected
