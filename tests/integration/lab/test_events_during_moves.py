"""Sensors publish while brokers move all the time: the captures show each delivery once, and the moves."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.overlays.running_overlay import PublicationLog
from support.overlays.valley_areas import Valley
from support.runs.log_agreement import must_agree

LAB = "moving-areas"
SECONDS = 12  # of the file's scenario
MOVES = 8  # at least, also on a busy machine


def moves(summary: dict[str, Any]) -> int:
    """A lower bound of the moves. In each, a broker learns its new place, claims it and gives up the old one."""
    messages_by_kind = summary["overlay"]["control"]["by_overlay_kind"]
    steps = ("Notify cut", "Claimed", "Unlinked")
    return min(messages_by_kind.get(step, {"messages": 0})["messages"] for step in steps)


@pytest.mark.netns
@pytest.mark.spark
def test_every_event_reaches_each_of_its_subscribers_once_while_brokers_move(
    testbed_json: Any, analyzed: Any, places: Path
) -> None:
    valley = Valley(LAB)
    file = places / f"{LAB}.yaml"
    file.write_text(valley.text.replace("duration: 75s", f"duration: {SECONDS}s"))
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    for command in ("play", "down"):
        testbed_json(command, LAB)
    summary = analyzed(folder)
    must_agree(folder)

    assert moves(summary) >= MOVES
    published = PublicationLog.read(folder).published
    expected = {
        (identity, name)
        for identity, event in published.items()
        for name in valley.receivers(event["node"], event["priority"])
    }
    deliveries = pq.read_table(folder / "metrics" / "deliveries.parquet").to_pylist()
    assert {(row["id"], row["receiver"]) for row in deliveries} == expected
    assert {row["status"] for row in deliveries} == {"delivered"}
    assert {row["handed"] for row in deliveries} == {1}
    assert summary["messages"]["expected_deliveries"] == len(expected) > 400
    assert summary["messages"]["lost"] == summary["messages"]["handed_twice"] == 0
