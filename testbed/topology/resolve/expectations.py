"""The lines of `scenario.expect` in their file: each read, and held against the nodes and topics that there are."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from testbed.topology.diagnostics.hints import did_you_mean, quoted
from testbed.topology.diagnostics.source_map import Path, Place
from testbed.topology.model import Expectation, Node, NodeKind
from testbed.topology.parse import expectations
from testbed.topology.parse.expectations import ExpectationError
from testbed.topology.resolve.checking import Checking

MOST = 200  # lines
QUOTES = "\"'"


def expected(checking: Checking, nodes: Sequence[Node]) -> tuple[Expectation, ...]:
    """What is expected of the scenario; whatever is wrong with a line goes to the problems, with a caret below it."""
    raw = checking.file.scenario
    if raw is None or not checking.shaped.sound("scenario", "expect"):
        return ()
    if len(raw.expect) > MOST:
        checking.key(
            ("scenario", "expect"), f"more than {MOST} expectations", "one line can stand for many"
        )
        return ()
    found: list[Expectation] = []
    for number, line in enumerate(raw.expect):
        path: Path = ("scenario", "expect", number)
        try:
            one = expectations.parse(line)
            check_names(line, one, nodes)
        except ExpectationError as error:
            place = _inside(checking, path, line, error)
            checking.problems.at(place, error.message, error.hint)
        else:
            found.append(one)
    return expectations.distinct(found)


def check_names(line: str, one: Expectation, nodes: Sequence[Node]) -> None:
    """ExpectationError if a topic or node is named that does not exist, or that gets or sends nothing."""
    subscribers = [node for node in nodes if node.kind is NodeKind.SUBSCRIBER]
    sensors = [node for node in nodes if node.kind is NodeKind.SENSOR]
    topics = {topic for node in subscribers for topic in node.subscribed_topics}
    for scope, name, known, what in (
        ("topic", one.topic, topics, "topic that anybody wants"),
        ("node", one.node, _names(subscribers), "subscriber, or group of them,"),
        ("from", one.origin, _names(sensors), "sensor, or group of them,"),
    ):
        if name is not None and name not in known:
            start = line.index(name, line.index(scope) + len(scope))
            message = f"there is no {what} {quoted(name)}"
            raise ExpectationError(message, did_you_mean(name, sorted(known)), start, len(name))


def _names(nodes: Iterable[Node]) -> set[str]:
    """Of the nodes, and of the groups that they are in."""
    return {name for node in nodes for name in (node.name, node.group) if name is not None}


def _inside(checking: Checking, path: Path, line: str, error: ExpectationError) -> Place:
    """Where the wrong word stands; the whole line if that is not written in one piece."""
    place = checking.document.source.value(path)
    if not place.line:
        return place
    shown = checking.document.source.text(place)[place.column - 1 :]
    quote = 1 if shown[:1] in QUOTES else 0
    if not shown[quote:].startswith(line):
        return place
    return replace(place, column=place.column + quote + error.start, width=error.width)
