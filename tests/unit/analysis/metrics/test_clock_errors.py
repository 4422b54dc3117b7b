"""Times have no more digits than the clock errors allow, and doubts about clocks are reported."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import formatting
from analysis.captures.clock import Measurement, clock_of
from analysis.inputs.clocks import NONE, Clocks
from analysis.metrics import clock_errors
from analysis.metrics.delay import by_receiver
from analysis.metrics.percentiles import percentile
from analysis.report.pages import percentile_with_error
from analysis.report.sections import clocks as sections_clocks
from analysis.report.sections import delay
from analysis.report.sections.delay import delay_over_time, delay_shares, on_axis
from analysis.report.sections.headline import headline_sentence
from analysis.stats import thresholds
from analysis.stats.comparison import ratios_of
from analysis.stats.effects import effects, judge_worse

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.3812, 0.0, "381 ms"),
        (0.3812, 0.02, "381 ± 21 ms"),
        (0.38, 0.02, "380 ± 20 ms"),
        (1.2345, 0.02, "1.23 ± 0.03 s"),
        (12.345, 0.7, "12.3 ± 0.8 s"),
        (0.3812, 1e-6, "381 ± 1 ms"),
        (0.0123, 0.0004, "12.3 ± 0.4 ms"),
        (0.1063, 0.0112, "106 ± 12 ms"),
        (0.3812, 0.07, "380 ± 80 ms"),
        (0.004, 0.009, "≤ 13 ms"),
        (0.0, 0.009, "not distinguishable from 0 (≤ 9.0 ms)"),
        (-0.004, 0.009, "not distinguishable from 0 (≤ 5.0 ms)"),
        (-0.5, 0.1, "−500 ± 100 ms (impossible: before it began)"),
        (None, 0.1, "–"),
    ],
)
def test_a_time_has_as_many_digits_as_its_error_leaves(value, error, text):
    assert formatting.seconds_with_error(value, error).replace("\u00a0", " ") == text


@given(st.floats(1e-6, 1000), st.floats(1e-9, 1000))
def test_the_formatted_range_contains_the_exact_range(value, error):
    formatted = formatting.seconds_with_error(value, error).replace("\u00a0", " ")
    if formatted.startswith("≤"):
        number, unit = formatted.removeprefix("≤ ").split()
        assert value < error
        assert float(number) * UNITS[unit] >= (value + error) * (1 - 1e-6)
    else:
        around = re.fullmatch(r"([\d.]+) ± ([\d.]+) (s|ms|µs)", formatted)
        assert around, formatted
        shown, off = (float(number) * UNITS[around[3]] for number in around.groups()[:2])
        assert shown - off <= value - error * (1 - 1e-6) + 1e-15
        assert shown + off >= value + error * (1 - 1e-6) - 1e-15


def deliveries(*of, origin="pi", receiver="town"):
    """A table of deliveries, each given as (level, delay, error)."""
    levels, delays, errors = zip(*of, strict=True)
    count = len(of)
    received = [None if d is None else START + round(d * SECOND) for d in delays]
    return pa.table(
        {
            "id": pa.array([f"{n:016x}" for n in range(count)]),
            "origin": pa.array([origin] * count),
            "receiver": pa.array([receiver] * count),
            "priority": pa.array(levels, pa.int32()),
            "published_ns": pa.array([START] * count, pa.int64()),
            "received_ns": pa.array(received, pa.int64()),
            "delay_s": pa.array(delays, pa.float64()),
            "delay_error_s": pa.array(errors, pa.float64()),
        }
    )


def clocks(error_ns=1_000_000, node="pi"):
    return Clocks({node: clock_of(node, [Measurement(START, 5, error_ns, "before")])})


def test_the_error_of_a_delay_is_the_sum_of_both_ends():
    both = Clocks({**clocks(1_000_000).by_node, **clocks(2_000_000, "town").by_node})
    table = deliveries((5, 0.1, None), (5, None, None))
    errors = clock_errors.of_deliveries(table, both)
    assert errors[0] == pytest.approx(3.005e-3, rel=2e-3)  # and 50 ppm of 0.1 s
    assert np.isnan(errors[1])
    assert clock_errors.of_deliveries(table, clocks())[0] == pytest.approx(1e-3, rel=2e-3)
    assert clock_errors.of_deliveries(table, NONE)[0] == 0


@given(
    st.lists(
        st.tuples(st.floats(0, 10), st.floats(0, 2), st.floats(-1, 1)), min_size=1, max_size=40
    )
)
def test_quantiles_of_the_true_delays_are_within_their_errors(rows):
    true, errors, part = (np.array(column) for column in zip(*rows, strict=True))
    measured = true + errors * part
    bounds = clock_errors.of_statistics(measured, errors)
    for name, share in clock_errors.SHARES.items():
        off = abs(np.percentile(measured, share) - np.percentile(true, share))
        assert off <= bounds[name] + 1e-9


@given(
    st.lists(
        st.tuples(st.floats(0, 10), st.floats(0, 2), st.floats(-1, 1)), min_size=1, max_size=20
    ),
    st.integers(0, 20),
)
def test_so_they_are_if_some_deliveries_are_missing(rows, missing):
    true, errors, part = (np.array(column) for column in zip(*rows, strict=True))
    endless = np.full(missing, np.inf)
    measured = np.concatenate((true + errors * part, endless))
    bounds = clock_errors.of_statistics(measured, np.concatenate((errors, np.zeros(missing))))
    for name, share in clock_errors.SHARES.items():
        here = percentile(measured, share)
        assert (name in bounds) == (here is not None)
        if here is not None:
            off = abs(here - percentile(np.concatenate((true, endless)), share))
            assert off <= bounds[name] + 1e-9


def test_a_level_whose_median_was_not_reached_is_not_doubted_for_its_clocks():
    table = deliveries((5, 0.01, 0.02), (5, None, None), (5, None, None), (4, 0.01, 0.02))
    timing = clock_errors.clocks_summary(clocks(), table)
    assert set(timing["delay_error_s"]["5"]["of"]) == {"mean"}
    known = {"5": {"p50": None}, "4": {"p50": 0.01}}
    (reason,) = clock_errors.reasons(timing, ["pi"], known, table)
    assert "the median of level 4" in reason


def delays_of(table):
    levels = table["priority"].to_numpy()
    return {
        str(level): {
            "n": 1,
            **{
                name: float(np.percentile(table["delay_s"].to_numpy()[levels == level], share))
                for name, share in clock_errors.SHARES.items()
            },
        }
        for level in set(levels.tolist())
    }


def reasons(table, known, boards=("pi",)):
    timing = clock_errors.clocks_summary(known, table)
    return clock_errors.reasons(timing, list(boards), delays_of(table), table)


def test_clocks_that_are_good_enough_are_no_reason():
    assert reasons(deliveries((5, 0.1, 0.001)), clocks()) == []


def test_an_error_above_a_tenth_of_the_median_of_level_5_is_one_and_names_the_worst_clock():
    known = Clocks({**clocks().by_node, **clocks(9_000_000, "late").by_node})
    (reason,) = reasons(deliveries((5, 0.1, 0.02), (1, 9.0, 0.02)), known)
    assert "level 5" in reason
    assert "that of late" in reason
    assert "± 20" in reason.replace("\u00a0", " ")


def test_a_delay_that_is_negative_within_its_error_is_no_contradiction_and_beyond_it_one():
    found = reasons(deliveries((5, -0.01, 0.02), (5, 0.5, 0.02)), clocks())
    assert not [reason for reason in found if "contradict" in reason]
    found = reasons(deliveries((5, -0.5, 0.02), (5, 0.5, 0.02)), clocks())
    (reason,) = [reason for reason in found if "contradict" in reason]
    assert reason.startswith("1 delivery contradicts")
    assert "500 ms before pi published it" in reason.replace("\u00a0", " ")


def test_a_board_without_measurements_is_reported_and_a_lab_without_boards_is_not_doubted():
    table = deliveries((5, -0.5, 0.0))
    assert "Nothing was measured of the clock of pi" in reasons(table, NONE)[0]
    assert reasons(table, NONE, ()) == []


def test_a_clock_that_was_set_is_reported():
    jumped = clock_of(
        "pi", [Measurement(START + t * SECOND, t * SECOND, 10, "during") for t in (0, 20)]
    )
    found = reasons(deliveries((5, 100.0, 0.1)), Clocks({"pi": jumped}))
    assert [reason for reason in found if "pi was set or pulled" in reason]


def test_boards_are_found_in_their_file(tmp_path):
    path = tmp_path / "boards.json"
    assert clock_errors.boards_of(path) == []
    path.write_text('{"b": {"host": "x"}, "a": {}}')
    assert clock_errors.boards_of(path) == ["a", "b"]
    path.write_text("{")
    assert clock_errors.boards_of(path) == []


def summary(p50=0.38, error=0.02):
    return {
        "by_priority": {"5": {"expected": 9, "delivered": 9, "lost": 0}},
        "delay_s": {"5": {"n": 9, "p50": p50, "p95": 0.5, "p99": 0.5, "max": 1.2}},
        "delay_error_s": {
            "5": {
                "median": error,
                "largest": error,
                "of": dict.fromkeys(("p50", "p95", "p99", "max", "mean"), error),
            }
        },
        "hops": {"5": {"mean": 2.0, "max": 2}},
    }


def test_the_first_sentence_and_the_table_have_the_error():
    sentence, _ = headline_sentence(summary())
    assert "half within 380 ± 20 ms, the slowest after 1.20 ± 0.02 s" in sentence.replace(
        "\xa0", " "
    )
    assert delay.level_rows(summary())[0]["delays"][0].replace("\xa0", " ") == "380 ± 20 ms"
    assert "half within ≤" in headline_sentence(summary(0.01))[0]
    assert delay.share_bars(summary())[0] == {
        "level": "5",
        "share": 0.5,
        "low_s": pytest.approx(0.36),
        "high_s": pytest.approx(0.40),
    }


def points(*delays):
    return [
        {
            "level": "5",
            "at_s": 1.0,
            "share": 0.5,
            "delay_s": d,
            "low_s": d - 0.05,
            "high_s": d + 0.05,
            "hover": "a delivery",
        }
        for d in delays
    ]


@pytest.mark.parametrize(
    "delays", [(0.1, 0.2), (-0.01, 0.1, 9.0), (-0.02, -0.01), (0.0, 0.01, 5.0)]
)
def test_charts_have_a_place_for_delays_that_clocks_made_negative(delays):
    rows = points(*delays)
    for drawn in (
        str(delay_over_time(rows, [], "times")),
        str(delay_shares(rows, "shares", rows)),
    ):
        assert "NaN" not in drawn
        assert "Infinity" not in drawn
    assert on_axis(points(0.1, 0.2)) == points(0.1, 0.2)


def test_receivers_have_errors_of_their_own():
    table = deliveries((5, 0.1, 0.01), (5, 0.3, 0.01), (5, 0.3, 0.01))
    row = by_receiver(table)["town"]["5"]
    assert row["error_s"] == pytest.approx({"p50": 0.01, "p95": 0.01, "max": 0.01})
    assert percentile_with_error(row, "max").replace("\u00a0", " ") == "300 ± 10 ms"
    row = by_receiver(deliveries((5, 0.1, 0.01), (5, 0.3, 0.02), (5, None, None)))["town"]["5"]
    assert row["error_s"] == pytest.approx({"p50": 0.02}), "the others were not reached"
    assert percentile_with_error(row, "p50").replace("\u00a0", " ") == "300 ± 20 ms"
    assert percentile_with_error(row, "max").replace("\u00a0", " ") == "not within 300 ms"
    assert "error_s" not in by_receiver(deliveries((5, 0.1, 0.0)))["town"]["5"]


def figures(p50, error=None):
    delays = dict.fromkeys(("p50", "p95", "p99", "max"), p50)
    more = {} if error is None else {"error_s": dict.fromkeys(delays, error)}
    whole = dict.fromkeys(("copies_per_publication", "control_bytes_per_s", "overhead"), 1.0)
    return {"levels": {"5": {**delays, "hops_mean": 2.0, "hops_max": 2, **more}}, **whole}


def test_a_difference_that_clocks_may_explain_exceeds_no_limit():
    inside = {"run": "b", **ratios_of(figures(0.1), figures(0.15, 0.06))}
    assert inside["levels"]["5"]["within_clock_error"] == ["p50", "p95", "p99", "max"]
    (verdict,) = thresholds.judge({"ratios": [inside]}, [("delay", 1.2)])
    assert verdict["ok"]
    assert "no difference that its clocks could show" in verdict["of"]
    (verdict,) = thresholds.judge({"ratios": [inside]}, [("delay", 0.9)])
    assert not verdict["ok"]  # nor that it is faster
    beyond = {"run": "b", **ratios_of(figures(0.1), figures(0.15, 0.04))}
    assert beyond["levels"]["5"]["within_clock_error"] == []
    assert not thresholds.judge({"ratios": [beyond]}, [("delay", 1.2)])[0]["ok"]
    assert "within_clock_error" not in ratios_of(figures(0.1), figures(0.15))["levels"]["5"]


@pytest.mark.parametrize(("error", "worse"), [(0.0, True), (0.02, True), (0.06, False)])
def test_a_side_is_not_surely_worse_by_less_than_its_clocks_may_be_off(error, worse):
    rng = np.random.default_rng(1)
    one, two = ({5: mean + rng.normal(0, 0.001, 300)} for mean in (0.1, 0.15))
    errors = {5: dict.fromkeys(("p50", "p95", "p99", "mean"), error)} if error else {}
    found = effects([one], [two], ({}, errors))
    reported = found["levels"]["5"]["p50"]
    assert reported["low"] <= reported["value"] <= reported["high"]
    assert reported.get("within_clock_error", False) == (not worse)
    (verdict,) = judge_worse({"effects": [{"run": "b", **found}]}, [("p50", 0.1)])
    assert verdict["ok"] != worse


def test_a_ratio_to_a_delay_that_may_be_zero_is_none():
    one, two = {5: np.full(50, 0.01)}, {5: np.full(50, 0.15)}
    errors = {5: dict.fromkeys(("p50", "p95", "p99", "mean"), 0.02)}
    reported = effects([one], [two], (errors, {}))["levels"]["5"]["p50"]
    assert reported == {"value": None, "low": None, "high": None, "within_clock_error": False}


@pytest.mark.parametrize(
    ("drift", "error", "text"),
    [
        (None, None, "–"),
        (31.61, 34.4, "0 ± 67 ppm"),
        (-72.8, 41.0, "−73 ± 42 ppm"),
        (20.04, 0.5, "+20.0 ± 0.6 ppm"),
    ],
)
def test_a_drift_has_as_many_digits_as_its_error_leaves(drift, error, text):
    assert sections_clocks.rate(drift, error).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (None, "–"),
        ({"offset_s": 0.0001, "error_s": 0.0003}, "0 ± 400 µs"),
        ({"offset_s": -0.0123, "error_s": 0.0004}, "−12.3 ± 0.4 ms"),
        ({"offset_s": 1.5, "error_s": 0.01}, "+1.50 ± 0.01 s"),
    ],
)
def test_offsets_have_a_sign_and_an_error(offset, text):
    assert sections_clocks.signed(offset).replace("\u00a0", " ") == text
