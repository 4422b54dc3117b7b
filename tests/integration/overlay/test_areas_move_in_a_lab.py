"""The Z-order map on real links: brokers move to where sensors publish alerts, and no alert is lost."""

from pathlib import Path
from typing import Any

import pytest

from support.lines import records
from support.overlays.running_overlay import PublicationLog, ask
from support.overlays.valley_areas import Valley

LAB = "kochi-areas"
BROKERS = [f"halls-{number}" for number in range(10)]
POINTS = 1 << 64  # of the map: two dimensions of 32 bits


def graphs() -> dict[str, dict[str, Any]]:
    """The part of the map that each broker reports."""
    reported = ask(LAB, BROKERS, "overlay")
    return {name: answer["overlay"]["graph"] for name, answer in reported.items()}


def keys(reported: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    return {name: [peer["key"] for peer in graph["peers"]] for name, graph in reported.items()}


@pytest.mark.netns
def test_brokers_move_during_publications_and_each_subscriber_receives_its_alerts_once(
    testbed_json: Any, places: Path
) -> None:
    valley = Valley(LAB)
    file = places / f"{LAB}.yaml"
    file.write_text(valley.text)
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    before = keys(graphs())
    testbed_json("play", LAB)
    reported = graphs()
    testbed_json("down", LAB)

    assert sorted(reported) == BROKERS
    assert {name for name in BROKERS if keys(reported)[name] != before[name]}, "no broker has moved"
    areas = sorted(
        (int(first, 16), int(last, 16))
        for graph in reported.values()
        for first, last in graph["areas"]
    )
    next_point = 0
    for first, last in areas:
        assert first == next_point, "each point has one owner"
        next_point = last + 1
    assert next_point == POINTS

    logs = PublicationLog.read(folder)
    expected = {
        (name, identity): 1
        for identity, event in logs.published.items()
        for name in valley.receivers(event["node"], event["priority"])
    }
    assert len(logs.published) > 300
    assert dict(logs.handed) == expected
    assert not [
        line
        for log in (folder / "logs").glob("halls-*.jsonl")
        for line in records(log)
        if line["event"] in ("refuse", "given-up")
    ]
