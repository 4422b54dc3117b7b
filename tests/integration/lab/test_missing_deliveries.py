"""What `play` calls missing is what the report calls lost, simulated and on real links."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure
from testbed.lab.simulate import simulate
from testbed.progress import Event, Warned
from testbed.topology import load

FILE = """
name: missing
links:
  profiles:
    narrow: {up: {rate: 64kB/s, delay: 20ms}, down: {rate: 64kB/s, delay: 20ms}}
delivery: {method: fifo, limit_bytes: 20100}
nodes:
  broker: {kind: broker}
  gauge: {kind: sensor, link: narrow}
  siren: {kind: subscriber, link: narrow, topics: [alerts]}
  town: {kind: subscriber, link: narrow, topics: [alerts]}
scenario:
  duration: 4s
  settle: 20s
  events:
    - {at: 0s, publish: {from: gauge, topic: alerts, size: 20kB, period: 20ms, count: 12}}
    - {at: 2500ms, crash: {nodes: town}}
    - {at: 3s, publish: {from: gauge, topic: alerts, priority: 5, size: 200B, period: 100ms, count: 3}}
"""


def reasons_in(text: str) -> Counter[str]:
    """The reasons of the sentence on lost deliveries, with their numbers."""
    (line,) = (line for line in text.splitlines() if "deliveries are lost: " in line)
    parts = (part.rpartition(" (") for part in line.partition("are lost: ")[2].split(", "))
    return Counter({reason: int(number.rstrip(")")) for reason, _, number in parts})


def measured(spark: Any, folder: Path) -> dict[str, Any]:
    return measure(spark.sparkContext, read_run(folder), lambda *_: None)


@pytest.mark.spark
def test_a_simulated_run_has_one_count_of_lost_deliveries(spark: Any, places: Path) -> None:
    file = places / "missing.yaml"
    file.write_text(FILE)
    emitted: list[Event] = []
    run = simulate(load(file), file, emitted.append)
    warned = "\n".join(event.text for event in emitted if isinstance(event, Warned))
    assert "settle" not in warned
    summary = measured(spark, run.folder)
    lost = reasons_in(warned)
    assert lost == summary["lost_reasons"]
    assert lost.total() == summary["messages"]["lost"]
    assert lost["town was down"] == 3
    assert lost["queue full at gauge"] > 0
    assert not [one for one in summary["fidelity"]["reasons"] if "under way" in one]


@pytest.mark.spark
@pytest.mark.netns
def test_a_run_on_real_links_has_one_count_of_lost_deliveries(
    spark: Any, testbed: Any, testbed_json: Any, places: Path
) -> None:
    file = places / "missing.yaml"
    file.write_text(FILE)
    folder = testbed_json("up", file, "--backend", "netns", codes=(0, 3))["run_folder"]
    done = testbed("play", "missing")
    testbed_json("down", "missing", codes=(0, 3))
    summary = measured(spark, Path(folder))
    lost = reasons_in(done.stderr)
    assert lost == summary["lost_reasons"]
    messages = summary["messages"]
    assert lost.total() == messages["lost"]
    assert f"{messages['delivered']} of {messages['expected_deliveries']}" in done.stdout
