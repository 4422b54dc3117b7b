"""The lines of `scenario.expect`: each is parsed, and its names are compared with the nodes and topics."""

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
    """The expectations of the scenario; a mistake in a line becomes a problem at its word."""
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
    """ExpectationError if the line names an unknown topic or node, or one that receives or sends nothing."""
    subscribers = [node for node in nodes if node.kind is NodeKind.SUBSCRIBER]
    sensors = [node for node in nodes if node.kind is NodeKind.SENSOR]
    topics = {topic for node in subscribers for topic in node.subscribed_topics}
    for scope, name, known, what in (
        ("topic", one.topic, topics, "subscribed topic"),
        ("node", one.node, _names(subscribers), "subscriber, or group of them,"),
        ("from", one.origin, _names(sensors), "sensor, or group of them,"),
    ):
        if name is not None and name not in known:
            start = line.index(name, line.index(scope) + len(scope))
            message = f"there is no {what} {quoted(name)}"
            raise ExpectationError(message, did_you_mean(name, sorted(known)), start, len(name))


def _names(nodes: Iterable[Node]) -> set[str]:
    """The names of the nodes and of their groups."""
    return {name for node in nodes for name in (node.name, node.group) if name is not None}


def _inside(checking: Checking, path: Path, line: str, error: ExpectationError) -> Place:
    """The place of the wrong word; the whole line if YAML folds it."""
    place = checking.document.source.value(path)
    if not place.line:
        return place
    shown = checking.document.source.text(place)[place.column - 1 :]
    quote = 1 if shown[:1] in QUOTES else 0
    if not shown[quote:].startswith(line):
        return place
    return replace(place, column=place.column + quote + error.start, width=error.width)
