"""`replay` plays a recorded run again and compares both: the same publications, with injected ones and faults."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.lab.inject import inject
from testbed.records import find_lab

FILE = """
name: again
seed: 11
defaults: {link: 3g-384k}
nodes:
  broker: {kind: broker, link: lan}
  siren: {kind: subscriber, topics: [alerts]}
  spare: {kind: sensor}
groups:
  gauges: {kind: sensor, count: 3}
scenario:
  duration: 6s
  settle: 30s
  events:
    - {at: 500ms, publish: {from: "gauges[*]", topic: alerts, priority: 4, size: 200B, period: 1s, spread: 500ms}}
    - {at: 2s, crash: {nodes: spare}}
"""
BUSY_MACHINE = "2s"  # the tolerances of a test; `replay` itself is stricter


@pytest.fixture
def recorded(testbed_json: Any, places: Path) -> Path:
    """The folder of a run whose topology file is gone, with a message that was injected while it was played."""
    file = places / "again.yaml"
    file.write_text(FILE)
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])

    def inject_one() -> None:
        """In this process: another would take long to start, and the scenario could be over."""
        while '"publish"' not in (folder / "logs" / "gauges-0.jsonl").read_text():
            time.sleep(0.05)
        inject(find_lab("again"), "gauges-1", "alerts", 5, 700)

    injector = threading.Thread(target=inject_one)
    injector.start()
    played = testbed_json("play", "again")
    injector.join()
    testbed_json("down", "again")
    file.unlink()
    assert played["received"] == played["expected"]
    assert played["lateness"]["n"] == played["published"] - 1
    return folder


@pytest.mark.netns
def test_a_run_is_played_again_from_its_folder_alone(
    recorded: Path, testbed_json: Any, testbed: Any
) -> None:
    rows = [json.loads(line) for line in (recorded / "published.jsonl").read_text().splitlines()]
    (injected,) = [row for row in rows if not row["planned"]]
    assert (injected["node"], injected["size"], injected["late_ns"]) == ("gauges-1", 700, None)
    manifest = json.loads((recorded / "run.json").read_text())
    assert manifest["injected"][0]["id"] == injected["id"]
    assert manifest["play"]["publications"]["never_published"] == 0

    again = testbed_json("replay", recorded, "--within", BUSY_MACHINE)
    assert again["publications"]["empty"]
    assert again["publications"]["same"] == len(rows)
    assert again["replay"] == {"of": recorded.name, "as": "happened"}
    assert {one["backend"] for one in again["runs"]} == {"netns"}
    second = Path(again["report"]).parent
    crash = json.loads((second / "run.json").read_text())["actions"][0]
    assert (crash["action"], crash["targets"]) == ("crash", ["spare"])

    virtual = testbed_json(
        *("replay", recorded, "--backend", "simulated", "--set", "delivery.method=preemptive"),
        *("--within", "0s"),
    )
    assert virtual["publications"]["empty"]
    assert virtual["publications"]["farthest_s"] == 0
    assert [one["backend"] for one in virtual["runs"]] == ["netns", "simulated"]

    stream = testbed("events", second, "--json", "--kind", "publication", "--kind", "fault")
    events = [json.loads(line) for line in stream.stdout.splitlines()]
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    assert sum(event["kind"] == "publication" for event in events) == len(rows)
    assert [event["event"] for event in events if event["kind"] == "fault"] == ["crash"]
