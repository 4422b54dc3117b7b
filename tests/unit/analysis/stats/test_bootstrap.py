"""Bootstrap, compared with explicit resampling, and how often its intervals contain the true value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.metrics.percentiles import percentile
from analysis.stats.bootstrap import (
    LOST,
    MOST_GROUPS,
    Interval,
    cliffs_delta,
    draws,
    interval,
    intervals,
    sample,
    statistics,
)

delay = st.one_of(st.integers(0, 8).map(float), st.just(float("nan")))  # nan: lost
trials = st.lists(st.lists(delay, min_size=1, max_size=12), min_size=2, max_size=5)


def arrays(lists):
    return [np.array(one) for one in lists]


def drawn(runs, counts):
    """All delays of the trials, each trial as often as it was drawn."""
    pooled = [run for run, count in zip(runs, counts, strict=True) for _ in range(count)]
    return np.concatenate(pooled) if pooled else np.zeros(0)


@settings(max_examples=150)
@given(trials, st.integers(0, 1000))
def test_each_statistic_is_that_of_the_trials_that_were_drawn(lists, seed):
    runs = arrays(lists)
    counts = draws(len(runs), np.random.default_rng(seed), 20)
    found = statistics(sample(runs), counts)
    assert (counts.sum(axis=1) == len(runs)).all()
    for row, times in enumerate(counts):
        values = np.nan_to_num(drawn(runs, times), nan=np.inf)
        came = values[np.isfinite(values)]
        assert found[LOST][row] == pytest.approx(1 - len(came) / len(values))
        for name, share in (("p50", 50.0), ("p95", 95.0), ("p99", 99.0)):
            value = percentile(values, share)
            assert found[name][row] == pytest.approx(np.inf if value is None else value)
        assert found["mean"][row] == pytest.approx(values.mean())


@settings(max_examples=100)
@given(trials, trials, st.integers(0, 1000))
def test_cliffs_delta_equals_a_count_of_all_pairs(lists, others, seed):
    runs, rest = arrays(lists), arrays(others)
    rng = np.random.default_rng(seed)
    one, two = draws(len(runs), rng, 10), draws(len(rest), rng, 10)
    deltas = cliffs_delta(sample(runs), sample(rest), one, two)
    for row, (mine, theirs) in enumerate(zip(one, two, strict=True)):
        a, b = drawn(runs, mine), drawn(rest, theirs)
        a, b = np.nan_to_num(a, nan=99.0), np.nan_to_num(b, nan=99.0)  # longer than all others
        pairs = [np.sign(y - x) for x in a for y in b]
        assert deltas[row] == pytest.approx(np.mean(pairs))


def test_the_same_trials_give_the_same_interval_each_time_and_it_holds_the_value():
    rng = np.random.default_rng(1)
    runs = [rng.exponential(size=200) for _ in range(8)]
    once, again = intervals(runs), intervals(runs)
    assert once == again
    for found in once.values():
        assert found.low <= found.value <= found.high
    assert once["p50"].value == pytest.approx(np.median(np.concatenate(runs)))


def test_trials_that_differ_widen_the_interval_more_than_their_messages_would():
    rng = np.random.default_rng(2)
    runs = [rng.normal(shift, 0.1, 500) for shift in rng.normal(5, 1, 12)]
    of_trials = intervals(runs)["mean"]
    of_messages = intervals([np.concatenate(runs)])["mean"]
    assert of_trials.high - of_trials.low > 5 * (of_messages.high - of_messages.low)


def test_an_interval_of_95_percent_holds_the_truth_in_about_95_of_100_experiments():
    rng = np.random.default_rng(3)
    held = {"mean": 0, "p50": 0}
    for seed in range(200):
        runs = [rng.normal(shift, 1.0, 30) for shift in rng.normal(10.0, 0.5, 20)]
        one = sample(runs)
        found = statistics(one, draws(one.clusters, np.random.default_rng(seed), 300))
        for name in held:
            low, high = interval(found[name])[1:]
            held[name] += low <= 10.0 <= high
    assert all(176 <= count <= 200 for count in held.values()), held


def test_a_single_trial_with_many_messages_is_drawn_in_groups_that_know_as_much():
    rng = np.random.default_rng(4)
    values = rng.normal(0.0, 1.0, 5 * MOST_GROUPS)
    values[::10] = np.nan
    one = sample([values])
    assert (one.clusters, one.trials) == (MOST_GROUPS, 1)
    found = intervals([values])
    assert found[LOST].value == pytest.approx(0.1)
    assert found["p50"].value == percentile(np.nan_to_num(values, nan=np.inf), 50.0)
    assert found["mean"] == found["p95"] == found["p99"] == Interval(None, None, None)
    found = intervals([np.nan_to_num(values)])
    width = found["mean"].high - found["mean"].low
    assert width == pytest.approx(2 * 1.96 / np.sqrt(len(values)) * np.sqrt(0.9), rel=0.15)


def test_an_interval_has_no_end_where_resamples_did_not_reach_the_percentile():
    runs = [np.array([1.0] * 10 + [2.0] * 9 + [np.nan] * missing) for missing in (0, 0, 12)]
    found = intervals(runs)["p50"]
    assert (found.value, found.low, found.high) == (2.0, 1.0, 2.0)
    found = intervals(runs)["p95"]
    assert (found.value, found.low, found.high) == (None, 2.0, None)


@settings(max_examples=100)
@given(trials, st.integers(0, 1000))
def test_more_missing_deliveries_never_shorten_a_delay(lists, seed):
    runs = arrays(lists)
    fewer = [np.where(np.arange(len(run)) % 3 == 0, np.nan, run) for run in runs]
    counts = draws(len(runs), np.random.default_rng(seed), 10)
    whole, part = (statistics(sample(some), counts) for some in (runs, fewer))
    for name in ("p50", "p95", "p99", "mean"):
        assert (part[name] >= whole[name] - 1e-9).all()


def test_trials_without_arrivals_have_no_delays_and_lost_everything():
    found = intervals([np.array([np.nan] * 3), np.array([np.nan])])
    assert found["p50"] == Interval(None, None, None)
    assert found[LOST] == Interval(1.0, 1.0, 1.0)
    assert intervals([np.zeros(0)])["mean"] == Interval(None, None, None)
