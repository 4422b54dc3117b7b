"""The scenario of the file to what is published: selectors looked up, times and amounts checked."""

from testbed.topology.checking import Checking
from testbed.topology.model import Node, NodeKind, Publish, Scenario
from testbed.topology.names import filled, topic_problem
from testbed.topology.raw import MAX_NODES, MAX_PAYLOAD, RawEvent, RawPublish, RawScenario
from testbed.topology.selectors import Members, SelectorError, select
from testbed.topology.source_map import Path
from testbed.topology.units import DURATION, SIZE
from testbed.topology.volume import MAX_PUBLICATIONS, most_publications


def scenario(checking: Checking, nodes: tuple[Node, ...]) -> Scenario:
    """What happens; whatever is wrong with it goes to the problems."""
    raw = checking.file.scenario
    if raw is None:
        return Scenario()
    by_name = {node.name: node for node in nodes}
    members = _members(checking, by_name)
    events: list[Publish] = []
    total = 0
    for place, event in zip(checking.shaped.events, raw.events, strict=True):
        path: Path = ("scenario", "events", place)
        _check_repetition(checking, path, event.publish)
        _check_times(checking, path, event, raw)
        chosen = _publishers(checking, (*path, "publish"), event.publish, members, by_name)
        publish = _publish(event, tuple(node.name for node in chosen))
        before, total = total, total + most_publications(publish, raw.duration)
        if before <= MAX_PUBLICATIONS < total and checking.shaped.sound("scenario"):
            checking.key(
                (*path, "publish"),
                f"the scenario would publish {total:,} messages; at most {MAX_PUBLICATIONS:,} are possible",
                "lengthen `period`, shorten `for`, or lower `count`",
            )
        events.append(publish)
    return Scenario(raw.duration, raw.settle, tuple(events))


def _members(checking: Checking, by_name: dict[str, Node]) -> Members:
    """What selectors can mean; a group whose count is wrong could have any number of members."""
    groups = {
        name: group.count if checking.shaped.sound("groups", name, "count") else MAX_NODES
        for name, group in checking.file.groups.items()
    }
    return Members(frozenset(by_name), groups)


def _publishers(
    checking: Checking, path: Path, raw: RawPublish, members: Members, by_name: dict[str, Node]
) -> list[Node]:
    """The nodes meant, each once, in file order."""
    chosen: dict[str, Node] = {}
    for index, selector in enumerate(raw.nodes):
        where = (*path, "from", index)
        if where not in checking.document.source.values:
            where = (*path, "from")
        if not _checkable(checking, selector):
            continue
        try:
            found = [by_name[name] for name in select(selector, members) if name in by_name]
        except SelectorError as error:
            checking.value(where, str(error), error.hint)
            continue
        if strange := [node for node in found if _cannot_publish(checking, node)]:
            checking.value(
                where,
                f"{strange[0].name} is a {strange[0].kind}; only sensors publish",
                "choose sensors, or change its `kind`",
            )
        chosen.update((node.name, node) for node in found)
    _check_topics(checking, (*path, "topic"), raw.topic, list(chosen.values()))
    return sorted(chosen.values(), key=lambda node: node.number)


def _checkable(checking: Checking, selector: str) -> bool:
    """Whether what the selector names was itself sound; if not, that problem is enough."""
    name = selector.split("[", 1)[0]
    for section in ("groups", "nodes"):
        if not checking.shaped.sound(section) and (
            section not in checking.document.data or not checking.written(section)
        ):
            return False
        if (section, name) in checking.shaped.wrong:
            return False
    return checking.file.nodes.keys() | checking.file.groups.keys() != set()


def _cannot_publish(checking: Checking, node: Node) -> bool:
    origin = ("groups", node.group) if node.group else ("nodes", node.name)
    return node.kind is not NodeKind.SENSOR and checking.shaped.sound(*origin, "kind")


def _check_topics(checking: Checking, path: Path, template: str, publishers: list[Node]) -> None:
    for node in publishers:
        if "{group}" in template and node.group is None:
            checking.value(
                path, f"{{group}} means nothing for {node.name}, which is in no group", "use {node}"
            )
            return
        if problem := topic_problem(filled(template, node.name, node.group)):
            checking.value(path, *problem)
            return


def _check_repetition(checking: Checking, path: Path, raw: RawPublish) -> None:
    inner = (*path, "publish")
    if raw.period is not None and raw.rate is not None:
        checking.key((*inner, "rate"), "`period` and `rate` say the same thing twice", "keep one")
    if raw.period == 0:
        checking.value((*inner, "period"), "a period of zero never ends", "write it like 1s")
    if raw.period is None and raw.rate is None and checking.shaped.sound(*inner):
        for key, given in (("for", raw.length), ("count", raw.count)):
            if given is not None:
                checking.key(
                    (*inner, key),
                    f"`{key}` without `period` or `rate`: how often is not said",
                    "add `period: 1s`",
                )
    if raw.size > MAX_PAYLOAD:
        checking.value(
            (*inner, "size"), f"a message has at most {SIZE.write(MAX_PAYLOAD)}", "send several"
        )


def _check_times(checking: Checking, path: Path, event: RawEvent, scenario: RawScenario) -> None:
    """Nothing may be cut off silently by the scenario's end."""
    if not checking.shaped.sound("scenario", "duration") or not checking.shaped.sound(*path):
        return
    raw, end = event.publish, scenario.duration
    inner = (*path, "publish")
    period = raw.period or raw.rate
    if event.at > end:
        _too_late(checking, (*path, "at"), "begins", event.at, end)
    elif raw.length is not None and event.at + raw.length > end:
        _too_late(checking, (*inner, "for"), "goes on", event.at + raw.length, end)
    elif event.at + raw.spread > end or (raw.length is not None and raw.spread > raw.length):
        last = end - event.at if raw.length is None else raw.length
        checking.value(
            (*inner, "spread"),
            f"a spread of {DURATION.write(raw.spread)} is longer than the event itself",
            f"at most {DURATION.write(round(last, 9))}",
        )
    elif raw.count is not None and period and raw.length is None:
        last_one = event.at + raw.spread + (raw.count - 1) * period
        if last_one > end:
            _too_late(checking, (*inner, "count"), "goes on", last_one, end)


def _too_late(checking: Checking, path: Path, does: str, time: float, end: float) -> None:
    checking.value(
        path,
        f"the event {does} until {DURATION.write(round(time, 9))}, but the scenario ends at {DURATION.write(end)}"
        if does == "goes on"
        else f"the event begins at {DURATION.write(time)}, but the scenario ends at {DURATION.write(end)}",
        "lengthen the scenario's `duration`",
    )


def _publish(event: RawEvent, nodes: tuple[str, ...]) -> Publish:
    raw = event.publish
    return Publish(
        at_s=event.at,
        nodes=nodes,
        topic=raw.topic,
        priority=raw.priority,
        size=raw.size,
        period_s=raw.period or raw.rate,
        for_s=raw.length,
        count=raw.count,
        probability=raw.probability,
        spread_s=raw.spread,
    )
