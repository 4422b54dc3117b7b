"""Likely mistakes of a valid topology: topics without a publisher or a subscriber, an overlay of one broker."""

from collections.abc import Iterable, Mapping

from nodes.overlay.reliability.settings import STAR
from nodes.protocol.interests import Interest
from testbed.topology.diagnostics.hints import listing, nearest, quoted
from testbed.topology.model import NodeKind, Topology
from testbed.topology.names import filled

MOST_SHOWN = 20


def unmatched_topics(topology: Topology) -> tuple[str, ...]:
    """Sentences for the user, those on published topics first; none if every topic has publishers and subscribers.

    Of an event whose topic differs from node to node, one subscribed topic is enough.
    A scenario that publishes nothing is no mistake: messages may come from `testbed inject`.
    """
    if not topology.scenario.publish_events:
        return ()
    subscribers = {  # topic -> subscribers
        topic: list(dict.fromkeys(name for name, _ in interests))
        for topic, interests in topology.subscriptions.items()
    }
    published, unsubscribed = _published(topology, subscribers.keys())
    unpublished = [topic for topic in subscribers if topic not in published]
    empty = _empty_areas(topology, published)
    found = len(unsubscribed) + len(unpublished) + len(empty)
    sentences = [
        f"no node subscribes to {quoted(topic)}, which {_several(names)} publish{_es(names)}"
        f"{_instead(topic, subscribers, 'subscribed topics')}"
        for topic, names in list(unsubscribed.items())[:MOST_SHOWN]
    ]
    sentences += [
        f"no node publishes {quoted(topic)}, to which {_several(subscribers[topic])} "
        f"subscribe{'s' if len(subscribers[topic]) == 1 else ''}"
        f"{_instead(topic, published, 'published topics')}"
        for topic in unpublished[: MOST_SHOWN - len(sentences)]
    ]
    sentences += empty[: MOST_SHOWN - len(sentences)]
    if found > len(sentences):
        sentences.append(f"{found - len(sentences):,} more topics lack publishers or subscribers")
    return tuple(sentences)


def _published(
    topology: Topology, subscribed_to: Iterable[str]
) -> tuple[dict[str, None], dict[str, list[str]]]:
    """All published topics (in order); and, as written in the file, those without subscribers, and their publishers."""
    groups = {node.name: node.group for node in topology.nodes}
    subscribed_topics = frozenset(subscribed_to)
    published: dict[str, None] = {}
    subscribed: set[str] = set()
    publishers: dict[str, dict[str, None]] = {}
    for event in topology.scenario.publish_events:
        if "{" in event.topic:
            topics = dict.fromkeys(filled(event.topic, name, groups[name]) for name in event.nodes)
        else:
            topics = {event.topic: None}
        published.update(topics)
        publishers.setdefault(event.topic, {}).update(dict.fromkeys(event.nodes))
        if not subscribed_topics.isdisjoint(topics):
            subscribed.add(event.topic)
    unsubscribed = {
        topic: list(names) for topic, names in publishers.items() if topic not in subscribed
    }
    return published, unsubscribed


def _empty_areas(topology: Topology, published: Mapping[str, object]) -> list[str]:
    """Subscriptions to published topics that no publication matches: by their area or their level."""
    wanting: dict[Interest, list[str]] = {}
    for topic in published:
        for name, interest in topology.subscriptions.get(topic, ()):
            wanting.setdefault(interest, []).append(name)
    published_values: dict[str, set[tuple[int, tuple[int, ...]]]] = {}  # topic -> levels and places
    for event in topology.scenario.publish_events:
        values = dict(event.values)
        for name in event.nodes if wanting else ():
            topic = filled(event.topic, name, topology.node(name).group)
            place = topology.place(name, values)
            published_values.setdefault(topic, set()).add((event.priority, place))
    return [
        f"no publication of {quoted(interest.topic)} matches the subscription of {_several(names)}: "
        f"from {'its area' if interest.box else 'anywhere'}, of level {interest.min_priority} or above"
        for interest, names in wanting.items()
        if not any(
            interest.accepts(level, place)
            for level, place in published_values.get(interest.topic, ())
        )
    ]


def _several(names: list[str]) -> str:
    match names:
        case [one]:
            return one
        case [one, other]:
            return f"{one} and {other}"
    return f"{names[0]} and {len(names) - 1} others"


def _es(names: list[str]) -> str:
    return "es" if len(names) == 1 else ""


def _instead(topic: str, known: Mapping[str, object], what: str) -> str:
    if not known:
        return ""
    near = nearest(topic, known)
    return f"; did you mean {quoted(near)}?" if near else f"; {what}: {listing(known)}"


def too_few_brokers(topology: Topology) -> tuple[str, ...]:
    """An overlay between brokers with only one broker."""
    method = topology.overlay.method
    if method == STAR or len(topology.of_kind(NodeKind.BROKER)) != 1:
        return ()
    return (
        f"overlay {method} is for several brokers, but there is only one; "
        "its publications do not use the overlay, and no broker replaces it if it fails",
    )
