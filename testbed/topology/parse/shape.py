"""Check the shape of each section: every error becomes a problem.

The wrong parts are removed, so that later checks can use the valid rest.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from testbed.topology.diagnostics.hints import did_you_mean, listing, quoted
from testbed.topology.diagnostics.problems import ProblemList
from testbed.topology.diagnostics.source_map import Path, Place
from testbed.topology.parse.yaml_reader import Document
from testbed.topology.schema.checks import OURS, described
from testbed.topology.schema.json_schema import known_keys
from testbed.topology.schema.sections import ONE, SEVERAL, TopologyFile

FORMER_KEYS = {"restart": "start", "heal": "restore", "home": "brokers"}
EVENTS: Path = ("scenario", "events")  # the only list whose items are independent of each other

# A wrong required value is replaced by a harmless one; without it, its whole section would be removed.
_STAND_INS: dict[tuple[str, str], Any] = {
    ("nodes", "kind"): "sensor",
    ("groups", "kind"): "sensor",
    ("groups", "count"): 1,
    ("scenario", "duration"): "0s",
    ("scenario", "at"): "0s",
    ("scenario", "topic"): "x",
    ("scenario", "size"): "1B",
    ("scenario", "down"): "1s",
    ("scenario", "above"): "1s",
    ("scenario", "rate"): "1bit/s",
    ("scenario", "to"): "x",
    ("scenario", "up"): "1s",
}


def has_stand_in(path: Path) -> bool:
    """Whether a wrong or missing value at this path can be replaced."""
    return _stand_in(path) is not None


def _stand_in(path: Path) -> Any:
    return _STAND_INS.get((str(path[0]), str(path[-1])))


class Cutting:
    """A copy of the data, in which wrong parts are removed or replaced one by one."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.cut: set[Path] = set()  # paths in the original file
        scenario = self.data.get("scenario")
        events = scenario.get("events") if isinstance(scenario, dict) else None
        self.events = list(range(len(events))) if isinstance(events, list) else []

    def remove(self, wrong: Iterable[Path]) -> bool:
        """Remove these parts, named by their paths in `data`; False if nothing would be left."""
        if not self.cut:
            self.data = copy.deepcopy(self.data)
        # Later list items first, so that the indices of earlier ones stay valid; parts before their containers.
        order = sorted(
            set(wrong), key=lambda path: [(type(s) is int, s) for s in path], reverse=True
        )
        for path in order:
            if not path:
                return False
            original = self._original(path)
            container = self.data
            for step in path[:-1]:
                container = container[step]
            stand_in = _stand_in(path)
            if stand_in is not None and original not in self.cut and isinstance(container, dict):
                container[path[-1]] = stand_in
            else:
                container.pop(path[-1])
                if path[:-1] == EVENTS:
                    self.events.pop(int(path[-1]))
            self.cut.add(original)
        return True

    def _original(self, path: Path) -> Path:
        if path[:2] == EVENTS and len(path) > 2:
            return (*EVENTS, self.events[int(path[2])], *path[3:])
        return path


_OF_KEY = "[key]"  # pydantic's mark of a wrong key
_EXAMPLES = {
    "kind": "add `kind: broker`, `kind: sensor`, `kind: subscriber`, `kind: router` or `kind: external`",
    "count": "add `count: 3`; a single node belongs under `nodes`",
    "topic": "add `topic: alerts`",
    "size": "add `size: 300B`",
    "down": "add `down: 2s`",
    "above": "add `above: 2s`",
    "sides": 'add `sides: [["north[*]"], ["south[*]"]]`',
    "to": "add `to: office`",
    "rate": "add `rate: 64kbit/s`",
    "command": "add `command: ip route`",
    "up": "add `up: 5s`",
    "duration": "add `duration: 20s`",
    "hazard.kind": "add `kind: landslide`, `kind: flood` or `kind: earthquake`",
    "hazard.nodes": 'add `nodes: "slopes[*]"`',
}


