"""The monitor samples the machine while a real lab runs, and the lab does not depend on the monitor."""

import json
import os
import signal
from pathlib import Path

import pytest

from support.lines import records
from testbed.keeper.processes import marked
from testbed.places import LabPlace

pytestmark = pytest.mark.netns


def rows_of(run_folder: Path) -> list[dict]:
    return records(run_folder / "machine.jsonl")


def monitor_of(lab: str) -> int:
    (process,) = [each for each in marked(LabPlace.of(lab)) if each.role == "monitor"]
    return process.pid


def test_a_run_has_a_row_for_each_second(testbed_json, watch, repository):
    minimal = repository / "topologies" / "minimal.yaml"
    lab = testbed_json("up", minimal, "--backend", "netns")
    folder = Path(lab["run_folder"])
    testbed_json("play", "minimal")
    testbed_json("down", "minimal")
    play = json.loads((folder / "run.json").read_text())["play"]
    rows = rows_of(folder)
    begin = rows[0]["t"] - rows[0]["span_s"] * 1e9
    covered = sum(row["span_s"] for row in rows)
    assert begin < play["start_ns"]
    assert rows[-1]["t"] >= play["end_ns"]
    assert covered == pytest.approx((rows[-1]["t"] - begin) / 1e9, abs=0.1)
    assert len(rows) <= covered + 2  # fewer, if the machine delayed the monitor itself
    assert sum(row["relay_forwarded"] for row in rows) > 20
    assert all(row["capture_dropped"] == 0 for row in rows)
    assert watch.leftovers() == []


def test_a_lab_outlives_its_monitor(testbed, testbed_json, watch, repository, wait_until):
    minimal = repository / "topologies" / "minimal.yaml"
    lab = testbed_json("up", minimal, "--backend", "netns")
    os.kill(monitor_of("minimal"), signal.SIGKILL)
    played = testbed_json("play", "minimal")
    assert played["received"] == played["expected"] > 0
    assert testbed("down", "minimal").returncode == 0
    manifest = json.loads((Path(lab["run_folder"]) / "run.json").read_text())
    assert manifest["status"] == "down"
    assert manifest["warnings"] == []
    assert watch.leftovers() == []


def test_a_monitor_ends_with_its_keeper(testbed_json, watch, repository, wait_until):
    minimal = repository / "topologies" / "minimal.yaml"
    testbed_json("up", minimal, "--backend", "netns")
    assert monitor_of("minimal")
    (keeper,) = [each for each in marked(LabPlace.of("minimal")) if each.role == "keeper"]
    os.kill(keeper.pid, signal.SIGKILL)
    wait_until(lambda: not watch.processes(), 60)
