"""Percentiles over all expected deliveries: what has not come has no delay, but it counts."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.formatting import not_within
from analysis.metrics.percentiles import (
    NOTHING,
    SHARES,
    delays_of,
    of_delays,
    of_table,
    percentile,
    summary_of,
    together,
)

NAN = math.nan
seconds = st.floats(0, 1000)
percents = st.one_of(
    st.integers(0, 1000).map(lambda tenths: tenths / 10), st.sampled_from([*SHARES.values()])
)
outcome = st.tuples(st.one_of(st.just(NAN), seconds), seconds)  # delay, observed
outcomes = st.lists(outcome, min_size=1, max_size=40)


def made(rows):
    delays, observed = (np.array(column) for column in zip(*rows, strict=True))
    return delays_of(delays, observed)


@given(st.lists(seconds, min_size=1, max_size=60), percents)
def test_if_everything_came_it_is_numpys_percentile(values, percent):
    assert percentile(np.array(values), percent) == np.percentile(values, percent)


@given(outcomes, st.integers(0, 1000))
def test_it_is_reached_if_and_only_if_the_deliveries_at_its_place_came(rows, tenths):
    found = of_delays(made(rows), tenths / 10)
    came = sum(not math.isnan(delay) for delay, _ in rows)
    needed = math.ceil(Fraction(len(rows) - 1) * tenths / 1000)  # exact, counted from 0
    assert (found.value is not None) == (needed < came)
    assert (found.not_within_s is None) == (needed < came)


@given(outcomes, percents, st.data())
def test_whenever_the_missing_come_the_percentile_is_at_least_the_bound(rows, percent, data):
    found = of_delays(made(rows), percent)
    later = st.floats(0, 1000)
    whole = [
        observed + data.draw(later) if math.isnan(delay) else delay for delay, observed in rows
    ]
    true = float(np.percentile(whole, percent))
    if found.not_within_s is not None:
        assert found.not_within_s <= true * (1 + 1e-12)


@given(outcomes, percents, st.data())
def test_a_percentile_that_was_reached_does_not_change_when_the_missing_come_last(
    rows, percent, data
):
    found = of_delays(made(rows), percent)
    slowest = max((delay for delay, _ in rows if not math.isnan(delay)), default=0)
    whole = [slowest + data.draw(seconds) if math.isnan(delay) else delay for delay, _ in rows]
    if found.value is not None:
        assert found.value == pytest.approx(float(np.percentile(whole, percent)))


@given(outcomes, percents, percents)
def test_a_larger_share_takes_longer(rows, one, two):
    less, more = (of_delays(made(rows), percent) for percent in sorted((one, two)))
    if less.value is None:
        assert more.value is None
        assert less.not_within_s <= more.not_within_s * (1 + 1e-12)
    elif more.value is not None:
        assert less.value <= more.value * (1 + 1e-12)


def test_of_ten_deliveries_of_which_six_have_not_come_the_median_is_not_known():
    delays = made([(0.1, 31.0), (0.2, 31.0), (0.3, 31.0), (0.4, 31.0)] + [(NAN, 31.0)] * 6)
    assert summary_of(delays) == {
        "p50": None,
        "p95": None,
        "p99": None,
        "max": None,
        "not_within_s": {"p50": 31.0, "p95": 31.0, "p99": 31.0, "max": 31.0},
    }
    assert percentile(delays.s, 30) == pytest.approx(0.37)


def test_without_expected_deliveries_nothing_is_known():
    assert summary_of(NOTHING, ["p50"]) == {"p50": None, "not_within_s": {}}
    assert together([]) == NOTHING
    assert len(together([made([(1, 2)]), made([(NAN, 3)])]).s) == 2


def test_a_table_says_how_long_each_delivery_was_observed():
    columns = {
        "delay_s": pa.array([1.0, None], pa.float64()),
        "published_ns": pa.array([0, 5_000_000_000], pa.int64()),
    }
    table = pa.table(columns)
    assert of_table(table, 9_000_000_000).at_least_s.tolist() == [1.0, 4.0]
    assert of_table(table, 4_000_000_000).at_least_s.tolist() == [1.0, 0.0]
    assert of_table(table).at_least_s.tolist() == [1.0, 0.0]
    observed = pa.array([9.0, 6.0], pa.float64())
    assert of_table(table.append_column("observed_s", observed)).at_least_s.tolist() == [1.0, 6.0]


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (31.27, "not within 31 s"),
        (9.99, "not within 9.9 s"),
        (131.9, "not within 131 s"),
        (0.9049, "not within 904 ms"),
        (0.0000126, "not within 12 µs"),
        (0.0, "not reached"),
        (0.3, "not within 300 ms"),
        (1.1, "not within 1.1 s"),
    ],
)
def test_a_bound_is_rounded_down(bound, text):
    assert not_within(bound).replace("\u00a0", " ") == text
