"""Boards whose clocks are wrong: they are told times by their own clocks, and what they tell is put right again."""

import json
from contextlib import suppress

from testbed.places import RunPlace

FILE = "clocks.jsonl"
WORTH_IT_NS = (
    5_000_000  # what is nearer than this is left alone: the scenario's times are not more exact
)


def shifts(run: RunPlace) -> dict[str, int]:
    """Node -> how far its clock was ahead when it was set up (ns), if that matters: the same all through the run."""
    path = run.folder / FILE
    if not path.exists():
        return {}
    first: dict[str, int] = {}
    for line in path.read_text().splitlines():
        with suppress(ValueError, KeyError, TypeError):  # torn by a crash
            reading = json.loads(line)
            first.setdefault(str(reading["node"]), int(reading["offset_ns"]))
    return {node: ahead for node, ahead in first.items() if abs(ahead) > WORTH_IT_NS}
