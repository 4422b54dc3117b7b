"""The experiment on waiting: rows, figures, checks and charts from known values."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from analysis.papers.kawakami2016 import waiting
from analysis.papers.kawakami2016.freshness import trials, with_twins
from analysis.papers.kawakami2016.paper import KAWAKAMI2016, drawings
from analysis.papers.kawakami2016.waiting import Waited
from analysis.papers.reproduction import render
from support.runs.overlay_rows import Row, kawakami_waited

NO_NAMESPACES = "network namespaces cannot be made here"
SIMULATED_ONLY = replace(kawakami_waited(labs=("simulated",)), runs=[], without=NO_NAMESPACES)


def verdicts(waited: Waited) -> list[bool | None]:
    return [check["ok"] for check in waiting.checks(waited)]


def of(lab: str, **values: Any) -> Callable[[Row], Row]:
    return lambda row: {**row, **values} if row["lab"] == lab else row


def test_checks_hold_where_waiting_costs_time_and_saves_messages() -> None:
    assert verdicts(kawakami_waited()) == [True] * 5
    found = [check["found"] for check in waiting.checks(kawakami_waited())]
    assert found[1] == "0.2 s at 0 ms, 0.7 s at 1000 ms"
    assert found[3] == "0.22 s at 0 ms, 0.72 s at 1000 ms; 900 bytes at 0 ms, 700 bytes at 1000 ms"
    assert found[4].startswith("6 of 6; furthest apart: delay 0.2 s for 0.18 s at 0 ms")


@pytest.mark.parametrize(
    ("changed", "which"),
    [
        (of("real", missing=1), {0}),
        (of("simulated", missing=1), {0}),
        (of("simulated", delay_s=1.0), {1}),
        (of("simulated", messages=1.0), {2}),
        (of("real", delay_s=1.0), {3}),
        (of("real", bytes=500.0), {3}),
        (of("real", age_s=9.0), {4}),
        (of("real", delay_p50_s=0.3), {4}),
    ],
)
def test_a_check_fails_when_its_numbers_do(changed: Callable[[Row], Row], which: set[int]) -> None:
    found = verdicts(kawakami_waited(changed))
    assert {place for place, ok in enumerate(found) if not ok} == which


def test_labs_are_not_compared_with_the_simulation_when_the_machine_was_too_busy() -> None:
    busy = [{"run": "waiting-0ms-1", "fidelity": {"machine": {"ok": False}}}]
    found = waiting.checks(replace(kawakami_waited(of("real", age_s=9.0)), runs=busy))[4]
    assert found["ok"] is None
    assert found["found"].endswith("not judged: the machine did not keep up in waiting-0ms-1")


def test_without_namespaces_the_figures_are_simulated_and_say_so() -> None:
    assert verdicts(SIMULATED_ONLY) == [True, True, True, None, None]
    assert waiting.checks(SIMULATED_ONLY)[3]["found"] == NO_NAMESPACES
    found = waiting.figures(SIMULATED_ONLY)
    assert {cell["lab"] for figure in found for cell in figure["cells"]} == {"simulated"}
    result = {
        "paper": "kawakami2016",
        "extent": "quick",
        "trials": 1,
        "cells": 3,
        "figures": found,
        "checks": waiting.checks(SIMULATED_ONLY),
    }
    page = render(result, KAWAKAMI2016.texts, drawings(found))
    assert page.count(f"Simulated only: {NO_NAMESPACES}.") == len(found)


def test_a_folder_from_before_has_no_such_rows_and_no_chart() -> None:
    assert verdicts(Waited()) == [None] * 5
    assert drawings(waiting.figures(Waited())) == {}


def test_cells_are_sorted_by_lab_and_waiting_time_and_each_figure_has_a_chart() -> None:
    found = waiting.figures(kawakami_waited())
    assert json.loads(json.dumps(found)) == found
    assert [(cell["lab"], cell["wait_ms"]) for cell in found[0]["cells"]] == [
        (lab, wait_ms) for lab in ("real", "twin", "simulated") for wait_ms in (0, 500, 1000)
    ]
    drawn = drawings(found)
    assert drawn.keys() == waiting.FIGURES.keys()
    for text in map(str, drawn.values()):
        assert all(way in text for way in ("real lines", "same seed", "3 seeds"))


def test_with_one_seed_the_twins_are_all_that_is_simulated() -> None:
    once = [row for row in kawakami_waited().rows if row["lab"] != "simulated"]
    alike = [{**row, "lab": "simulated"} for row in once if row["lab"] == "twin"]
    drawn = drawings(waiting.figures(Waited([*once, *alike])))
    assert all("same seed" in text and "seeds" not in text for text in map(str, drawn.values()))


def test_a_lab_is_measured_by_its_own_readings_in_the_time_that_counts() -> None:
    lab = {"lab": "real", "sites": 2, "wait_ms": 500, "trial": 0}
    times = [("a", -1.0, 0.5), ("a", 0.0, 0.1), ("a", 1.0, 1.3), ("b", 0.0, 0.2), ("b", 2.0, 2.5)]
    readings = [
        {**lab, "gauge": gauge, "published_s": published, "came_s": came}
        for gauge, published, came in times
    ]
    other = {**readings[0], "trial": 1, "published_s": 0.0, "came_s": 9.0}
    costs = {"messages": 6.0, "packets": 5.0, "bytes": 3_000, "line_bytes": 9_000}
    total = {**lab, "measured_s": 2, "due": 4, **costs}
    (row,) = trials([*readings, other], [total, {**total, "trial": 7}])
    assert {name: row[name] for name in lab} == lab
    assert row["missing"] == 1
    assert row["delay_s"] == pytest.approx(0.2)
    assert row["delay_p50_s"] == pytest.approx(0.2)
    assert (row["messages"], row["bytes"], row["line_bytes"]) == (2.0, 1_110.0, 3_000.0)


def test_a_real_lab_is_paired_with_the_simulated_one_of_its_seed() -> None:
    place = {"sites": 10, "wait_ms": 500}
    rows = [{"lab": "simulated", "trial": trial, **place} for trial in range(3)]
    assert with_twins(rows) == rows
    real = {"lab": "real", "trial": 1, **place}
    assert with_twins([*rows, real]) == [*rows, real, {"lab": "twin", "trial": 1, **place}]
