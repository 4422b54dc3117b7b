"""The Z-order map on real links: while alerts are published, brokers move to where they happen, and nothing is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from living_overlay import Told, ask
from valley_areas import Valley

LAB = "kochi-areas"
BROKERS = [f"halls-{number}" for number in range(10)]
POINTS = 1 << 64  # of the map: two dimensions of 32 bits


def graphs() -> dict[str, dict[str, Any]]:
    """The part of the map that each broker reports."""
    told = ask(LAB, BROKERS, "overlay")
    return {name: answer["overlay"]["graph"] for name, answer in told.items()}


def keys(told: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    return {name: [peer["key"] for peer in graph["peers"]] for name, graph in told.items()}


@pytest.mark.netns
def test_brokers_move_while_alerts_are_published_and_everybody_gets_what_it_wants_once(
    testbed_json: Any, places: Path
) -> None:
    valley = Valley(LAB)
    file = places / f"{LAB}.yaml"
    file.write_text(valley.text)
    folder = Path(testbed_json("up", file, "--backend", "netns", codes=(0, 3))["run_folder"])
    before = keys(graphs())
    testbed_json("play", LAB, codes=(0, 3))
    told = graphs()
    testbed_json("down", LAB, codes=(0, 3))

    assert sorted(told) == BROKERS
    assert {name for name in BROKERS if keys(told)[name] != before[name]}, "nobody has moved"
    areas = sorted(
        (int(first, 16), int(last, 16)) for graph in told.values() for first, last in graph["areas"]
    )
    behind = 0
    for first, last in areas:
        assert first == behind, "each point has one owner"
        behind = last + 1
    assert behind == POINTS

    logs = Told.by(folder)
    due = {
        (name, identity): 1
        for identity, event in logs.published.items()
        for name in valley.receivers(event["node"], event["priority"])
    }
    assert len(logs.published) > 300
    assert dict(logs.handed) == due
    assert not [
        line
        for log in (folder / "logs").glob("halls-*.jsonl")
        for line in map(json.loads, log.read_text().splitlines())
        if line["event"] in ("refuse", "given-up")
    ]
