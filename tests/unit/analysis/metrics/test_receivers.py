"""Deliveries by receiver."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.formatting import natural
from analysis.metrics.delay import by_method, by_receiver
from analysis.report.sections.headline import headline_sentence
from analysis.report.sections.receivers import MOST_SHOWN, method_rows, receiver_rows


def deliveries(rows: list[tuple[str, int, float | None]]) -> pa.Table:
    names = ("receiver", "priority", "delay_s")
    types = (pa.string(), pa.int32(), pa.float64())
    columns = [[row[place] for row in rows] for place in range(3)]
    made = {n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)}
    return pa.table({**made, "observed_s": pa.array([5.0] * len(rows), pa.float64())})


def served(count: int, levels: tuple[int, ...] = (5, 1)) -> dict:
    rows = [(f"town-{n}", level, 0.1 * n) for n in range(1, count + 1) for level in levels]
    return {"by_receiver": by_receiver(deliveries(rows))}


def test_each_receiver_and_level_has_its_counts_and_delays():
    found = by_receiver(
        deliveries([("b", 5, 1.0), ("b", 5, 3.0), ("b", 5, None), ("a", 1, None), ("b", 1, 2.0)])
    )
    assert list(found) == ["a", "b"]
    assert list(found["b"]) == ["5", "1"]
    assert found["b"]["5"] == {
        "expected": 3,
        "delivered": 2,
        "lost": 1,
        "p50": 3.0,
        "p95": None,
        "max": None,
        "not_within_s": pytest.approx({"p95": 4.8, "max": 5.0}),
    }
    assert found["a"]["1"] == {
        "expected": 1,
        "delivered": 0,
        "lost": 1,
        "p50": None,
        "p95": None,
        "max": None,
        "not_within_s": {"p50": 5.0, "p95": 5.0, "max": 5.0},
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b-2", "b-10"]),
            st.integers(1, 5),
            st.one_of(st.none(), st.floats(0.001, 100)),
        )
    )
)
def test_the_receivers_together_are_all_deliveries(rows):
    found = by_receiver(deliveries(rows))
    outcomes = [outcome for levels in found.values() for outcome in levels.values()]
    assert sum(outcome["expected"] for outcome in outcomes) == len(rows)
    assert sum(outcome["lost"] for outcome in outcomes) == sum(row[2] is None for row in rows)
    for outcome in outcomes:
        reached = [outcome[name] for name in ("p50", "p95", "max")]
        bounds = outcome["not_within_s"]
        assert [name for name in ("p50", "p95", "max") if outcome[name] is None] == [*bounds]
        assert (outcome["max"] is None) == bool(outcome["lost"])
        known = [value for value in reached if value is not None]
        assert all(a <= np.nextafter(b, np.inf) for a, b in pairwise(known))
        assert all(a <= np.nextafter(b, np.inf) for a, b in pairwise(bounds.values()))


def test_names_are_sorted_in_natural_order():
    names = ["sensors-10", "siren", "sensors-2", "10", "a", "2"]
    assert sorted(names, key=natural) == ["2", "10", "a", "sensors-2", "sensors-10", "siren"]


def test_the_most_urgent_level_comes_first_and_in_it_the_worst_served():
    rows = [("a", 5, 1.0), ("b", 5, 2.0), ("c", 5, None), ("a", 1, 9.0)]
    shown, folded = receiver_rows({"by_receiver": by_receiver(deliveries(rows))})
    assert [(row["receiver"], row["level"]) for row in shown] == [
        ("c", "5"),
        ("b", "5"),
        ("a", "5"),
        ("a", "1"),
    ]
    assert folded == []


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        (served(15), 30),
        (served(16), 16),  # only the urgent level
        (served(400), MOST_SHOWN),
        (served(400, (1,)), MOST_SHOWN),
        ({}, 0),  # a summary of an earlier version
    ],
)
def test_the_table_stays_short_for_hundreds_of_receivers(summary, shown):
    first, folded = receiver_rows(summary)
    assert len(first) == shown
    assert len(first) + len(folded) == sum(map(len, summary.get("by_receiver", {}).values()))


def test_the_headline_names_the_slowest_receiver_of_the_most_urgent_level():
    rows = [("siren", 5, 0.5), ("prefecture", 5, 7.789), ("siren", 1, 60.0)]
    summary = {
        "by_priority": {"5": {"expected": 2, "delivered": 2, "lost": 0}},
        "delay_s": {"5": {"p50": 4.0, "max": 7.789}},
        "by_receiver": by_receiver(deliveries(rows)),
    }
    sentence, _ = headline_sentence(summary)
    assert "the slowest, at prefecture, after 7.79\u00a0s" in sentence


def test_several_methods_are_listed_side_by_side_level_by_level():
    table = deliveries([("a", 5, 1.0), ("b", 5, 4.0), ("c", 5, 3.0), ("a", 1, None)])
    methods = {"a": "preemptive", "b": "fifo", "c": "preemptive"}
    summary = {"by_method": by_method(table, methods)}
    assert summary["by_method"]["preemptive"]["5"]["p50"] == 2.0
    assert [(row["level"], row["method"], row["lost"]) for row in method_rows(summary)] == [
        ("5", "fifo", 0),
        ("5", "preemptive", 0),
        ("1", "preemptive", 1),
    ]
    assert method_rows({"by_method": by_method(table, dict.fromkeys("abc", "fifo"))}) == []
