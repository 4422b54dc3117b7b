"""Poisson arrivals: seeded times of each publisher for itself, the same in every place where a scenario is played."""

import itertools
import json
import random
from fractions import Fraction
from math import exp, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.scenario import Publication, compile_timeline
from testbed.scenario.compile import publications_of
from testbed.scenario.timeline import timeline_rows
from testbed.topology import load_text
from testbed.topology.model import (
    Arrivals,
    Node,
    NodeKind,
    Profile,
    PublishEvent,
    Scenario,
    Topology,
    Trigger,
    TriggerKind,
    from_json,
    to_json,
)
from testbed.topology.publication_times import (
    SECOND_NS,
    most_publications,
    poisson_moments,
    publication_schedule,
)

SEEDS = range(20)


def event(nodes: int = 1, **changed: object) -> PublishEvent:
    values: dict[str, object] = {
        "at_s": 0.0,
        "topic": "t",
        "priority": 1,
        "size": 10,
        "period_s": 1.0,
        "arrivals": Arrivals.POISSON,
        **changed,
    }
    return PublishEvent(nodes=tuple(f"s-{i}" for i in range(nodes)), **values)  # type: ignore[arg-type]


def lab(*events: PublishEvent, sensors: int = 1, seed: int = 1, duration_s: float) -> Topology:
    nodes = tuple(Node(f"s-{i}", i + 1, NodeKind.SENSOR, "lan") for i in range(sensors))
    return Topology("x", seed, (Profile("lan"),), nodes, scenario=Scenario(duration_s, 1.0, events))


def of(timeline: tuple[Publication, ...], node: str) -> list[int]:
    return [one.at_ns for one in timeline if one.node == node]


def from_file(publish: str, duration: str = "10min") -> Topology:
    return load_text(
        f"""
nodes: {{hub: {{kind: broker}}, s: {{kind: sensor}}}}
scenario:
  duration: {duration}
  events: [{{at: 0s, publish: {{from: s, topic: t, size: 1B, {publish}}}}}]
""",
        "x",
    )


@given(
    seed=st.integers(0, 2**63 - 1),
    begin_ns=st.integers(0, 10**12),
    length_ns=st.integers(0, 10**10),
    mean_ns=st.fractions(10**7, 10**11),
    most=st.none() | st.integers(1, 20),
)
def test_times_are_in_order_inside_the_interval_and_the_same_for_the_same_seed(
    seed: int, begin_ns: int, length_ns: int, mean_ns: Fraction, most: int | None
) -> None:
    end_ns = begin_ns + length_ns
    found = list(poisson_moments(begin_ns, end_ns, mean_ns, most, random.Random(seed)))
    assert found == sorted(found)
    assert all(begin_ns <= at_ns < end_ns for at_ns in found)
    assert most is None or len(found) <= most
    assert found == list(poisson_moments(begin_ns, end_ns, mean_ns, most, random.Random(seed)))
    unlimited = list(poisson_moments(begin_ns, end_ns, mean_ns, None, random.Random(seed)))
    assert found == unlimited[:most]  # a count ends the arrivals and moves none of them


@given(st.integers(1, 5), st.integers(0, 2**63 - 1), st.floats(0, 3))
def test_one_publisher_more_changes_nothing_for_the_others(
    nodes: int, seed: int, spread_s: float
) -> None:
    fewer = lab(event(nodes, spread_s=spread_s), sensors=nodes, seed=seed, duration_s=9.0)
    more = lab(event(nodes + 1, spread_s=spread_s), sensors=nodes + 1, seed=seed, duration_s=9.0)
    before, after = compile_timeline(fewer), compile_timeline(more)
    for index in range(nodes):
        assert of(before, f"s-{index}") == of(after, f"s-{index}")


@given(st.integers(0, 2**63 - 1), st.floats(0.01, 1))
def test_a_probability_thins_the_arrivals_and_moves_none(seed: int, probability: float) -> None:
    every = compile_timeline(lab(event(), seed=seed, duration_s=30.0))
    some = compile_timeline(lab(event(probability=probability), seed=seed, duration_s=30.0))
    assert set(some) <= set(every)


