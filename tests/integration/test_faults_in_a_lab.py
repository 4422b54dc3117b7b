"""A scenario with faults on real links: processes are killed and made again, lines cut, and every alert comes once."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FILE = """
name: faults
seed: 4
defaults: {link: mvno-128k, broker: {link: hspa-7.2m}}
groups:
  halls: {kind: broker, count: 5}
  gauges: {kind: sensor, count: 4}
  sirens: {kind: subscriber, count: 3, topics: [alerts]}
overlay: {method: sg-tbps}
delivery: {method: preemptive}
scenario:
  duration: 24s
  settle: 60s
  events:
    - {at: 1s, publish: {from: "gauges[*]", topic: alerts, priority: 5, size: 200B, period: 2s, spread: 1s}}
    - {at: 4s, crash: {nodes: "halls[3..4]", share: 50%}}
    - {at: 5s, crash: {nodes: "sirens[0]"}}
    - {at: 6s, stop: {nodes: "gauges[1]"}}
    - {at: 7s, cut: {nodes: "gauges[0]"}}
    - {at: 12s, start: {nodes: ["halls[*]", "sirens[0]", "gauges[1]"]}}
    - {at: 14s, restore: {nodes: "gauges[*]"}}
"""


@pytest.mark.netns
def test_what_fails_is_on_record_and_no_alert_is_lost_or_doubled(
    testbed_json: Any, places: Path
) -> None:
    file = places / "faults.yaml"
    file.write_text(FILE)
    folder = Path(testbed_json("up", file, "--backend", "netns", codes=(0, 3))["run_folder"])
    played = testbed_json("play", "faults", codes=(0, 3))
    assert played["received"] == played["expected"] > 100
    testbed_json("down", "faults", codes=(0, 3))
    events = [
        json.loads(line)
        for log in (folder / "logs").glob("*.jsonl")
        for line in log.read_text().splitlines()
    ]
    received = Counter((e["node"], e["id"]) for e in events if e["event"] == "receive")
    published = {e["id"] for e in events if e["event"] == "publish"}
    sirens = {f"sirens-{n}" for n in range(3)}
    assert received == Counter({(siren, one): 1 for siren in sirens for one in published})
    manifest = json.loads((folder / "run.json").read_text())
    told = [fault["action"] for fault in manifest["actions"]]
    assert told == ["crash", "crash", "stop", "cut", "start", "restore"]
    starts = Counter(e["node"] for e in events if e["event"] == "start")
    again = set(manifest["actions"][4]["targets"])
    assert {node for node, times in starts.items() if times == 2} == again
