"""What fails in a scenario, and when: the same seed strikes the same nodes.

Whoever is down already is not struck again, and only what is broken is mended.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.scenario.compile import Action
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
            incidents.append(Incident(nanoseconds(fault.at_s), fault.kind, tuple(able)))
    return tuple(incidents)


def without_the_fallen(
    timeline: Iterable[Action], incidents: Iterable[Incident]
) -> tuple[Action, ...]:
    """The publications of those who are up when their time comes."""
    turns: dict[str, list[tuple[int, bool]]] = {}  # node -> from when on it is down, or up again
    for incident in incidents:
        if not incident.kind.of_links:
            for name in incident.nodes:
                turns.setdefault(name, []).append(
                    (incident.at_ns, incident.kind is not FaultKind.RESTART)
                )

    def is_up(action: Action) -> bool:
        before = [down for at_ns, down in turns.get(action.node, ()) if at_ns <= action.at_ns]
        return not before or not before[-1]

    return tuple(action for action in timeline if is_up(action))