def test_two_publishers_and_two_seeds_have_different_arrivals() -> None:
    timeline = compile_timeline(lab(event(2), sensors=2, duration_s=60.0))
    assert set(of(timeline, "s-0")).isdisjoint(of(timeline, "s-1"))
    other = compile_timeline(lab(event(2), sensors=2, seed=2, duration_s=60.0))
    assert set(of(timeline, "s-0")).isdisjoint(of(other, "s-0"))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("period_s", "per_period"), [(1.0, 1), (30.0, 1), (1.0, 3)])
def test_the_mean_rate_is_that_of_the_file(seed: int, period_s: float, per_period: int) -> None:
    mean = 3600 * per_period / period_s
    found = compile_timeline(
        lab(event(period_s=period_s, per_period=per_period), seed=seed, duration_s=3600.0)
    )
    # A Poisson count varies by the root of its mean; 60 samples stay within four of these.
    assert abs(len(found) - mean) < 4 * sqrt(mean)


def test_the_times_between_arrivals_are_exponential() -> None:
    moments = [one.at_ns for one in compile_timeline(lab(event(), duration_s=10_000.0))]
    gaps = [(after - before) / SECOND_NS for before, after in itertools.pairwise(moments)]
    for limit_s in (0.1, 0.5, 1.0, 2.0, 4.0):
        share, expected = sum(gap > limit_s for gap in gaps) / len(gaps), exp(-limit_s)
        assert abs(share - expected) < 4 * sqrt(expected * (1 - expected) / len(gaps))


def test_this_seed_gives_these_arrivals_on_every_machine() -> None:
    found = compile_timeline(lab(event(count=3), duration_s=60.0))
    assert [one.at_ns for one in found] == [701100552, 1604337633, 3191545022]


def test_a_run_folder_and_a_trigger_give_the_same_arrivals() -> None:
    topology = from_file("rate: 6/min, arrivals: poisson")
    expected = compile_timeline(topology)
    assert len(expected) > 30
    assert compile_timeline(from_json(json.loads(json.dumps(to_json(topology))))) == expected
    (publish,) = topology.scenario.publish
    assert publications_of(topology, 0, publish) == expected
    trigger = Trigger(TriggerKind.STABLE)
    waiting = lab(event(when=trigger), duration_s=60.0)
    assert compile_timeline(waiting) == ()


def test_runs_recorded_before_there_were_arrivals_are_periodic() -> None:
    topology = lab(event(arrivals=Arrivals.PERIODIC), duration_s=3.0)
    recorded = json.loads(json.dumps(to_json(topology)))
    for publish in recorded["scenario"]["publish"]:
        del publish["arrivals"]
    assert from_json(recorded) == topology


def test_periodic_arrivals_are_those_without_the_key() -> None:
    written = compile_timeline(from_file("rate: 2/min, arrivals: periodic"))
    assert written == compile_timeline(from_file("rate: 2/min"))
    assert [one.at_ns // SECOND_NS for one in written] == list(range(0, 600, 30))


@pytest.mark.parametrize(
    ("publish", "description"),
    [
        ("rate: 2/min, arrivals: poisson", "level 1 t 1B about 2/min, Poisson"),
        ("rate: 0.5/s, arrivals: poisson", "level 1 t 1B about 30/min, Poisson"),
        ("rate: 10/h, arrivals: poisson", "level 1 t 1B about 10/h, Poisson"),
        ("rate: 0.1/h, arrivals: poisson", "level 1 t 1B about 0.1/h, Poisson"),
        ("period: 500ms, arrivals: poisson", "level 1 t 1B about 2/s, Poisson"),
        (
            "rate: 7/s, arrivals: poisson, count: 3",
            "level 1 t 1B about 7/s, Poisson at most 3 times",
        ),
    ],
)
def test_the_plan_shows_the_mean_rate(publish: str, description: str) -> None:
    (row,) = timeline_rows(from_file(publish))
    assert (row.description, row.moments_s, row.lasts_s) == (description, (0.0,), 600.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_limit_on_messages_counts_more_than_any_seed_gives(seed: int) -> None:
    for duration_s in (0.5, 5.0, 50.0, 500.0):
        topology = lab(event(), seed=seed, duration_s=duration_s)
        (publish,) = topology.scenario.publish
        assert len(compile_timeline(topology)) < most_publications(publish, duration_s)
    assert publication_schedule(event(count=3), 500.0).ticks() == 3


def test_too_many_arrivals_are_refused_before_they_are_made() -> None:
    with pytest.raises(InputError, match="at most 1,000,000"):
        compile_timeline(lab(event(period_s=1e-9), duration_s=1e6))
