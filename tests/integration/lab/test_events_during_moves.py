"""Events that are published while brokers move all the time: the captures show each delivery once, and the moves."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from living_overlay import Told
from told_by_nodes import must_agree
from valley_areas import Valley

LAB = "moving-areas"
SECONDS = 12  # of the file's scenario
MOVES = 8  # at least, also on a busy machine


def moves(summary: dict[str, Any]) -> int:
    """At least so many moves: a broker learnt where to begin, got that place, and the old one was given up."""
    words = summary["overlay"]["control"]["by_word"]
    steps = ("Tell cut", "Claimed", "Unlinked")
    return min(words.get(step, {"messages": 0})["messages"] for step in steps)


@pytest.mark.netns
@pytest.mark.spark
def test_while_brokers_move_every_event_reaches_everybody_who_wants_it_once(
    testbed_json: Any, analyzed: Any, places: Path
) -> None:
    valley = Valley(LAB)
    file = places / f"{LAB}.yaml"
    file.write_text(valley.text.replace("duration: 75s", f"duration: {SECONDS}s"))
    folder = Path(testbed_json("up", file, "--backend", "netns", codes=(0, 3))["run_folder"])
    for command in ("play", "down"):
        testbed_json(command, LAB, codes=(0, 3))
    summary = analyzed(folder)
    must_agree(folder)

    assert moves(summary) >= MOVES
    published = Told.by(folder).published
    due = {
        (identity, name)
        for identity, event in published.items()
        for name in valley.receivers(event["node"], event["priority"])
    }
    deliveries = pq.read_table(folder / "metrics" / "deliveries.parquet").to_pylist()
    assert {(row["id"], row["receiver"]) for row in deliveries} == due
    assert {row["status"] for row in deliveries} == {"delivered"}
    assert {row["handed"] for row in deliveries} == {1}
    assert summary["messages"]["expected_deliveries"] == len(due) > 400
    assert summary["messages"]["lost"] == summary["messages"]["handed_twice"] == 0
