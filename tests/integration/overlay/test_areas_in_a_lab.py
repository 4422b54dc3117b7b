"""Subscriptions by area on real links: captures and report show that each subscriber received its area's alerts."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.lines import records
from support.overlays.valley_areas import Valley
from support.runs.log_agreement import must_agree


@pytest.mark.netns
@pytest.mark.spark
def test_each_siren_receives_the_alerts_of_its_valley_and_none_counts_as_lost(
    testbed_json, analyzed, places, watch
):
    valley = Valley()
    file = places / "valley-alerts.yaml"
    file.write_text(valley.text)
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    for command in ("play", "down"):
        testbed_json(command, "valley-alerts")
    document = analyzed(folder)
    must_agree(folder)

    logs = [line for log in (folder / "logs").glob("*.jsonl") for line in records(log)]
    published = {line["id"]: line for line in logs if line["event"] == "publish"}
    expected = {
        (identity, name)
        for identity, line in published.items()
        for name in valley.receivers(line["node"], line["priority"])
    }
    table = pq.read_table(folder / "metrics" / "deliveries.parquet").to_pylist()
    assert {(row["id"], row["receiver"]) for row in table} == expected
    assert {row["status"] for row in table} == {"delivered"}
    # A subscriber's own link carries nothing that it did not subscribe to.
    messages = pq.read_table(folder / "metrics" / "messages.parquet").to_pylist()
    captured = {
        (row["id"], row["link"])
        for row in messages
        if row["kind"] == "PUBLISH" and row["link"] in valley.wanted and row["direction"] == "down"
    }
    assert captured == expected
    assert document["messages"]["expected_deliveries"] == len(expected)
    assert document["messages"]["lost"] == 0
    assert document["messages"]["handed_twice"] == 0
    forwards = document["overlay"]["forwards"].values()
    assert {level["relay_share"] for level in forwards} == {0}, (
        "each broker has clients with matching subscriptions"
    )
    assert watch.leftovers() == []
