"""Subscriptions by area: the space of a lab, and the subscribers' interests in it (`nodes.protocol.interests`).

A lab has a space if a subscription names a part of it, or if the file has one. Its latitude and longitude cover the
places and areas of the file, unless `space` sets them; then all places and areas must lie in it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from nodes.protocol.interests import Interest, checked
from nodes.protocol.space import AREA, Dimension, Range, Space
from nodes.protocol.wire import MAX_DIMENSIONS, WireError
from testbed.topology.diagnostics.hints import did_you_mean, listing, quoted
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Node, NodeKind, Scenario
from testbed.topology.names import filled
from testbed.topology.resolve.checking import Checking
from testbed.topology.schema.hazard import RawHazard
from testbed.topology.schema.sections import RawMember, RawSubscription

WHOLE_EARTH = ((-90.0, 90.0), (-180.0, 180.0))
MOST_VALUES = MAX_DIMENSIONS - len(AREA)


def subscriptions(raw: RawMember) -> list[RawSubscription]:
    """The subscriptions of a node or group, as a list."""
    return raw.subscribe if isinstance(raw.subscribe, list) else [raw.subscribe]


def check_values(checking: Checking, path: Path, values: Mapping[str, float]) -> None:
    """Check that the values of an event have known dimensions, and lie in them."""
    for name, value in values.items():
        _check_in(checking, (*path, "values", name), name, (value, value))


def space_of(checking: Checking, nodes: tuple[Node, ...]) -> Space | None:
    """The lab's space; None if the lab needs none."""
    named = checking.file.space
    if len(named.keys() - set(AREA)) > MOST_VALUES:
        checking.key(
            ("space",),
            f"a place has at most {MAX_DIMENSIONS} coordinates, two of them where it is",
            f"name at most {MOST_VALUES} other values",
        )
        return None
    written = list(_written(checking))
    if not named and not any(one.within or one.where for _, one in written):
        return None
    things: list[tuple[Path, str, tuple[float, float]]] = [
        *(((*_path(node), "at"), node.name, node.at) for node in nodes if node.at),
        *(
            ((*path, "within"), "a corner of the area", at)
            for path, one in written
            for at in one.within or ()
        ),
    ]
    area = []
    for axis, name in enumerate(AREA):
        found = [(path, what, at[axis]) for path, what, at in things]
        if name in named:
            area.append(Dimension(name, *named[name]))
            _check_inside(checking, area[-1], found)
        else:
            values = [value for _, _, value in found] or WHOLE_EARTH[axis]
            area.append(Dimension(name, min(values), max(values)))
    others = (Dimension(name, *ends) for name, ends in named.items() if name not in AREA)
    return Space((*area, *others))


def with_interests(
    checking: Checking, nodes: tuple[Node, ...], scenario: Scenario, space: Space | None
) -> tuple[Node, ...]:
    """Add the interests of their subscriptions to the nodes; mistakes become problems."""
    interests: dict[tuple[str, str], list[Interest]] = {}
    for path, one in _written(checking):
        if (interest := _interest(checking, path, one, space)) is not None:
            interests.setdefault(_member(path), []).append(interest)
    by_area = {each.topic for several in interests.values() for each in several if each.box}
    _check_places(checking, nodes, scenario, by_area)
    return tuple(
        replace(node, topics=tuple(dict.fromkeys((*node.topics, *_texts(interests, node)))))
        for node in nodes
    )


def _texts(interests: Mapping[tuple[str, str], list[Interest]], node: Node) -> Iterator[str]:
    of_node = interests.get(_path(node), ()) if node.kind is NodeKind.SUBSCRIBER else ()
    return (interest.text for interest in of_node)


def _path(node: Node) -> tuple[str, str]:
    """The path of the node or its group in the file."""
    return ("nodes", node.name) if node.group is None else ("groups", node.group)


def _member(path: Path) -> tuple[str, str]:
    return str(path[0]), str(path[1])


def _written(checking: Checking) -> Iterator[tuple[Path, RawSubscription]]:
    """All subscriptions of the file, each with its path."""
    members = [
        *((("nodes", name), raw) for name, raw in checking.file.nodes.items()),
        *((("groups", name), group) for name, group in checking.file.groups.items()),
    ]
    for path, raw in members:
        inner = (*path, "subscribe")
        if isinstance(raw.subscribe, list):
            yield from (((*inner, index), one) for index, one in enumerate(raw.subscribe))
        else:
            yield inner, raw.subscribe


