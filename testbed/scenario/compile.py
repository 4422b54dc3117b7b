"""The scenario compiled: every publication at its nanosecond, every incident, and the deliveries to expect.

The same seed gives the same timeline. Each node draws from a source of its own for each event, so adding a node never
changes what the others do.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nodes.overlay.reliability.promises import promises
from testbed.errors import InputError
from testbed.hazards.kinds import stories
from testbed.hazards.model import Hazard
from testbed.hazards.sensors import said
from testbed.hazards.sites import Story
from testbed.scenario.actions.faults import Unfolding
from testbed.scenario.model import Action, Incident, played_ns
from testbed.topology.model import ActionKind, Publish, Topology
from testbed.topology.names import filled
from testbed.topology.publication_times import (
    MAX_PUBLICATIONS,
    SECOND_NS,
    Rhythm,
    most_publications,
    nanoseconds,
    rhythm,
)

# What a scenario's hazard comes to: publications like those of events, in the scenario's own time.


def hazard_stories(topology: Topology, hazard: Hazard) -> tuple[Story, ...]:
    """What happens at each site."""
    places = {name: topology.node(name).at for name in hazard.nodes}
    return stories(hazard, places, topology.scenario.duration_s, topology.seed)


# When (ns), node, topic, priority, size, place: what an `Action` is made of.
Publication = tuple[int, str, str, int, int, tuple[int, ...]]


def hazard_publications(topology: Topology) -> list[Publication]:
    """All publications that follow from the hazard, in any order; InputError if there would be absurdly many."""
    hazard = topology.scenario.hazard
    found: list[Publication] = []
    for publication in _publications(topology, hazard) if hazard else ():
        found.append(publication)
        if len(found) > MAX_PUBLICATIONS:
            raise InputError(
                f"the scenario's hazard would publish more than {MAX_PUBLICATIONS:,} messages",
                "lengthen `periods` of its readings, or lower `times` of its alerts",
            )
    return found


def _publications(topology: Topology, hazard: Hazard) -> Iterator[Publication]:
    alert_topics = {name: topic for topic, names in hazard.alerts.topics for name in names}
    duration_s = topology.scenario.duration_s
    for story in hazard_stories(topology, hazard):
        for one in said(hazard, story, duration_s, topology.seed):
            node = topology.node(one.sensor)
            template = alert_topics[one.sensor] if one.alert else hazard.readings.topic
            yield (
                int(one.at_s * SECOND_NS),
                one.sensor,
                filled(template, node.name, node.group),
                one.priority,
                one.size,
                topology.place(node.name, {}),
            )


def compile_timeline(topology: Topology) -> tuple[Action, ...]:
    """All publications in the order of time; InputError if there would be absurdly many."""
    scenario = topology.scenario
    total = sum(most_publications(event, scenario.duration_s) for event in scenario.publish)
    if total > MAX_PUBLICATIONS:
        raise InputError(
            f"the scenario would publish {total:,} messages; at most {MAX_PUBLICATIONS:,} are possible",
            "lengthen `period`, shorten `for`, or lower `count`",
        )
    timeline = [
        action
        for place, event in enumerate(scenario.publish)
        if event.when is None
        for action in _of_event(topology, place, event)
    ]
    timeline += [Action(*publication) for publication in hazard_publications(topology)]
    return _in_order(topology, timeline)


def publications_of(topology: Topology, place: int, event: Publish) -> tuple[Action, ...]:
    """Those of one event, the so-manieth of the scenario."""
    return _in_order(topology, list(_of_event(topology, place, event)))


def _in_order(topology: Topology, timeline: list[Action]) -> tuple[Action, ...]:
    """In the order of time, at the times at which they are played."""
    speed = topology.scenario.speed
    timeline.sort(key=lambda action: (action.at_ns, topology.node(action.node).number))
    return tuple(replace(action, at_ns=played_ns(action.at_ns, speed)) for action in timeline)


def _of_event(topology: Topology, place: int, event: Publish) -> Iterator[Action]:
    beat = rhythm(event, topology.scenario.duration_s)
    for name in _chosen(event, f"{topology.seed}/{place}"):
        yield from _played(
            event,
            beat,
            name,
            topology.node(name).group,
            topology.place(name, dict(event.values)),
            random.Random(f"{topology.seed}/{place}/{name}"),
        )


def expected_deliveries(topology: Topology, timeline: tuple[Action, ...]) -> Counter[str]:
    """How many messages each subscriber should get."""
    expected: Counter[str] = Counter()
    alike = Counter((action.topic, action.priority, action.place) for action in timeline)
    for (topic, priority, place), times in alike.items():
        for receiver in topology.receivers(topic, priority, place):
            expected[receiver] += times
    return expected


def still_missing(expected: int, received: int, settle_s: float) -> str:
    """A sentence for a scenario that was over before all had come."""
    return (
        f"{expected - received} of {expected} deliveries were still missing "
        f"{settle_s:g} s after the scenario's end; a longer `settle` waits for them"
    )


def _chosen(event: Publish, chance: str) -> tuple[str, ...]:
    """The share of its nodes that publish; each draws for itself, so that others change little by a further one."""
    if event.share >= 1.0:
        return event.nodes
    wanted = max(1, round(event.share * len(event.nodes)))
    drawn = sorted(event.nodes, key=lambda name: random.Random(f"{chance}/share/{name}").random())
    chosen = frozenset(drawn[:wanted])
    return tuple(name for name in event.nodes if name in chosen)


def _played(
    event: Publish,
    beat: Rhythm,
    name: str,
    group: str | None,
    place: tuple[int, ...],
    chance: random.Random,
) -> Iterator[Action]:
    topic = filled(event.topic, name, group)
    # Always drawn, so that changing `spread` does not change which ticks are published.
    late_ns = int(chance.random() * event.spread_s * SECOND_NS)
    for at_ns in beat.moments(late_ns):
        if chance.random() < event.probability:
            yield Action(at_ns, name, topic, event.priority, event.size, place)


# What fails in a scenario, who is down when, and what can be expected all the same.


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
