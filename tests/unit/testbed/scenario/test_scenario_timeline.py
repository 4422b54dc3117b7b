"""The timeline depends on the seed alone, is the same for each node whatever the others are, and is bounded."""

import itertools
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.scenario import Publication, compile_timeline
from testbed.topology import load, load_text
from testbed.topology.model import (
    Node,
    NodeKind,
    Profile,
    PublishEvent,
    Scenario,
    Topology,
    from_json,
    to_json,
)
from testbed.topology.publication_times import publication_schedule

TOPOLOGIES = Path(__file__).resolve().parents[4] / "topologies"
SECOND = 1_000_000_000


def lab(
    *events: PublishEvent, sensors: int = 2, seed: int = 1, duration_s: float = 10.0
) -> Topology:
    nodes = [Node(f"s-{i}", i + 1, NodeKind.SENSOR, "lan", "s", i) for i in range(sensors)]
    return Topology(
        "x", seed, (Profile("lan"),), tuple(nodes), scenario=Scenario(duration_s, 1.0, events)
    )


def publish(nodes: int = 2, **changed: object) -> PublishEvent:
    values: dict[str, object] = {"at_s": 1.0, "topic": "t", "priority": 1, "size": 10, **changed}
    return PublishEvent(nodes=tuple(f"s-{i}" for i in range(nodes)), **values)  # type: ignore[arg-type]


def times(topology: Topology, node: str = "s-0") -> list[float]:
    return [a.at_ns / SECOND for a in compile_timeline(topology) if a.node == node]


def test_an_event_without_period_happens_once_for_each_node() -> None:
    assert compile_timeline(lab(publish(topic="{group}/{node}", priority=4))) == (
        Publication(SECOND, "s-0", "s/s-0", 4, 10),
        Publication(SECOND, "s-1", "s/s-1", 4, 10),
    )


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (publish(period_s=3.0), [1, 4, 7]),
        (publish(at_s=0.0, period_s=5.0), [0, 5]),
        (publish(period_s=1.0, for_s=3.0), [1, 2, 3]),
        (publish(period_s=1.0, count=2), [1, 2]),
        (publish(period_s=1.0, count=2, for_s=1.5), [1, 2]),
        (publish(period_s=1.0, count=5, for_s=1.5), [1, 2]),
        (publish(period_s=0.1, for_s=0.3), [1.0, 1.1, 1.2]),
        (publish(at_s=9.5), [9.5]),
        (publish(at_s=10.0), []),
        (publish(at_s=0.0, period_s=5.0, count=3), [0, 5]),
        (publish(period_s=1.0, per_period=4, count=3), [1, 1.25, 1.5]),
        (publish(period_s=1.0, probability=0.0), []),
    ],
)
def test_repetition_ends_with_its_time_its_count_or_the_scenario(
    event: PublishEvent, expected: list[float]
) -> None:
    assert times(lab(event)) == expected


@pytest.mark.parametrize(
    ("rate", "length", "messages"),
    [("3/s", "1s", 3), ("30/s", "1h", 108_000), ("7/min", "1min", 7), ("0.3/s", "10s", 3), ("11/h", "2h", 22)],
)  # fmt: skip
def test_a_rate_gives_exactly_its_number_of_messages(rate: str, length: str, messages: int) -> None:
    text = f"""
nodes: {{hub: {{kind: broker}}, s: {{kind: sensor}}}}
scenario:
  duration: {length}
  events: [{{at: 0s, publish: {{from: s, topic: t, size: 1B, rate: {rate}, for: {length}}}}}]
"""
    topology = load_text(text, "x")
    timeline = compile_timeline(from_json(json.loads(json.dumps(to_json(topology)))))
    assert len(timeline) == messages
    assert timeline[-1].at_ns < topology.scenario.duration_s * SECOND


def test_runs_recorded_before_rates_were_exact_can_still_be_read() -> None:
    topology = lab(publish(period_s=0.5, count=3))
    recorded = json.loads(json.dumps(to_json(topology)))
    for event in recorded["scenario"]["publish"]:
        del event["per_period"]
    assert from_json(recorded) == topology


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10**9))
def test_moments_are_evenly_spaced_to_the_nanosecond_and_fill_the_time(
    messages: int, period_s: int, length_us: int, late_ns: int
) -> None:
    event = publish(period_s=float(period_s), per_period=messages, for_s=length_us / 1e6)
    schedule = publication_schedule(event, duration_s=10.0)
    count = schedule.ticks(late_ns)
    exact = Fraction(period_s * SECOND, messages)
    left = schedule.end_ns - schedule.begin_ns - late_ns
    assert count * exact >= left
    if count:
        assert (count - 1) * exact < left
        last = schedule.moment(count - 1, late_ns)
        assert last < schedule.end_ns
        assert 0 <= schedule.begin_ns + late_ns + (count - 1) * exact - last < 1


