"""The traffic of the benchmark of delivery methods, and its evaluation of the arrivals."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.delivery import compare, delays
from benchmarks.support.delivery import contestants
from benchmarks.support.delivery.peer_program import number_of, payload
from benchmarks.support.delivery.scheduling import ModelLink, recorded
from benchmarks.support.delivery.traffic import Due, Row, at_rank, row, timeline
from benchmarks.support.harness import Report, json_row

SECOND = 1_000_000_000
URGENT = Due(0, True, 1_000)
ROUTINE = Due(0, False, 100_000)


def at(due: Due, seconds: float) -> Due:
    return Due(round(seconds * SECOND), due.urgent, due.size)


def test_the_traffic_is_that_of_the_thesis() -> None:
    sent = timeline(1000, seed=1)
    routine = [due for due in sent if not due.urgent]
    urgent = [due for due in sent if due.urgent]
    assert [due.at_ns for due in routine] == [n * 10 * SECOND for n in range(100)]
    assert {due.size for due in routine} == {100_000}
    assert {due.size for due in urgent} == {1_000}
    assert len(urgent) == pytest.approx(400, abs=60)
    pairs = pairwise(urgent)
    assert min(after.at_ns - before.at_ns for before, after in pairs) >= SECOND / 2
    assert sent == timeline(1000, seed=1) != timeline(1000, seed=2)


def test_a_scale_makes_the_same_traffic_faster() -> None:
    usual, fast = timeline(100, seed=3), timeline(100, seed=3, scale=4)
    assert [due.urgent for due in usual] == [due.urgent for due in fast]
    assert all(abs(a.at_ns - 4 * b.at_ns) <= 4 for a, b in zip(usual, fast, strict=True))


@given(st.integers(0, 10**9), st.booleans(), st.integers(30, 3000))
def test_a_payload_has_its_number(number: int, urgent: bool, size: int) -> None:
    data = payload(number, urgent, size)
    assert len(data) == size
    assert number_of(data) == number


def test_a_row_has_delays_shares_and_costs() -> None:
    sent = [at(ROUTINE, 0), at(URGENT, 1), at(URGENT, 2), at(ROUTINE, 10), at(URGENT, 12)]
    arrived = {0: 11 * SECOND, 1: 2 * SECOND, 2: 5 * SECOND, 3: 30 * SECOND, 4: 13 * SECOND}
    start = 100 * SECOND
    arrivals = {number: start + at_ns for number, at_ns in arrived.items()}
    found = row("x", sent, start, arrivals, wire_bytes=223_300, processor_s=0.05)
    assert (found.p50_s, found.p95_s, found.largest_s) == (1.0, 3.0, 3.0)
    assert (found.urgent_arrived, found.urgent_sent) == (3, 3)
    assert (found.routine_in_time, found.routine_arrived) == (0.5, 1.0)
    assert found.wire_per_payload == pytest.approx(223_300 / 203_000)
    assert found.processor_ms == pytest.approx(10.0)


def test_messages_that_never_arrived_have_an_infinite_delay() -> None:
    sent = [at(URGENT, 0), at(URGENT, 1), at(ROUTINE, 2)]
    found = row("x", sent, 0, {0: SECOND}, wire_bytes=1_100, processor_s=0.001)
    assert (found.p50_s, found.largest_s) == (1.0, math.inf)
    assert (found.urgent_arrived, found.routine_arrived) == (1, 0.0)
    assert json.loads(json.dumps(json_row(found), allow_nan=False))["largest_s"] is None
    assert delays("line", [found]).row_count == 1


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0.01, 1.0))
def test_a_rank_covers_its_share(values: list[float], share: float) -> None:
    ordered = sorted(values)
    found = at_rank(ordered, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9


def test_ours_is_compared_with_each_peer_of_the_run() -> None:
    def of(name: str, largest_s: float, wire: float) -> Row:
        return Row(name, 1, 1, 0.1, 0.1, largest_s, 1.0, 1.0, wire, 1.0)

    rows = [
        of(contestants.PREEMPTIVE, 0.2, 1.1),
        of(contestants.DMPQ, 0.4, 1.0),
        of(contestants.ZENOH, math.inf, 1.2),
        of(contestants.ZENOH_TUNED, 1.0, 1.2),
        of(contestants.ZENOH_HALF, 0.8, 1.2),
    ]
    report = Report({"preemptive_wire_vs_dmpq": 1.0, "preemptive_vs_dmpq": 0.8})
    compare(report, {one.name: one for one in rows})
    assert report.ratios == {
        "preemptive_vs_dmpq": 0.5,
        "preemptive_vs_zenoh": 0.0,
        "preemptive_vs_zenoh_tuned": 0.25,
        "preemptive_wire_vs_dmpq": 1.1,
    }


def test_the_model_link_holds_bytes_that_it_has_not_sent() -> None:
    link = ModelLink(rate=1_514.0)
    link.take(2 * 1_448 - 4, now=0.0)
    assert [link.unsent(now) for now in (0.5, 1.0, 1.5, 2.0)] == [2_896, 1_448, 1_448, 0]


@pytest.mark.parametrize("contestant", contestants.ours(), ids=lambda one: one.name)
def test_every_method_sends_everything_over_the_model_link(contestant: contestants.Ours) -> None:
    sent = timeline(40, seed=5)
    calls, chunks = recorded(contestant.method, contestant.parameters, sent, rate=20_000)
    assert sum(name == "offer" for name, _ in calls) == len(sent)
    assert chunks >= len(sent)
    divided = contestant.method in ("dmpq-pc", "preemptive")
    assert (chunks > 4 * 69) is divided
