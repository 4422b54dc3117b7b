"""`testbed events --follow` streams every event of a real lab in the order of time, while the lab runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = """
name: streamed
nodes:
  broker: {kind: broker, link: lan}
  gauge: {kind: sensor, link: 3g-384k}
  spare: {kind: sensor, link: 3g-384k}
  siren: {kind: subscriber, link: 3g-384k, topics: [alerts]}
scenario:
  duration: 4s
  settle: 30s
  events:
    - {at: 500ms, publish: {from: gauge, topic: alerts, priority: 4, size: 200B, period: 500ms}}
    - {at: 2s, crash: {nodes: spare}}
"""


@pytest.mark.netns
def test_events_are_streamed_while_a_scenario_is_played(testbed_json: Any, places: Path) -> None:
    file = places / "streamed.yaml"
    file.write_text(FILE)
    testbed_json("up", file, "--backend", "netns")
    command = [sys.executable, "-m", "testbed", "events", "streamed", "--follow", "--json"]
    with subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, text=True) as stream:
        assert stream.stdout is not None
        lines = [stream.stdout.readline()]  # it follows the lab before the scenario begins
        testbed_json("play", "streamed")
        testbed_json("down", "streamed")
        lines += stream.stdout
    events = [json.loads(line) for line in lines]
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    kinds = {event["kind"] for event in events}
    assert kinds >= {"publication", "reception", "fault", "connection", "node", "run"}
    published = {event["id"] for event in events if event["kind"] == "publication"}
    received = {event["id"] for event in events if event["kind"] == "reception"}
    assert published == received
    assert "loss" not in kinds