def _interest(
    checking: Checking, path: Path, one: RawSubscription, space: Space | None
) -> Interest | None:
    """The interest of a subscription; None if it is invalid."""
    topic = one.topic or _only_topic(checking, path)
    ranges = {
        name: ends
        for name, ends in one.where.items()
        if _check_in(checking, (*path, "where", name), name, ends)
    }
    if one.within is not None:
        for axis, name in enumerate(AREA):
            low, high = sorted(corner[axis] for corner in one.within)
            ranges[name] = (low, high)
    if topic is None or (ranges and space is None):
        return None
    box = space.box(ranges) if ranges and space else None
    try:
        return checked(Interest(topic, box, one.min_priority))
    except WireError as error:
        checking.value(
            (*path, "topic"),
            f"the topic is too long for its control messages: {error}",
            "shorten it",
        )
        return None


def _only_topic(checking: Checking, path: Path) -> str | None:
    """The topic of a subscription without one: the scenario must publish exactly one topic."""
    scenario = checking.file.scenario
    events = scenario.events if scenario else []
    topics = list(dict.fromkeys(event.publish.topic for event in events if event.publish))
    topics += _of_hazard(scenario.hazard if scenario else None)
    if len(topics) == 1 and "{" not in topics[0]:
        return topics[0]
    if checking.shaped.sound("scenario") and checking.shaped.sound(*path, "topic"):
        published = (
            f"the scenario publishes {listing(topics)}"
            if topics
            else "the scenario publishes nothing"
        )
        checking.value(path, f"which topic? {published}", "add `topic: alerts`")
    return None


def _of_hazard(hazard: RawHazard | None) -> list[str]:
    """The topics of a hazard's publications."""
    if hazard is None:
        return []
    alerts = hazard.alerts.topic
    return [hazard.readings.topic, *([alerts] if isinstance(alerts, str) else alerts.values())]


def _check_in(checking: Checking, path: Path, name: str, ends: Range) -> bool:
    """Whether these values of a dimension are valid."""
    known = {each: there for each, there in checking.file.space.items() if each not in AREA}
    if name in AREA:
        hint = "use `within` for an area, and `at` for the place of a node"
        checking.key(path, f"{name} is not a value of a publication", hint)
    elif name not in known:
        if checking.shaped.sound("space"):
            hint = did_you_mean(name, known) or f"add `space: {{{name}: [0, 90]}}` to the file"
            checking.key(path, f"there is no dimension {quoted(name)}", hint)
    elif not known[name][0] <= ends[0] <= ends[1] <= known[name][1]:
        low, high = known[name]
        checking.value(
            path, f"{name} goes from {low:g} to {high:g}", "change this, or `space` at the top"
        )
    else:
        return True
    return False


def _check_inside(
    checking: Checking, dimension: Dimension, things: Iterable[tuple[Path, str, float]]
) -> None:
    """Bounds in the file must contain all places: outside of them, places cannot be distinguished."""
    reported: set[Path] = set()
    for path, what, value in things:
        if not dimension.holds(value) and path not in reported:
            reported.add(path)
            checking.value(
                path,
                f"{what} lies outside the {dimension.name} of the space, "
                f"{dimension.low:g} to {dimension.high:g}",
                f"widen `space: {{{dimension.name}: [...]}}`, or leave it out",
            )


def _check_places(
    checking: Checking, nodes: tuple[Node, ...], scenario: Scenario, by_area: set[str]
) -> None:
    """A publisher of a topic with subscriptions by area needs a place, or these never match."""
    by_name = {node.name: node for node in nodes}
    reported: set[Path] = set()
    for event in scenario.publish_events:
        for name in event.nodes:
            node = by_name[name]
            topic = filled(event.topic, name, node.group)
            path = _path(node)
            missing = node.at is None and "at" not in checking.written(
                *path
            )  # an invalid one is reported already
            if missing and topic in by_area and path not in reported:
                reported.add(path)
                checking.key(
                    path,
                    f"{name} publishes {quoted(topic)}, which a subscriber selects by area, but has no place",
                    "add `at: [latitude, longitude]`",
                )
