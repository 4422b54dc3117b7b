"""Compile a scenario: every publication and every action at its nanosecond, and the deliveries to expect.

The same seed gives the same timeline. Each node has a random generator of its own for each event, so a further node
never changes the publications of the others.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nodes.overlay.reliability.settings import reliability_settings
from testbed.errors import InputError
from testbed.hazards.kinds import site_histories
from testbed.hazards.model import Hazard
from testbed.hazards.sensors import sensor_publications
from testbed.hazards.sites import SiteHistory
from testbed.scenario.actions.faults import PendingActions
from testbed.scenario.model import Publication, TimedAction, played_ns
from testbed.topology.model import ActionKind, PublishEvent, Topology
from testbed.topology.names import filled
from testbed.topology.publication_times import (
    MAX_PUBLICATIONS,
    SECOND_NS,
    PublicationSchedule,
    most_publications,
    nanoseconds,
    publication_schedule,
)

# Publications that follow from the scenario's hazard. Times are the scenario's own.


def hazard_histories(topology: Topology, hazard: Hazard) -> tuple[SiteHistory, ...]:
    """The history of each site of the hazard."""
    places = {name: topology.node(name).at for name in hazard.nodes}
    return site_histories(hazard, places, topology.scenario.duration_s, topology.seed)


# Time (ns), node, topic, priority, size, place: the fields of a `Publication`.
PublicationFields = tuple[int, str, str, int, int, tuple[int, ...]]


def hazard_publications(topology: Topology) -> list[PublicationFields]:
    """All publications that follow from the hazard, in any order; InputError if there are too many."""
    hazard = topology.scenario.hazard
    found: list[PublicationFields] = []
    for publication in _publications(topology, hazard) if hazard else ():
        found.append(publication)
        if len(found) > MAX_PUBLICATIONS:
            raise InputError(
                f"the scenario's hazard would publish more than {MAX_PUBLICATIONS:,} messages",
                "lengthen `periods` of its readings, or lower `times` of its alerts",
            )
    return found


def _publications(topology: Topology, hazard: Hazard) -> Iterator[PublicationFields]:
    alert_topics = {name: topic for topic, names in hazard.alerts.topics for name in names}
    duration_s = topology.scenario.duration_s
    for history in hazard_histories(topology, hazard):
        for one in sensor_publications(hazard, history, duration_s, topology.seed):
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


def compile_timeline(topology: Topology) -> tuple[Publication, ...]:
    """All publications in the order of time; InputError if there are too many."""
    scenario = topology.scenario
    total = sum(most_publications(event, scenario.duration_s) for event in scenario.publish)
    if total > MAX_PUBLICATIONS:
        raise InputError(
            f"the scenario would publish {total:,} messages; at most {MAX_PUBLICATIONS:,} are possible",
            "lengthen `period` or lower `rate`, shorten `for`, or lower `count`",
        )
    timeline = [
        publication
        for index, event in enumerate(scenario.publish)
        if event.when is None
        for publication in _event_publications(topology, index, event)
    ]
    timeline += [Publication(*publication) for publication in hazard_publications(topology)]
    return _in_order(topology, timeline)


def publications_of(topology: Topology, index: int, event: PublishEvent) -> tuple[Publication, ...]:
    """The publications of one event; `index` counts the scenario's publish events."""
    return _in_order(topology, list(_event_publications(topology, index, event)))


def _in_order(topology: Topology, timeline: list[Publication]) -> tuple[Publication, ...]:
    """Sort publications by time, and convert their times to those at which they are played."""
    speed = topology.scenario.speed
    timeline.sort(
        key=lambda publication: (publication.at_ns, topology.node(publication.node).number)
    )
    return tuple(
        replace(publication, at_ns=played_ns(publication.at_ns, speed)) for publication in timeline
    )


def _event_publications(
    topology: Topology, index: int, event: PublishEvent
) -> Iterator[Publication]:
    schedule = publication_schedule(event, topology.scenario.duration_s)
    for name in _chosen_nodes(event, f"{topology.seed}/{index}"):
        yield from _node_publications(
            event,
            schedule,
            name,
            topology.node(name).group,
            topology.place(name, dict(event.values)),
            random.Random(f"{topology.seed}/{index}/{name}"),
            random.Random(f"{topology.seed}/{index}/{name}/arrivals"),
        )


def expected_deliveries(topology: Topology, timeline: tuple[Publication, ...]) -> Counter[str]:
    """The number of messages that each subscriber should receive."""
    expected: Counter[str] = Counter()
    alike = Counter(
        (publication.topic, publication.priority, publication.place) for publication in timeline
    )
    for (topic, priority, place), times in alike.items():
        for receiver in topology.receivers(topic, priority, place):
            expected[receiver] += times
    return expected


