"""A scenario played faster: its times are divided, its order and its publications stay."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario import compile_actions, compile_timeline
from testbed.scenario.model import played_ns
from testbed.topology import TopologyErrors, load_text
from testbed.topology.model import Topology

TEXT = """
seed: 7
nodes:
  hub: {kind: broker}
  siren: {kind: subscriber, topics: [t]}
groups:
  s: {kind: sensor, count: 3}
scenario:
  duration: 60s
  settle: 4s
  speed: 20
  events:
    - at: 10s
      publish: {from: "s[*]", topic: t, size: 9B, period: 5s, spread: 3s, probability: 0.7}
    - at: 30s
      crash: {nodes: siren}
"""


def at_speed(speed: float) -> Topology:
    topology = load_text(TEXT, "x")
    return replace(topology, scenario=replace(topology.scenario, speed=speed))


def test_speed_shortens_the_scenario_but_not_the_settling_time() -> None:
    scenario = load_text(TEXT, "x").scenario
    assert (scenario.duration_s, scenario.speed, scenario.lasts_s) == (60, 20, 3)
    assert scenario.settle_s == 4


@given(st.floats(0.001, 1_000))
def test_the_timeline_is_the_same_at_every_speed_and_within_the_scenario(speed: float) -> None:
    slow, fast = compile_timeline(at_speed(1.0)), compile_timeline(at_speed(speed))
    for before, after in zip(slow, fast, strict=True):
        assert replace(after, at_ns=before.at_ns) == before
        assert 0 <= Fraction(before.at_ns) / Fraction(repr(speed)) - after.at_ns < 1
    assert all(publication.at_ns < 60e9 / speed for publication in fast)
    (crash,) = compile_actions(at_speed(speed))
    assert crash.at_ns == played_ns(30_000_000_000, speed)


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "1001", "true", "20x"])
def test_an_invalid_speed_is_refused_with_a_hint(speed: str) -> None:
    with pytest.raises(TopologyErrors, match=r"(?s)x:11:10: .*write a number from 0.001 to 1,000"):
        load_text(TEXT.replace("speed: 20", f"speed: {speed}"), "x")
