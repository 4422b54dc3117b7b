"""Topology files: read, checked (every problem with file, line, caret and hint), expanded to an immutable Topology.

The reader is loaded when a file is read, not before: the keeper and the relays need only the model, and start faster.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.topology.diagnostics.problems import Problem, TopologyErrors
from testbed.topology.model import Topology

__all__ = [
    "Problem",
    "Topology",
    "TopologyErrors",
    "find_likely_mistakes",
    "json_schema",
    "load",
    "load_text",
    "scenario_schema",
]


def load(
    path: Path,
    *,
    name: str | None = None,
    scenario: Path | None = None,
    overrides: Sequence[str] = (),
) -> Topology:
    """The topology of this file; TopologyErrors with all its problems.

    The lab's name is `name`, else the one in the file, else the file's own name. `scenario`: a file that replaces the
    topology's own `scenario`. `overrides`: PATH=VALUE, which replace values of both files.
    """
    from testbed.topology import loader

    return loader.load(path, name=name, scenario=scenario, overrides=overrides)


def load_text(
    text: str,
    source: str,
    *,
    name: str | None = None,
    fallback: str = "lab",
    folder: Path = Path(),
    scenario: Path | None = None,
    overrides: Sequence[str] = (),
) -> Topology:
    """The same from a text: errors name `source`; `fallback` is the lab's name if there is no other.

    Relative paths in the text start at `folder`.
    """
    from testbed.topology import loader

    return loader.load_text(
        text,
        source,
        name=name,
        fallback=fallback,
        folder=folder,
        scenario=scenario,
        overrides=overrides,
    )


def find_likely_mistakes(topology: Topology) -> tuple[str, ...]:
    """Likely mistakes, as sentences: topics without a publisher or a subscriber, an overlay of one broker."""
    from testbed.topology import likely_mistakes

    return (*likely_mistakes.too_few_brokers(topology), *likely_mistakes.unmatched_topics(topology))


def json_schema() -> dict[str, Any]:
    """The file format as JSON Schema (draft 2020-12), for editors."""
    from testbed.topology.schema import json_schema as schema

    return schema.json_schema()


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario in a file of its own."""
    from testbed.topology.schema import json_schema as schema

    return schema.scenario_schema()