@dataclass(frozen=True, slots=True)
class Shaped:
    """The valid part of a file, and the paths of the wrong parts."""

    file: TopologyFile
    wrong: frozenset[Path]
    around: frozenset[Path]  # containers of wrong parts
    events: tuple[int, ...]  # index in the file of each event that is left

    def sound(self, *path: str | int) -> bool:
        """Whether this path, its parts and its containers are valid."""
        return path not in self.around and not any(
            path[:size] in self.wrong for size in range(len(path) + 1)
        )


def shape(document: Document, problems: ProblemList) -> Shaped | None:
    """Check the document against the models; None if no valid part is left."""
    if not isinstance(document.data, dict):
        see = "begin with `nodes:`; topologies/minimal.yaml is a small example"
        if document.data is None:
            problems.at(Place(1, 1), "the file is empty", see)
        else:
            message = f"a topology is a mapping (key: value), not {described(document.data)}"
            problems.at(document.source.value(()), message, see)
        return None
    errors = _errors(document.data)
    _report(errors, document, problems)
    rest = Cutting(document.data)
    while errors:
        if not rest.remove(_to_cut(item) for item in errors):
            return None
        errors = _errors(rest.data)
    file = TopologyFile.model_validate(rest.data)
    around = {path[:size] for path in rest.cut for size in range(len(path))}
    return Shaped(file, frozenset(rest.cut), frozenset(around), tuple(rest.events))


def _errors(data: object) -> Sequence[ErrorDetails]:
    try:
        TopologyFile.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        for item in found:
            item["loc"] = tuple(step for step in item["loc"] if step not in (ONE, SEVERAL))
        return found
    return ()


def _to_cut(item: ErrorDetails) -> Path:
    """The path of the part to remove or replace because of this error."""
    path: Path = item["loc"]
    if path[-1] == _OF_KEY:
        return path[:-1]
    if item["type"] == "missing":
        return path if has_stand_in(path) else path[:-1]
    # One wrong item makes its list wrong, as for topics; only events are independent of each other.
    while isinstance(path[-1], int) and path[:-1] != EVENTS:
        path = path[:-1]
    return path


def _report(errors: Sequence[ErrorDetails], document: Document, problems: ProblemList) -> None:
    for item in errors:
        path: Path = item["loc"]
        of_key = path[-1:] == (_OF_KEY,)
        if of_key:
            path = path[:-1]
        points_at_key = of_key or item["type"] in ("extra_forbidden", "missing")
        if item["type"] == OURS and item["ctx"]["item"] is not None:
            path = (*path, item["ctx"]["item"])
        place = document.source.key(path) if points_at_key else document.source.value(path)
        problems.at(place, *_texts(item))


def _unknown(path: Path) -> tuple[str, str]:
    key = str(path[-1])
    if (now := FORMER_KEYS.get(key)) in (known := known_keys(path[:-1])):
        return f"`{key}` is called `{now}` now", f"write `{now}`"
    return f"unknown key {quoted(key)}", did_you_mean(key, known)


def _texts(item: ErrorDetails) -> tuple[str, str]:
    """Message and hint."""
    path, value = item["loc"], item["input"]
    if item["type"] == OURS:
        return item["ctx"]["message"], item["ctx"]["hint"]
    match item["type"]:
        case "missing":
            key = str(path[-1])
            example = _EXAMPLES.get(".".join(map(str, path[-2:]))) or _EXAMPLES.get(key)
            return f"`{key}` is missing here", example or f"add `{key}:`"
        case "extra_forbidden":
            return _unknown(path)
        case "list_type":
            hint = f"write it as a list: [{quoted(value)[1:-1]}]" if isinstance(value, str) else ""
            return f"a list is expected here, not {described(value)}", hint
        case "string_type":
            return f"a name is expected here, not {described(value)}", "put it in quotes"
    keys = known_keys(path)
    hint = f"keys here: {listing(keys)}" if keys else "write names, each with its own keys below"
    return f"a mapping (key: value) is expected here, not {described(value)}", hint
