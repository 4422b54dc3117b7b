"""The script of a topology: publications of a sensor that a trigger may start again stay until that is known."""

from pathlib import Path

import pytest

from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.play import PlayResult, play
from testbed.places import RunPlace
from testbed.recording.script import compiled
from testbed.topology import load_text

LAB = """
name: valley
seed: 7
nodes:
  broker: {kind: broker, link: lan}
  gauge: {kind: sensor, link: lan}
  other: {kind: sensor, link: lan}
  siren: {kind: subscriber, link: lan, topics: [alerts, calls]}
scenario:
  duration: 10s
  events:
    - {at: 500ms, publish: {from: gauge, topic: alerts, size: 100B, period: 1s}}
    - {at: 5s, publish: {from: other, topic: calls, size: 100B}}
    - {at: 2s, crash: {nodes: gauge}}
"""
AGAIN = "    - {when: {received: {topic: calls}}, start: {nodes: gauge}}\n"


def played(text: str) -> PlayResult:
    lab = SimulatedLab(load_text(text, "valley.yaml"), RunPlace(Path("any-run")), 0)
    return play(lab, lambda seconds: None)


@pytest.mark.parametrize(
    ("more", "moments_s"),
    [
        ("", [0.5, 1.5]),
        (AGAIN, [0.5, 1.5, 5.5, 6.5, 7.5, 8.5, 9.5]),
        (AGAIN.replace("calls", "nothing"), [0.5, 1.5]),
    ],
    ids=["nothing starts it", "a trigger starts it", "the trigger never fires"],
)
def test_a_sensor_publishes_again_when_a_trigger_starts_it_and_nothing_else_is_expected(
    more, moments_s
):
    found = played(LAB + more)
    assert [one.at_ns / 1e9 for one in found.timeline if one.node == "gauge"] == moments_s
    assert found.expected == found.received == len(moments_s) + 1


def test_without_triggers_no_sensor_gets_publications_for_its_downtime():
    script = compiled(load_text(LAB, "valley.yaml"))
    assert [one.at_ns / 1e9 for one in script.publications] == [0.5, 1.5, 5.0]
