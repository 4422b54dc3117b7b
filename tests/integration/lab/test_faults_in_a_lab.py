"""A scenario with faults on real links: nodes are killed and restarted, links cut, and every alert arrives once."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from support.lines import records
from support.runs.busy_machine import latest_wakeup_s
from testbed.keeper.client import Keeper, NodeProcess
from testbed.keeper.processes import marked
from testbed.places import LabPlace

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
  duration: 14s
  settle: 60s
  events:
    - {at: 1s, publish: {from: "gauges[*]", topic: alerts, priority: 5, size: 200B, period: 1s, spread: 1s}}
    - {at: 2s, crash: {nodes: "halls[3..4]", share: 50%}}
    - {at: 2500ms, crash: {nodes: "sirens[0]"}}
    - {at: 3s, stop: {nodes: "gauges[1]"}}
    - {at: 3500ms, cut: {nodes: "gauges[0]"}}
    - {at: 9s, start: {nodes: ["halls[*]", "sirens[0]", "gauges[1]"]}}
    - {at: 10s, restore: {nodes: "gauges[*]"}}
"""


@pytest.mark.netns
def test_faults_are_recorded_and_each_alert_arrives_once(testbed_json: Any, places: Path) -> None:
    file = places / "faults.yaml"
    file.write_text(FILE)
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    played = testbed_json("play", "faults")
    assert played["received"] == played["expected"] > 100
    testbed_json("down", "faults")
    events = [event for log in (folder / "logs").glob("*.jsonl") for event in records(log)]
    received = Counter((e["node"], e["id"]) for e in events if e["event"] == "receive")
    published = {e["id"] for e in events if e["event"] == "publish"}
    sirens = {f"sirens-{n}" for n in range(3)}
    assert received == Counter({(siren, one): 1 for siren in sirens for one in published})
    manifest = json.loads((folder / "run.json").read_text())
    recorded = [fault["action"] for fault in manifest["actions"]]
    assert recorded == ["crash", "crash", "stop", "cut", "start", "restore"]
    starts = Counter(e["node"] for e in events if e["event"] == "start")
    again = set(manifest["actions"][4]["targets"])
    assert {node for node, times in starts.items() if times == 2} == again


AGAIN = """
name: again
groups:
  gauges: {kind: sensor, count: 3}
nodes:
  hub: {kind: broker}
  siren: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 7s
  settle: 20s
  events:
    - {at: 0s, publish: {from: "gauges[2]", topic: alerts, priority: 5, size: 100B, period: 1s}}
    - {at: 1s, for: 2s, crash: {nodes: "gauges[0]"}}
    - {at: 2s, for: 2s, crash: {nodes: "gauges[1]"}}
    - {at: 3s, for: 2s, stop: {nodes: "gauges[2]"}}
    - {at: 3020ms, cut: {nodes: siren}}
    - {at: 4020ms, restore: {nodes: siren}}
    - {at: 5020ms, crash: {nodes: "gauges[0]"}}
"""
SOON_NS = 150_000_000
WAKEUPS = 3  # that an action needs: of the command, the keeper, and the process that forks


@pytest.mark.netns
def test_a_start_takes_effect_soon_and_later_actions_do_not_wait_for_it(
    testbed_json: Any, places: Path, watch: Any
) -> None:
    file = places / "again.yaml"
    file.write_text(AGAIN)
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    testbed_json("play", "again")
    roles = {process.role for process in marked(LabPlace.of("again"))}
    assert "prefork" not in roles, "the prefork process ends with the scenario"
    actions = json.loads((folder / "run.json").read_text())["actions"]
    assert not [each for each in actions if "failed" in each["details"]]
    late = [(each["action"], each["t_ns"] - each["due_ns"]) for each in actions]
    assert min(by_ns for _, by_ns in late) >= 0
    starts = [by_ns for action, by_ns in late if action == "start"]
    later = [by_ns for action, by_ns in late if action in ("cut", "restore")]
    assert (len(starts), len(later)) == (3, 2)
    soon_ns = SOON_NS + WAKEUPS * latest_wakeup_s(folder) * 1e9
    assert median(starts) < soon_ns
    assert min(later) < soon_ns
    testbed_json("down", "again")
    assert watch.leftovers() == []


@pytest.mark.netns
def test_the_prefork_process_may_die_and_ends_with_its_keeper(
    testbed_json: Any, places: Path, watch: Any, wait_until: Callable[..., None]
) -> None:
    file = places / "again.yaml"
    file.write_text(AGAIN)
    folder = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    place = LabPlace.of("again")
    keeper = Keeper(place)

    def prefork_processes() -> list[int]:
        """Also a node that was just forked, until it has given itself its own title."""
        return [process.pid for process in marked(place) if process.role == "prefork"]

    def kill_and_fork(name: str) -> None:
        keeper.signal([name], signal.SIGKILL)
        wait_until(lambda: not keeper.status()["nodes"][name]["running"], 60)
        stderr = folder / "logs" / f"{name}.stderr"
        pids, failed = keeper.fork([NodeProcess(name, place.node_config(name), stderr)])
        assert (list(pids), failed) == ([name], {})
        assert keeper.status()["nodes"][name]["running"]

    keeper.expect_forks(place.node_config("gauges-0"))
    wait_until(prefork_processes, 60)
    (first,) = prefork_processes()
    kill_and_fork("gauges-0")
    kill_and_fork("gauges-1")
    wait_until(lambda: prefork_processes() == [first], 60)
    os.kill(first, signal.SIGKILL)
    kill_and_fork("gauges-0")
    wait_until(lambda: len(prefork_processes()) == 1, 60)
    assert prefork_processes() != [first]
    keeper.end_scenario()
    assert prefork_processes() == []

    keeper.expect_forks(place.node_config("gauges-0"))
    watch.processes()
    os.kill(keeper.status()["pid"], signal.SIGKILL)
    testbed_json("down", "again")
    assert watch.leftovers() == []
