"""The JSON Schemas of topology files and scenario files, from the models in `sections`: for editors and for hints."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from testbed.topology.diagnostics.source_map import Path
from testbed.topology.schema.checks import Section
from testbed.topology.schema.sections import RawScenario, TopologyFile


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12."""
    return _made(TopologyFile, "Testbed topology")


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file."""
    return _made(RawScenario, "Testbed scenario")


def _made(model: type[Section], title: str) -> dict[str, Any]:
    made = model.model_json_schema(by_alias=True, mode="validation")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **{key: _tidy(value) for key, value in made.items() if key != "title"},
    }


def _tidy(part: Any) -> Any:
    """Remove titles and defaults that are names and values of Python, not of a file."""
    if isinstance(part, list):
        return [_tidy(item) for item in part]
    if not isinstance(part, dict):
        return part
    tidy = {
        key: _tidy(value)
        for key, value in part.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and (value in (None, {}, []) or isinstance(value, float | dict)))
    }
    if "patternProperties" in tidy:
        tidy["additionalProperties"] = False
    return tidy


def known_keys(path: Path) -> tuple[str, ...]:
    """The keys that the mapping at this path may have."""
    keys: dict[str, None] = {}
    for part in _at(path):
        keys.update(dict.fromkeys(part.get("properties", {})))
    return tuple(keys)


@cache
def _schema() -> dict[str, Any]:
    return json_schema()


def _at(path: Path) -> list[dict[str, Any]]:
    """The parts of the schema that describe the value at this path."""
    parts = list(_alternatives(_schema()))
    for step in path:
        below: list[dict[str, Any]] = []
        for part in parts:
            for inner in _below(part, step):
                below.extend(_alternatives(inner))
        parts = below
    return parts


def _below(part: dict[str, Any], step: str | int) -> list[dict[str, Any]]:
    if isinstance(step, int):
        inner = [part.get("items")]
    elif step in part.get("properties", {}):
        inner = [part["properties"][step]]
    else:  # sections whose keys are names of the user
        inner = [part.get("additionalProperties"), *part.get("patternProperties", {}).values()]
    return [item for item in inner if isinstance(item, dict)]


def _alternatives(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if reference := part.get("$ref"):
        yield from _alternatives(_schema()["$defs"][reference.rsplit("/", 1)[1]])
    for other in (*part.get("anyOf", ()), *part.get("oneOf", ())):
        yield from _alternatives(other)
    yield part
