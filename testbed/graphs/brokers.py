"""The overlay that the brokers of a topology form: their numbers, seeds and vectors, and the topics of their clients.

Every sensor and subscriber is at its nearest broker, and every sensor has advertised its topics, as in a
lab that has just come up.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodes.overlay.broker.joining import topic_node
from nodes.overlay.broker.subscriptions import ANCHOR_TOPIC
from nodes.overlay.collection.forwarding import travels_alone
from nodes.overlay.collection.node import Collection
from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.reliability.settings import ReliabilitySettings, reliability_settings
from nodes.overlay.topics.base import TopicNode
from nodes.protocol.wire import CUSTODY, HIGHEST_PRIORITY
from nodes.runtime.config import parse
from testbed.backends.common.node_config import SEEDS, node_config
from testbed.errors import InputError
from testbed.graphs.scenario import NodeTopics, Publication, Scenario
from testbed.places import RunPlace
from testbed.topology.diagnostics.hints import did_you_mean, listing, with_article
from testbed.topology.model import Arrivals, Node, NodeKind, PublishEvent, Topology
from testbed.topology.names import filled


@dataclass(frozen=True, slots=True)
class Selection:
    """The publication that the user wants to follow; None: chosen from the scenario."""

    topic: str | None = None
    sensor: str | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class FollowedPublication:
    """A publication of a sensor."""

    sensor: Node
    topic: str
    priority: int
    place: tuple[int, ...]


def broker_scenario(
    topology: Topology, followed: FollowedPublication, method: str, parameters: Mapping[str, Any]
) -> Scenario:
    """The brokers with this method; `topology` may have another."""
    brokers = topology.of_kind(NodeKind.BROKER)
    by_number = {broker.number: broker for broker in brokers}
    nowhere = RunPlace(Path("drawn"))

    def make(number: int) -> TopicNode:
        node = by_number[number]
        config = parse(node_config(topology, node, nowhere, "none", "none", secret="drawn"))
        random = config.random("overlay")
        return topic_node(TOPIC_METHODS[method], config.station(), parameters, random)

    topics = _topics_of_brokers(topology, followed, TOPIC_METHODS[method].by_area)
    promised = reliability_settings(method, parameters)
    return Scenario(
        method,
        make,
        {broker.number: topics[broker.name] for broker in brokers},
        _publication(topology, followed, promised),
        {broker.number: broker.name for broker in brokers},
        _periods(topology, followed.topic, promised) if method == Collection.method else {},
    )


def choose_publication(topology: Topology, asked: Selection) -> FollowedPublication:
    """The most urgent publication of the scenario that matches the selection and a subscription; the first of several.

    Without one in the scenario, it makes one up that `testbed inject` could publish.
    """
    sensors = topology.of_kind(NodeKind.SENSOR)
    wanted = {
        topic: None
        for node in topology.of_kind(NodeKind.SUBSCRIBER)
        for topic in node.subscribed_topics
    }
    _refuse_unknown(topology, asked, sensors, wanted)
    planned = [
        one
        for one in _planned(topology)
        if topology.receivers(one.topic, one.priority, one.place)
        and asked.topic in (None, one.topic)
        and asked.sensor in (None, one.sensor.name)
    ]
    planned.sort(key=lambda one: (one.priority != asked.priority, -one.priority))
    if planned:
        found = planned[0]
        return replace(found, priority=asked.priority or found.priority)
    sensor = topology.node(asked.sensor) if asked.sensor else sensors[0]
    topic = asked.topic or next(iter(wanted))
    place = topology.place(sensor.name, {})
    return FollowedPublication(sensor, topic, asked.priority or HIGHEST_PRIORITY, place)


def _refuse_unknown(
    topology: Topology, asked: Selection, sensors: Iterable[Node], wanted: Mapping[str, None]
) -> None:
    name = topology.name
    if not sensors or not wanted:
        raise InputError(
            f"{name} has no {'subscriber' if sensors else 'sensor'}: there is no publication to follow",
            "`--plain` draws its nodes and links",
        )
    if asked.topic is not None and asked.topic not in wanted:
        raise InputError(
            f"no node in {name} subscribes to {asked.topic!r}", did_you_mean(asked.topic, wanted)
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


def _planned(topology: Topology) -> list[FollowedPublication]:
    """All publications of the scenario, each once for a sensor, topic, priority and place."""
    return list(dict.fromkeys(one for one, _ in _events(topology)))


def _events(topology: Topology) -> Iterator[tuple[FollowedPublication, PublishEvent]]:
    for event in topology.scenario.publish_events:
        for name in event.nodes:
            sensor = topology.node(name)
            topic = filled(event.topic, name, sensor.group)
            place = topology.place(name, dict(event.values))
            yield FollowedPublication(sensor, topic, event.priority, place), event


def _publication(
    topology: Topology, one: FollowedPublication, promised: ReliabilitySettings
) -> Publication:
    broker = topology.node(one.sensor.brokers[0])
    flags = CUSTODY if promised.custody(one.priority) else 0
    return Publication(broker.number, one.topic, one.priority, one.place, flags)


def _periods(topology: Topology, topic: str, promised: ReliabilitySettings) -> dict[int, float]:
    """By number of the broker: the shortest period of its clients' readings on this topic."""
    periods: dict[int, float] = {}
    for one, event in _events(topology):
        if event.arrivals is not Arrivals.PERIODIC:
            continue
        publication = _publication(topology, one, promised)
        if one.topic == topic and event.period_s and not travels_alone(publication.message):
            period = event.period_s / event.per_period
            known = periods.get(publication.publisher, period)
            periods[publication.publisher] = min(period, known)
    return periods


def _topics_of_brokers(
    topology: Topology, followed: FollowedPublication, by_area: bool
) -> dict[str, NodeTopics]:
    """By name of the broker: the topics of its clients, and the seeds' own topic."""
    publishes: dict[str, dict[str, None]] = {}
    subscribes: dict[str, dict[str, None]] = {}
    brokers = topology.of_kind(NodeKind.BROKER)
    for seed in brokers[:SEEDS]:
        subscribes.setdefault(seed.name, {})[ANCHOR_TOPIC] = None
    for one in (*_planned(topology), followed):
        publishes.setdefault(one.sensor.brokers[0], {})[one.topic] = None
    for subscriber in topology.of_kind(NodeKind.SUBSCRIBER):
        wanted = subscriber.topics if by_area else subscriber.subscribed_topics
        subscribes.setdefault(subscriber.brokers[0], {}).update(dict.fromkeys(wanted))
    return {
        broker.name: NodeTopics(
            tuple(publishes.get(broker.name, ())), tuple(subscribes.get(broker.name, ()))
        )
        for broker in brokers
    }
