"""A self-organised overlay on shaped links while a fifth of its brokers is killed in the middle of the alarm.

Twenty brokers, their sensors and subscribers. Brokers and a sensor are killed without notice, and a link is cut. Still
every publication of level 3 or more reaches every subscriber, and no application gets anything twice. Within a stated
time the remaining brokers form exactly the graph that sorting gives.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.overlays.running_overlay import PublicationLog, ask, overlay_is_whole
from support.runs.busy_machine import latest_wakeup_s

LAB = "survivors"
FILE = f"""
name: {LAB}
seed: 7
defaults: {{link: mvno-128k, broker: {{link: hspa-7.2m}}}}
groups:
  halls: {{kind: broker, count: 20}}
  gauges: {{kind: sensor, count: 8}}
  sirens: {{kind: subscriber, count: 8, topics: [alerts]}}
nodes:
  office: {{kind: subscriber, topics: [alerts, readings]}}
overlay: {{method: sg-tbps}}
delivery: {{method: preemptive}}
scenario:
  duration: 14s
  settle: 20s
  events:
    - {{at: 0s, publish: {{from: "gauges[*]", topic: readings, priority: 1, size: 300B, period: 3s, spread: 3s}}}}
    - {{at: 0s, publish: {{from: "gauges[*]", topic: readings, priority: 2, size: 300B, period: 4s, spread: 4s}}}}
    - {{at: 1s, publish: {{from: "gauges[0..3]", topic: alerts, priority: 3, size: 200B, period: 1s, count: 12}}}}
    - {{at: 2s, publish: {{from: "gauges[2..5]", topic: alerts, priority: 4, size: 200B, period: 1s, count: 11}}}}
    - {{at: 3s, publish: {{from: "gauges[4..7]", topic: alerts, priority: 5, size: 200B, rate: 2/s, count: 16}}}}
    - {{at: 4s, crash: {{nodes: "halls[*]", share: 20%}}}}
    - {{at: 4500ms, crash: {{nodes: "gauges[0]"}}}}
    - {{at: 5s, cut: {{nodes: "gauges[1]"}}}}
    - {{at: 9s, restore: {{nodes: "gauges[1]"}}}}
    - {{at: 9s, start: {{nodes: "gauges[0]"}}}}
"""
BROKERS = [f"halls-{number}" for number in range(20)]
SENSORS = [f"gauges-{number}" for number in range(8)]
TOPICS = {"office": {"alerts", "readings"}, **{f"sirens-{n}": {"alerts"} for n in range(8)}}
WHOLE_WITHIN_S = 30.0  # after the brokers were killed, ...
STEPS = 100  # ... and the machine may delay each step of the repair
PATIENCE_S = 120.0


@pytest.mark.netns
def test_each_alert_arrives_once_while_a_fifth_of_the_brokers_dies(
    testbed_json: Any, places: Path
) -> None:
    file = places / "survivors.yaml"
    file.write_text(FILE)
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    assert _whole_at(time.time() + PATIENCE_S), "the overlay has not formed"
    brokers_before = _broker_of_each_client()

    with ThreadPoolExecutor(1) as pool:
        played = pool.submit(testbed_json, "play", LAB)
        killed_at, dead = _first_crash(folder)
        whole_at = _whole_at(killed_at + PATIENCE_S)
        played.result()
    brokers_after = _broker_of_each_client()
    testbed_json("down", LAB)

    assert len(dead) == 4
    moved = {client for client, broker in brokers_before.items() if broker in dead}
    assert moved, "no client was attached to a killed broker"
    assert not dead & set(brokers_after.values())
    assert whole_at is not None, "the graph is not what sorting gives"
    assert whole_at - killed_at < WHOLE_WITHIN_S + STEPS * latest_wakeup_s(folder)

    logs = PublicationLog.read(folder)
    assert {event["priority"] for event in logs.published.values()} == {1, 2, 3, 4, 5}
    assert [logs.missing(TOPICS, level) for level in (3, 4, 5)] == [[], [], []]
    assert logs.twice() == []


def _broker_of_each_client() -> dict[str, str]:
    answers = ask(LAB, [*SENSORS, *TOPICS], "status")
    return {name: answer["broker"] for name, answer in answers.items()}


def _first_crash(folder: Path) -> tuple[float, set[str]]:
    """Time and nodes of the first crash, from the manifest."""
    deadline = time.time() + PATIENCE_S
    while time.time() < deadline:
        for fault in json.loads((folder / "run.json").read_text()).get("actions", []):
            if fault["action"] == "crash":
                return fault["t_ns"] / 1e9, set(fault["targets"])
        time.sleep(0.05)
    raise AssertionError("no crash is on record")


def _whole_at(deadline: float) -> float | None:
    """When the graph of the running brokers was first whole; None if it was not in time."""
    while time.time() < deadline:
        if overlay_is_whole(LAB, BROKERS):
            return time.time()
        time.sleep(0.2)
    return None
