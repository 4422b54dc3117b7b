"""An overlay of brokers on real links and the same one simulated, message by message."""

from pathlib import Path
from typing import Any

import pytest

from support.labs.lab_processes import processor_wait
from testbed.lab.simulate import simulate
from testbed.places import LabPlace
from testbed.progress import ignore
from testbed.topology import load

# Links without random effects. The first publications wait until the graph is settled on all levels.
FILE = """
name: twins
seed: 11
links:
  profiles:
    hall: {up: {rate: 1450kbit/s}, down: {rate: 7200kbit/s}, both: {delay: 35ms}}
    narrow: {both: {rate: 128kbit/s, delay: 60ms}}
defaults: {link: narrow, broker: {link: hall}}
groups:
  halls: {kind: broker, count: 8}
  gauges: {kind: sensor, count: 4}
  sirens: {kind: subscriber, count: 6, topics: [alerts]}
overlay: {method: sg-tbps}
delivery: {method: preemptive}
scenario:
  duration: 18s
  events:
    - {at: 8s, publish: {from: "gauges[*]", topic: alerts, priority: 5, size: 200B, period: 2s, spread: 2s}}
    - {at: 8s, publish: {from: "gauges[*]", topic: alerts, priority: 1, size: 200B, period: 2s, spread: 2s}}
"""
SAME = ("lost=0", "handed-twice=0", "copies=1", "hops=1", "other-hops=0", "other-paths=0")
MESSAGES, LEVELS, RECEIVERS = 40, 2, 6
LEAST, MOST = 0.9, 1.15  # of a delay, real to simulated, in the median of all messages
LEAST_DELAY_S = 0.19  # a message crosses two narrow links, and two of halls


@pytest.mark.netns
@pytest.mark.spark
def test_each_message_takes_the_simulated_path_in_about_the_simulated_time(
    testbed_json: Any, analyzed: Any, places: Path
) -> None:
    file = places / "twins.yaml"
    file.write_text(FILE)
    simulated = simulate(load(file), file, ignore).folder
    analyzed(simulated)
    limits = [argument for limit in SAME for argument in ("--limit", limit)]
    real = Path(testbed_json("up", file, "--backend", "netns")["run_folder"])
    waits = processor_wait(LabPlace.of("twins"))
    testbed_json("play", "twins")
    waited_s = waits.seconds()
    testbed_json("down", "twins")
    analyzed(real)
    found = testbed_json("compare", simulated, real, *limits, codes=(0, 1))
    assert found["ok"], found["limits"]
    (pairs,) = found["pairs"]
    assert pairs["pairs"] == MESSAGES * RECEIVERS
    # Half of a level's deliveries must be late for their median to be late; a wait delays the copies of one message.
    most_late_s = waited_s * RECEIVERS / (MESSAGES / LEVELS * RECEIVERS / 2)
    ratios = [by_level["p50"] for by_level in pairs["delays"].values()]
    assert all(LEAST <= ratio <= MOST + most_late_s / LEAST_DELAY_S for ratio in ratios), (
        pairs["delays"],
        waited_s,
    )
