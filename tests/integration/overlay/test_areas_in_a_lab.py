"""Subscriptions by area on real links: by the captures each subscriber got what its file says; the report agrees."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from told_by_nodes import must_agree
from valley_areas import Valley


@pytest.mark.netns
@pytest.mark.spark
def test_each_siren_gets_the_alerts_of_its_valley_and_nothing_is_called_lost(
    testbed_json, analyzed, places, watch
):
    valley = Valley()
    file = places / "valley-alerts.yaml"
    file.write_text(valley.text)
    folder = Path(testbed_json("up", file, "--backend", "netns", codes=(0, 3))["run_folder"])
    for command in ("play", "down"):
        testbed_json(command, "valley-alerts", codes=(0, 3))
    document = analyzed(folder)
    must_agree(folder)

    logs = [
        json.loads(line)
        for log in (folder / "logs").glob("*.jsonl")
        for line in log.read_text().splitlines()
    ]
    published = {line["id"]: line for line in logs if line["event"] == "publish"}
    due = {
        (identity, name)
        for identity, line in published.items()
        for name in valley.receivers(line["node"], line["priority"])
    }
    table = pq.read_table(folder / "metrics" / "deliveries.parquet").to_pylist()
    assert {(row["id"], row["receiver"]) for row in table} == due
    assert {row["status"] for row in table} == {"delivered"}
    # A subscriber's own link carries nothing that it did not subscribe to.
    messages = pq.read_table(folder / "metrics" / "messages.parquet").to_pylist()
    came = {
        (row["id"], row["link"])
        for row in messages
        if row["kind"] == "PUBLISH" and row["link"] in valley.wanted and row["direction"] == "down"
    }
    assert came == due
    assert document["messages"]["expected_deliveries"] == len(due)
    assert document["messages"]["lost"] == 0
    assert document["messages"]["handed_twice"] == 0
    forwards = document["overlay"]["forwards"].values()
    assert {level["relay_share"] for level in forwards} == {0}, (
        "each broker has guests that want some"
    )
    assert watch.leftovers() == []
