"""What a scenario's hazard comes to: publications like those of events, in the scenario's own time."""

from collections.abc import Iterator

from testbed.errors import InputError
from testbed.hazards.happening import Story
from testbed.hazards.kinds import stories
from testbed.hazards.model import Hazard
from testbed.hazards.sensors import said
from testbed.topology.model import Topology
from testbed.topology.names import filled
from testbed.topology.volume import MAX_PUBLICATIONS, SECOND_NS


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
