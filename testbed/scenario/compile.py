"""The scenario as a timeline: who publishes what, at which nanosecond. The same seed gives the same timeline.

Each node draws from a source of its own for each event, so adding a node never changes what the others do.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from testbed.errors import InputError
from testbed.scenario.hazard import hazard_publications
from testbed.scenario.pace import played_ns
from testbed.topology.model import Publish, Topology
from testbed.topology.names import filled
from testbed.topology.volume import (
    MAX_PUBLICATIONS,
    SECOND_NS,
    Rhythm,
    most_publications,
    rhythm,
)


@dataclass(frozen=True, slots=True)
class Action:
    """One publication, `at_ns` after the scenario's start."""

    at_ns: int
    node: str
    topic: str
    priority: int
    size: int
    place: tuple[int, ...] = ()  # coordinates, if it has a place


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
