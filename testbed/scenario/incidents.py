"""What fails in a scenario, who is down when, and what can be expected all the same."""

from collections import Counter
from collections.abc import Iterable

from nodes.overlay.promises import promises
from testbed.scenario.compile import Action, expected_deliveries
from testbed.scenario.pace import played_ns
from testbed.scenario.unfolding import Incident, Unfolding
from testbed.topology.model import ActionKind, Topology
from testbed.topology.volume import nanoseconds

_TURNS = {ActionKind.CRASH: True, ActionKind.STOP: True, ActionKind.START: False}  # down, or up


def compile_incidents(topology: Topology) -> tuple[Incident, ...]:
    """All that have a time, in its order; those that strike nobody, or wait for something, are left out."""
    unfolding = Unfolding(topology)
    for place, happening in enumerate(topology.scenario.actions):
        if happening.when is None:
            unfolding.add(place, happening)
    end_ns = played_ns(nanoseconds(topology.scenario.duration_s), topology.scenario.speed)
    return (*unfolding.due(), *unfolding.closing(end_ns))


class Downtimes:
    """Who is down when."""

    def __init__(self, incidents: Iterable[Incident]) -> None:
        self._turns: dict[str, list[tuple[int, bool]]] = {}  # node -> since when it is down, or up
        for incident in incidents:
            if (falls := _TURNS.get(incident.kind)) is not None:
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
