"""Figures and checks of Ogawa's map from rows with known values."""

import json
from collections.abc import Callable

import pytest

from analysis.papers.ogawa.figures import checks, figures, usual_reading
from analysis.papers.ogawa.paper import OGAWA, drawings
from analysis.papers.reproduction import render
from support.runs.levelling_rows import USUAL, Change, ogawa_means
from support.runs.overlay_rows import Row

ALL = 7


def verdicts(changed: Change | None = None) -> list[bool | None]:
    totals, _, _, moments = ogawa_means(changed)
    return [check["ok"] for check in checks(totals, usual_reading(moments))]


def of(when: str, give: str = "both", **values: float) -> Change:
    """Change all readings with this `give`."""

    def changed(row: Row) -> Row:
        return {**row, **values} if (row["when"], row["give"]) == (when, give) else row

    return changed


def test_all_checks_hold_where_all_is_as_it_should_be() -> None:
    assert verdicts() == [True] * ALL


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        (of("before", to_50=0.5), {0}),
        (of("before", above_250=0.06), {1}),
        (of("after", from_500=1), {2}),
        (of("after", "left", from_500=1), {3}),
        (of("after", fairness=0.39), {4}),
        (of("after", "left", fairness=0.62), {5}),
        (of("after", "left", fairness=0.1), {4, 5, 6}),
    ],
)
def test_each_check_can_fail(changed: Change, wrong: set[int]) -> None:
    found = verdicts(changed)
    assert {place for place, ok in enumerate(found) if not ok} == wrong


def test_one_trial_in_three_with_a_heavy_node_is_too_many() -> None:
    def changed(row: Row) -> Row:
        return {**row, "from_500": 1} if row["trial"] == 0 and row["when"] == "after" else row

    assert verdicts(changed)[2] is False


def test_the_largest_load_is_reported_and_not_judged() -> None:
    totals, _, _, moments = ogawa_means(of("after", "left", largest=400))
    as_well = checks(totals, usual_reading(moments))[5]
    assert as_well["ok"]
    assert "largest load 300 and 400" in as_well["found"]


def test_checks_without_measurements_have_no_verdict() -> None:
    assert [check["ok"] for check in checks([], {})] == [None] * ALL


def test_figures_are_those_of_the_paper_and_what_it_leaves_open() -> None:
    found = figures(*ogawa_means())
    names = ["load", "histogram", "levelled", "rounds", "e", "k", "readings"]
    assert [figure["figure"] for figure in found] == names
    assert json.loads(json.dumps(found)) == found
    cells = {figure["figure"]: figure["cells"] for figure in found}
    assert len(cells["load"]) == 2 * 2 * 100
    assert [(cell["give"], cell["when"]) for cell in cells["levelled"]] == [
        *[("both", "before"), ("both", "after")],
        *[("left", "before"), ("left", "after")],
    ]
    assert "more than half" in cells["levelled"][0]["paper"]["statement"]
    assert "500" in cells["levelled"][1]["paper"]["statement"]
    assert [(cell["e_of"], cell["e"]) for cell in cells["e"]] == [
        *[("mean", 0.0), ("mean", 0.5)],
        ("load", 50.0),
    ]
    assert [cell["k"] for cell in cells["k"]] == [2, 5, 20]
    assert [cell["reading"] for cell in cells["readings"][::2]] == [
        *["the usual one", "events per sensor 10", "scale 0.3", "movers all"]
    ]
    assert [cell["round"] for cell in cells["rounds"]] == 2 * [0, 500, 1_000]


def test_the_usual_reading_is_the_one_that_is_followed() -> None:
    assert usual_reading(ogawa_means()[3]) == USUAL
    assert usual_reading([]) == {}


def test_the_page_shows_checks_statements_and_charts() -> None:
    found = figures(*ogawa_means())
    totals, _, _, moments = ogawa_means()
    result = {
        "paper": "ogawa",
        "extent": "quick",
        "trials": 3,
        "cells": 27,
        "figures": found,
        "checks": checks(totals, usual_reading(moments)),
    }
    charts = drawings(found)
    assert set(charts) == {"load", "histogram", "rounds", "e", "k"}
    page = render(result, OGAWA.texts, charts)
    assert page.count("<svg") == len(charts)
    assert "no node has a load of 500 or more" in page


def test_figures_without_rows_have_no_drawings() -> None:
    empty: Callable[[], list[Row]] = list
    assert drawings(figures(empty(), empty(), empty(), empty())) == {}
