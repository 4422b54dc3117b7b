"""Check the parameters of the chosen overlay and delivery methods: each method is created once, as it is pure."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from nodes.delivery import METHODS as DELIVERY_METHODS
from nodes.overlay import METHODS as OVERLAY_METHODS
from nodes.overlay.base import Station
from nodes.parameters import ParameterError
from nodes.protocol.space import Space
from nodes.protocol.wire import COORDINATE_BYTES, HEADER_SIZE, MAX_PAYLOAD_BYTES, MAX_TOPIC_BYTES
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import Node, PublishEvent, Scenario
from testbed.topology.names import filled
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.links import places
from testbed.topology.schema.sections import RawDelivery

_Make = Callable[[Mapping[str, Any]], object]  # creates the method; ValueError if it refuses
_LONGEST = 200
_HINT = "see docs/reference/topology.md for the parameters of each method"


def check_methods(
    checking: Checking, nodes: tuple[Node, ...], scenario: Scenario, space: Space | None
) -> None:
    """Every method accepts its parameters, and each message of the scenario fits into a queue."""
    file = checking.file
    dimensions = len(space.dimensions) if space else 0
    station = Station("broker", 1, dimensions=dimensions)
    if checking.shaped.sound("overlay"):
        _try(
            checking,
            ("overlay",),
            file.overlay.parameters,
            lambda given: OVERLAY_METHODS[file.overlay.method](station, given, random.Random(0)),
        )
    largest = bytes(_largest_message(nodes, scenario, dimensions))
    for path, chosen in places(checking):
        if _try(checking, path, chosen.parameters, _both_ends(chosen.method)):
            _check_queue_capacity(checking, path, chosen, largest)


def _both_ends(name: str) -> _Make:
    def make(given: Mapping[str, Any]) -> object:
        method = DELIVERY_METHODS[name]
        return method.scheduler(given), method.assembler(given), method.needs(given)

    return make


def _try(checking: Checking, section: Path, parameters: Mapping[str, Any], make: _Make) -> bool:
    """Whether the method accepts the parameters; each wrong one becomes a problem, and the rest is tried without it."""
    left = dict(parameters)
    while (error := _objection(make, left)) is not None:
        wrong = error.name if isinstance(error, ParameterError) else _wrong_parameter(make, left)
        path = section if wrong is None else (*section, wrong)
        checking.key(path, _short(error), _HINT)
        if wrong is None or wrong not in left:
            return False
        del left[wrong]
    return len(left) == len(parameters)


def _objection(make: _Make, parameters: Mapping[str, Any]) -> ValueError | None:
    try:
        make(parameters)
    except ValueError as error:
        return error
    return None


def _wrong_parameter(make: _Make, parameters: Mapping[str, Any]) -> str | None:
    """The parameter without which the method accepts the others; None if there is none."""
    for name in parameters:
        others = {other: value for other, value in parameters.items() if other != name}
        if _objection(make, others) is None:
            return name
    return None


def _short(error: ValueError) -> str:
    """The message of the error, cut: a method quotes a wrong value in full."""
    text = str(error)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _check_queue_capacity(
    checking: Checking, path: Path, chosen: RawDelivery, largest: bytes
) -> None:
    """Refuse a queue that is too small for the largest message: it would drop this message each time."""
    queue = DELIVERY_METHODS[chosen.method].scheduler(chosen.parameters)
    if largest and queue.offer(largest, 1, 0.0):
        checking.value(
            (*path, "limit_bytes"),
            f"the scenario's largest message has {len(largest):,} bytes with its header, and would never fit",
            f"allow at least {len(largest)}, or publish smaller messages",
        )


def _largest_message(nodes: tuple[Node, ...], scenario: Scenario, dimensions: int) -> int:
    """The size of the largest encoded message; 0 without any. A message above the limit is a problem of its own."""
    groups = {node.name: node.group for node in nodes}
    head = HEADER_SIZE + (1 + COORDINATE_BYTES * dimensions if dimensions else 0)
    largest = 0
    for event in scenario.publish_events:
        sendable = event.nodes and event.size <= MAX_PAYLOAD_BYTES
        if sendable and event.size + head + MAX_TOPIC_BYTES > largest:
            largest = max(largest, event.size + head + _longest_topic(event, groups))
    return largest


def _longest_topic(event: PublishEvent, groups: Mapping[str, str | None]) -> int:
    return max(len(filled(event.topic, name, groups[name]).encode()) for name in event.nodes)