def test_a_spread_moves_the_start_of_each_node_within_its_bounds() -> None:
    topology = lab(publish(nodes=50, spread_s=2.0, period_s=5.0, count=2), sensors=50)
    timeline = compile_timeline(topology)
    starts = {}
    for publication in timeline:
        starts.setdefault(publication.node, publication.at_ns)
    assert len(set(starts.values())) == 50
    assert all(SECOND <= start < 3 * SECOND for start in starts.values())
    for publication in timeline:
        assert (publication.at_ns - starts[publication.node]) % (5 * SECOND) == 0


def test_probability_thins_the_ticks_as_in_lee_2016() -> None:
    topology = lab(publish(nodes=1, at_s=0.0, period_s=1.0, probability=0.1), duration_s=10_000.0)
    assert 900 < len(times(topology)) < 1100


def test_another_seed_gives_another_timeline() -> None:
    event = publish(spread_s=1.0, period_s=1.0, probability=0.5)
    assert compile_timeline(lab(event)) == compile_timeline(lab(event))
    assert compile_timeline(lab(event)) != compile_timeline(lab(event, seed=2))


def test_this_seed_gives_this_timeline_on_every_machine() -> None:
    event = publish(nodes=1, spread_s=1.0, period_s=2.0, probability=0.5)
    assert [publication.at_ns for publication in compile_timeline(lab(event))] == [
        1_456_770_258,
        7_456_770_258,
    ]


@given(st.integers(1, 5), st.integers(0, 2**63 - 1), st.floats(0, 1), st.floats(0, 3))
@settings(max_examples=50)
def test_one_node_more_changes_nothing_for_the_others(
    nodes: int, seed: int, probability: float, spread_s: float
) -> None:
    changes = {"period_s": 0.7, "probability": probability, "spread_s": spread_s}
    fewer = lab(publish(nodes=nodes, **changes), sensors=nodes, seed=seed)
    more = lab(publish(nodes=nodes + 1, **changes), sensors=nodes + 1, seed=seed)
    for index in range(nodes):
        assert times(fewer, f"s-{index}") == times(more, f"s-{index}")


def test_the_timeline_is_in_the_order_of_time() -> None:
    timeline = compile_timeline(load(TOPOLOGIES / "demo.yaml"))
    assert all(a.at_ns <= b.at_ns for a, b in itertools.pairwise(timeline))


@pytest.mark.parametrize(
    "event",
    [publish(period_s=1e-9, count=10**9), publish(period_s=1e-12), publish(period_s=1e-5)],
)
def test_absurdly_many_publications_are_refused_before_they_are_made(event: PublishEvent) -> None:
    with pytest.raises(InputError, match="at most 1,000,000"):
        compile_timeline(lab(event, duration_s=1e6))


def test_a_topology_without_scenario_has_an_empty_timeline() -> None:
    assert compile_timeline(load_text("nodes: {hub: {kind: broker}}", "x")) == ()


def test_receivers_are_the_subscribers_of_exactly_this_topic() -> None:
    demo = load(TOPOLOGIES / "demo.yaml")
    offices = ("fire-brigade", "fire-brigade-fifo", "prefecture", "prefecture-fifo")
    assert demo.receivers("alerts", 1, ()) == ("siren", *offices)
    assert demo.receivers("readings", 1, ()) == offices[2:]
    assert demo.receivers("alert", 1, ()) == ()


def test_the_demos_alerts_meet_a_backlog_that_is_gone_before_the_end() -> None:
    """On the prefecture's link: more bytes than it can carry during the alerts, fewer in total."""
    demo = load(TOPOLOGIES / "demo.yaml")
    rate = demo.profile(demo.node("prefecture").profile).down.rate_bps
    assert rate is not None
    mine = [
        publication
        for publication in compile_timeline(demo)
        if "prefecture"
        in demo.receivers(publication.topic, publication.priority, publication.place)
    ]
    first_alert = min(a.at_ns for a in mine if a.topic == "alerts")
    photographs = sum(a.size for a in mine if a.topic == "reports" and a.at_ns < first_alert)
    assert photographs * 8 / rate > 3.0  # seconds of waiting
    headers = 120  # bytes of all layers around a small message, generously
    whole = sum(a.size + headers for a in mine) * 8 / rate
    assert whole < 0.8 * demo.scenario.duration_s
    assert any(a.priority == 5 for a in mine)
