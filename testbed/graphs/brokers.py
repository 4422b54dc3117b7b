"""The overlay that the brokers of a topology form: their numbers, seeds and vectors, and the topics of their guests.

Every sensor and subscriber is at its nearest broker, and every sensor has said on what it is going to publish, as in a
lab that has just come up.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodes.overlay.mesh import anchor
from nodes.overlay.mesh.joining import topic_node
from nodes.overlay.tbps import TOPIC_METHODS
from nodes.overlay.tbps.base import TopicNode
from nodes.runtime.config import parse
from nodes.wire import HIGHEST_PRIORITY
from testbed.backends.node_files import SEEDS, node_config
from testbed.errors import InputError
from testbed.graphs.company import Company, Publication, Wishes
from testbed.places import RunPlace
from testbed.topology.hints import did_you_mean, listing, with_article
from testbed.topology.model import Node, NodeKind, Topology
from testbed.topology.names import filled


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user wants to be followed; None: it is chosen."""

    topic: str | None = None
    sensor: str | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """A publication of a guest."""

    sensor: Node
    topic: str
    priority: int


def brokers_of(
    topology: Topology, followed: Followed, method: str, parameters: Mapping[str, Any]
) -> Company:
    """As they are with this method; `topology` may have another."""
    brokers = topology.of_kind(NodeKind.BROKER)
    by_number = {broker.number: broker for broker in brokers}
    nowhere = RunPlace(Path("drawn"))

    def make(number: int) -> TopicNode:
        node = by_number[number]
        config = parse(node_config(topology, node, nowhere, "none", "none", secret="drawn"))
        random = config.random("overlay")
        return topic_node(TOPIC_METHODS[method], config.station(), parameters, random)

    wishes = _wishes(topology, followed)
    home = topology.node(followed.sensor.homes[0])
    return Company(
        method,
        make,
        {broker.number: wishes[broker.name] for broker in brokers},
        Publication(home.number, followed.topic, followed.priority),
        {broker.number: broker.name for broker in brokers},
    )


def chosen(topology: Topology, asked: Asked) -> Followed:
    """The most urgent publication of the scenario that is as asked and wanted by somebody; the first of several.

    What the scenario does not say is made up: `testbed inject` could publish it.
    """
    sensors = topology.of_kind(NodeKind.SENSOR)
    wanted = {
        topic: None
        for node in topology.of_kind(NodeKind.SUBSCRIBER)
        for topic in node.wanted_topics
    }
    _refuse_unknown(topology, asked, sensors, wanted)
    planned = [
        one
        for one in _planned(topology)
        if one.topic in wanted
        and asked.topic in (None, one.topic)
        and asked.sensor in (None, one.sensor.name)
    ]
    planned.sort(key=lambda one: (one.priority != asked.priority, -one.priority))
    if planned:
        found = planned[0]
        return Followed(found.sensor, found.topic, asked.priority or found.priority)
    sensor = topology.node(asked.sensor) if asked.sensor else sensors[0]
    topic = asked.topic or next(iter(wanted))
    return Followed(sensor, topic, asked.priority or HIGHEST_PRIORITY)


def _refuse_unknown(
    topology: Topology, asked: Asked, sensors: Iterable[Node], wanted: Mapping[str, None]
) -> None:
    name = topology.name
    if not sensors or not wanted:
        raise InputError(
            f"{name} has no {'subscriber' if sensors else 'sensor'}: there is no publication to follow",
            "`--plain` draws its nodes and links",
        )
    if asked.topic is not None and asked.topic not in wanted:
        raise InputError(
            f"nobody in {name} subscribes to {asked.topic!r}", did_you_mean(asked.topic, wanted)
        )
    names = {node.name: node for node in topology.nodes}
    if asked.sensor is not None and asked.sensor not in names:
        hint = did_you_mean(asked.sensor, [sensor.name for sensor in sensors])
        raise InputError(f"{name} has no node {asked.sensor!r}", hint)
    if asked.sensor is not None and names[asked.sensor].kind is not NodeKind.SENSOR:
        kind = with_article(names[asked.sensor].kind)
        raise InputError(
            f"{asked.sensor} is {kind}; only sensors publish",
            f"its sensors: {listing(sensor.name for sensor in sensors)}",
        )


def _planned(topology: Topology) -> list[Followed]:
    """All publications of the scenario, each once for a sensor, topic and priority."""
    found: dict[tuple[str, str, int], Followed] = {}
    for event in topology.scenario.publish:
        for name in event.nodes:
            sensor = topology.node(name)
            topic = filled(event.topic, name, sensor.group)
            one = Followed(sensor, topic, event.priority)
            found.setdefault((name, topic, event.priority), one)
    return list(found.values())


def _wishes(topology: Topology, followed: Followed) -> dict[str, Wishes]:
    """Of each broker, by name: what its guests want, and the seeds' own topic."""
    publishes: dict[str, dict[str, None]] = {}
    subscribes: dict[str, dict[str, None]] = {}
    brokers = topology.of_kind(NodeKind.BROKER)
    for seed in brokers[:SEEDS]:
        subscribes.setdefault(seed.name, {})[anchor.TOPIC] = None
    for one in (*_planned(topology), followed):
        publishes.setdefault(one.sensor.homes[0], {})[one.topic] = None
    for guest in topology.of_kind(NodeKind.SUBSCRIBER):
        subscribes.setdefault(guest.homes[0], {}).update(dict.fromkeys(guest.wanted_topics))
    return {
        broker.name: Wishes(
            tuple(publishes.get(broker.name, ())), tuple(subscribes.get(broker.name, ()))
        )
        for broker in brokers
    }