def _chosen_nodes(event: PublishEvent, chance: str) -> tuple[str, ...]:
    """Choose the share of the event's nodes that publish.

    Each node has a random rank of its own, so a further node changes the choice of few others.
    """
    if event.share >= 1.0:
        return event.nodes
    wanted = max(1, round(event.share * len(event.nodes)))
    drawn = sorted(event.nodes, key=lambda name: random.Random(f"{chance}/share/{name}").random())
    chosen = frozenset(drawn[:wanted])
    return tuple(name for name in event.nodes if name in chosen)


def _node_publications(
    event: PublishEvent,
    schedule: PublicationSchedule,
    name: str,
    group: str | None,
    place: tuple[int, ...],
    chance: random.Random,
    arrivals: random.Random,
) -> Iterator[Publication]:
    topic = filled(event.topic, name, group)
    # Always drawn, so that changing `spread` does not change which ticks are published.
    late_ns = int(chance.random() * event.spread_s * SECOND_NS)
    for at_ns in schedule.moments(late_ns, arrivals):
        if chance.random() < event.probability:
            yield Publication(at_ns, name, topic, event.priority, event.size, place)


# Actions, the downtimes of nodes that follow from them, and the deliveries to expect nevertheless.


_DOWN_AFTER = {
    ActionKind.CRASH: True,
    ActionKind.STOP: True,
    ActionKind.START: False,
}  # kind -> whether the node is down afterwards


def compile_actions(topology: Topology) -> tuple[TimedAction, ...]:
    """All actions that have a time, in the order of time; without those that affect no node, or wait for a trigger."""
    pending = PendingActions(topology)
    for index, event in enumerate(topology.scenario.actions):
        if event.when is None:
            pending.add(index, event)
    end_ns = played_ns(nanoseconds(topology.scenario.duration_s), topology.scenario.speed)
    return (*pending.due(), *pending.closing(end_ns))


class Downtimes:
    """The times at which nodes are down."""

    def __init__(self, actions: Iterable[TimedAction]) -> None:
        self._turns: dict[
            str, list[tuple[int, bool]]
        ] = {}  # node -> (time, whether it is down from then on)
        for action in actions:
            if (stops := _DOWN_AFTER.get(action.kind)) is not None:
                for name in action.nodes:
                    self._turns.setdefault(name, []).append((action.at_ns, stops))

    @property
    def affected_nodes(self) -> frozenset[str]:
        """All nodes that are down at some time."""
        return frozenset(self._turns)

    @property
    def down_at_the_end(self) -> frozenset[str]:
        """Nodes that are not started again."""
        return frozenset(name for name, turns in self._turns.items() if turns[-1][1])

    def down(self, name: str, at_ns: int) -> bool:
        """Whether this node is down at this time."""
        before = [stops for since, stops in self._turns.get(name, ()) if since <= at_ns]
        return bool(before) and before[-1]


def unreachable_at_the_end(actions: Iterable[TimedAction]) -> frozenset[str]:
    """Nodes that are down at the end, or have a link that is cut."""
    performed = tuple(actions)
    cut: set[str] = set()
    for action in performed:
        if action.kind is ActionKind.CUT:
            cut |= {*action.nodes}
        elif action.kind is ActionKind.RESTORE:
            cut -= {*action.nodes}
    return Downtimes(performed).down_at_the_end | cut


def without_downtimes(
    timeline: Iterable[Publication], actions: Iterable[TimedAction]
) -> tuple[Publication, ...]:
    """The publications whose publishers are up at their time."""
    times = Downtimes(actions)
    return tuple(
        publication
        for publication in timeline
        if not times.down(publication.node, publication.at_ns)
    )


def expected_with_downtimes(
    topology: Topology, timeline: tuple[Publication, ...], actions: tuple[TimedAction, ...]
) -> Counter[str]:
    """The number of messages that each subscriber should receive.

    Messages that a subscriber misses while it is down are delivered later only with custody.
    """
    expected = expected_deliveries(topology, timeline)
    times = Downtimes(actions)
    has_custody = reliability_settings(
        topology.overlay.method, dict(topology.overlay.parameters)
    ).custody
    for name in times.affected_nodes.intersection(expected):
        expected[name] -= sum(
            not has_custody(publication.priority)
            and times.down(name, publication.at_ns)
            and name
            in topology.receivers(publication.topic, publication.priority, publication.place)
            for publication in timeline
        )
    return expected
