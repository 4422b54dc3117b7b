"""The page of a sweep: charts over the swept values, tables of all combinations, cells that failed."""

from itertools import product
from typing import Any

import pytest

from analysis.report.sweep import Swept, drawings, point_rows, render

TRIANGLE = 'stroke-width="1.8"'  # the outline of an open mark
STATISTICS = ("p50", "p95", "p99", "mean", "lost_share")


def result(axes: dict[str, list[str]], lost: float = 0.0, trials: int = 2) -> dict[str, Any]:
    points = []
    for number, values in enumerate(product(*axes.values()), start=1):
        reported = {name: {"value": number / 10, "low": 0.01, "high": 2.0} for name in STATISTICS}
        reported["lost_share"] = {"value": lost, "low": 0.0, "high": lost}
        points.append(
            {
                "settings": dict(zip(axes, values, strict=True)),
                "runs": [f"r{number}-{trial}" for trial in range(trials)],
                "seeds": [*range(trials)],
                "levels": {level: {"expected": 10, **reported} for level in ("5", "1")},
                **dict.fromkeys(("overhead", "copies_per_publication"), 2.5),
                "control_bytes_per_s": None,
                "expected": 20,
                "delivered": 20,
                "lost": round(20 * lost),
                "met": 1,
                "unmet": {},
                "low_fidelity": 0,
            }
        )
    return {
        "lab": "valley",
        "axes": [{"path": path, "values": values} for path, values in axes.items()],
        "trials": trials,
        "backend": "simulated",
        "cells": len(points) * trials,
        "points": points,
        "failed": [],
    }


def test_numbers_with_a_unit_are_drawn_along_an_axis_and_the_others_as_lines() -> None:
    drawn = drawings(
        result({"method": ["fifo", "pq-pc"], "rate": ["4kB/s", "8kB/s", "20kB/s"]}, 0.1)
    )
    assert [*drawn] == ["Median delay", "95 % of the delay", "Lost"]
    for chart in map(str, drawn.values()):
        assert "rate, kB/s" in chart
        assert "pq-pc" in chart
        assert "level 5" in chart


def test_names_are_drawn_side_by_side() -> None:
    drawn = drawings(result({"method": ["fifo", "pq-pc"]}))
    assert [*drawn] == ["Median delay", "95 % of the delay"]
    assert "pq-pc" in str(drawn["Median delay"])


def test_numbers_of_different_units_are_names() -> None:
    drawn = drawings(result({"rate": ["4kB/s", "1MB/s"]}))
    assert "1MB/s" in str(drawn["Median delay"])


@pytest.mark.parametrize("axes", [{}, {"method": ["fifo"]}])
def test_trials_alone_have_a_page_without_charts(axes: dict[str, list[str]]) -> None:
    page = render(result(axes))
    assert "<svg" not in page
    assert "1 combination" in page


def test_more_lines_than_a_reader_can_distinguish_are_left_to_the_tables() -> None:
    axes = {"method": [f"m{number}" for number in range(13)], "rate": ["4kB/s", "8kB/s"]}
    page = render(result(axes))
    assert "too many combinations for charts" in page
    assert "m12" in page


def test_cells_that_failed_stand_on_the_page() -> None:
    one = {"number": 3, "settings": [["rate", "4kB/s"]], "seed": 7, "error": "no room <b>"}
    page = render({**result({"rate": ["4kB/s", "8kB/s"]}), "failed": [one]})
    assert "1 cell has failed" in page
    assert "cell 3 (rate=4kB/s, seed 7): no room &lt;b&gt;" in page


def test_a_row_for_each_combination_level_and_statistic() -> None:
    made = result({"method": ["fifo", "pq-pc"], "rate": ["4kB/s", "8kB/s"]})
    swept = [Swept("method"), Swept("rate", "rate_bps", {"4kB/s": 32e3, "8kB/s": 64e3})]
    rows = point_rows(made, swept)
    assert len(rows) == 4 * 2 * len(STATISTICS)
    assert rows[0] | {"low": None, "high": None} == {
        "method": "fifo",
        "rate": "4kB/s",
        "rate_bps": 32e3,
        "trials": 2,
        "priority": 5,
        "expected": 10,
        "statistic": "p50",
        "value": 0.1,
        "low": None,
        "high": None,
    }


def with_missing(axes: dict[str, list[str]], bounded: int) -> dict[str, Any]:
    """Of the last points, level 5 did not reach its median."""
    made = result(axes, 0.6)
    for point in made["points"][-bounded:]:
        level = point["levels"]["5"]
        for name in ("p50", "p95", "p99", "mean"):
            bound = None if name == "mean" else 31.2
            level[name] = {"value": None, "low": 4.9, "high": None, "not_within_s": bound}
    return made


@pytest.mark.parametrize(
    "axes", [{"rate": ["4kB/s", "8kB/s", "20kB/s"]}, {"method": ["fifo", "pq-pc"]}]
)
@pytest.mark.parametrize("bounded", [1, 2])
def test_what_was_not_reached_is_an_open_triangle_at_its_bound(
    axes: dict[str, list[str]], bounded: int
) -> None:
    whole = str(drawings(result(axes))["Median delay"])
    made = str(drawings(with_missing(axes, bounded))["Median delay"])
    assert made.count(TRIANGLE) == bounded
    assert TRIANGLE not in whole
    assert "NaN" not in made
    page = render(with_missing(axes, bounded))
    assert page.count("not within 31\u00a0s") == 3 * bounded
    assert "Open triangle" in page
    assert "Open triangle" not in render(result(axes))
    bounds = [row.get("not_within_s") for row in point_rows(with_missing(axes, bounded), ())]
    assert bounds.count(31.2) == 3 * bounded


def test_an_interval_without_an_upper_end_says_so() -> None:
    made = result({"method": ["fifo", "pq-pc"]})
    made["points"][0]["levels"]["5"]["p95"]["high"] = None
    assert "10.0\u00a0ms or more" in render(made)
