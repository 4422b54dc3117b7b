"""Partitions, background traffic and changed links in virtual time: which messages pass, and the bytes of each link."""

import json
from pathlib import Path

import pytest

from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.node import EPOCH_NS
from testbed.backends.simulated.play import PlayResult, play
from testbed.backends.simulated.trace import COUNTS, link_row
from testbed.errors import MissingCapability
from testbed.lab.simulate import simulate
from testbed.places import RunPlace
from testbed.progress import ignore
from testbed.topology import load, load_text

LAB = """
seed: 3
groups:
  gauges: {kind: sensor, count: 2, link: mvno-128k}
nodes:
  hub: {kind: broker}
  mast: {kind: router, link: 3g-384k}
  siren: {kind: subscriber, topics: [alerts], link: mvno-128k}
  office: {kind: subscriber, topics: [alerts], router: mast}
scenario:
  duration: 20s
  settle: 30s
  events:
    - at: 1s
      publish: {from: "gauges[*]", topic: alerts, priority: 5, size: 100B, period: 1s, count: 15}
"""


def played(more: str) -> tuple[SimulatedLab, PlayResult]:
    lab = SimulatedLab(load_text(LAB + more, "lab"), RunPlace(Path("lab-run")), 0)
    return lab, play(lab, lambda seconds: None)


def reception_times(lab: SimulatedLab, node: str, run: PlayResult) -> list[float]:
    """The times of the receptions of a node, in seconds of the scenario."""
    lines = [json.loads(line) for line in lab.nodes[node].log.lines]
    return [
        (line["t"] - EPOCH_NS - run.start) / 1e9 for line in lines if line["event"] == "receive"
    ]


def test_nothing_crosses_a_partition_and_everything_arrives_after_it_heals():
    partition = "    - {at: 5s, for: 4s, partition: {sides: [[hub], [office]]}}"
    lab, run = played(partition)
    assert run.settled
    assert not [at for at in reception_times(lab, "office", run) if 5.5 < at < 9]
    assert [at for at in reception_times(lab, "siren", run) if 5.5 < at < 9]
    assert lab.directions["hub", "up"].dropped["parted"] > 0
    assert lab.directions["mast", "down"].dropped["parted"] == 0
    assert [each["action"] for each in run.actions] == ["partition", "heal"]


def test_a_partition_without_an_end_heals_with_the_scenario():
    lab, run = played("    - {at: 5s, partition: {sides: [[hub], [siren]]}}")
    assert run.settled
    assert not [at for at in reception_times(lab, "siren", run) if 5.5 < at < 20]
    assert run.actions[-1]["action"] == "heal"
    assert not lab.partitions.active


def test_background_traffic_fills_links_at_its_rate_and_is_no_message():
    lab, run = played("    - {at: 5s, for: 10s, load: {nodes: office, to: siren, rate: 64kbit/s}}")
    quiet, _ = played("    - {at: 5s, mark: nothing}")
    for link, direction in (("office", "up"), ("mast", "up"), ("siren", "down")):
        (capture,) = [w for w in lab.captures if (w.link, w.direction) == (link, direction)]
        row = link_row(capture, {}, {})
        assert row["datagrams_bytes"] == pytest.approx(64_000 / 8 * 10, rel=0.02)
        layers = [name for name in COUNTS if name.endswith("_bytes") and name != "wire_bytes"]
        not_layers = ("missing_bytes", "lost_tail_bytes")
        assert sum(row[name] for name in layers if name not in not_layers) == row["wire_bytes"]
    assert run.expected == run.received == 60
    slower = sum(reception_times(lab, "siren", run)) - sum(reception_times(quiet, "siren", run))
    assert slower > 0


def test_an_impossible_link_change_is_recorded_with_its_reason_and_the_run_goes_on():
    _, run = played("    - {at: 5s, link: {nodes: siren, delay: 0ms, jitter: 50ms}}")
    (entry,) = run.actions
    assert "larger than the delay" in entry["details"]["failed"]
    assert run.settled


def test_commands_are_refused_before_anything_begins(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CAPTURES", str(tmp_path / "c"))
    file = tmp_path / "lab.yaml"
    file.write_text(LAB + "    - {at: 5s, exec: {nodes: siren, command: ip route}}")
    with pytest.raises(MissingCapability, match="simulated nodes have no inside"):
        simulate(load(file), file, ignore)
    assert not (tmp_path / "c").exists()
