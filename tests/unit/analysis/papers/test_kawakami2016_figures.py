"""Figures and checks of Kawakami 2016 from rows with known values."""

import json
from collections.abc import Callable

import pytest

from analysis.metrics.load import jain
from analysis.papers.kawakami2016.figures import SENTENCES, checks, figures
from analysis.papers.kawakami2016.paper import KAWAKAMI2016, drawings
from analysis.papers.reproduction import render
from support.runs.overlay_rows import Row, kawakami_means

Change = Callable[[Row], Row]


def verdicts(changed: Change | None = None) -> list[bool | None]:
    return [check["ok"] for check in checks(kawakami_means(changed))]


def test_all_checks_hold_where_all_is_as_it_should_be() -> None:
    assert verdicts() == [True] * len(SENTENCES)


def test_the_fairness_of_the_papers_example_counts_the_subscriber() -> None:
    loads = [1, 1 / 2, 1 / 2, 1 / 3, 7 / 3]
    squares = sum(load**2 for load in loads)
    assert jain(sum(loads), squares, 5) == pytest.approx(0.617, abs=0.0005)
    assert jain(sum(loads), squares, 4) == pytest.approx(0.772, abs=0.0005)


def test_figures_are_those_of_the_paper() -> None:
    found = figures(kawakami_means())
    names = ["momentary", "largest", "load", "fairness", "hops-max", "hops"]
    assert [figure["figure"] for figure in found] == names
    assert json.loads(json.dumps(found)) == found
    for figure in found:
        assert len(figure["cells"]) == 2 * (
            7 + 4
        )  # sizes; as lines all methods, as rings those that push
    load = {cell["method"]: cell["paper"] for cell in found[2]["cells"]}
    assert "slip" in load["push-descending-aggregated"]["statement"]
    assert load["pull"] is None


def of(method: str, lists: str = "line", **values: float) -> Change:
    def changed(row: Row) -> Row:
        here = row["method"] == method and row["lists"] == lists
        return {**row, **values} if here else row

    return changed


def grown(method: str, factor: float, value: str) -> Change:
    def changed(row: Row) -> Row:
        here = row["method"] == method and row["nodes"] == 200
        return {**row, value: row[value] * factor} if here else row

    return changed


@pytest.mark.parametrize(
    ("changed", "which"),
    [
        (of("server", momentary=99.0), {0}),
        (of("chain", momentary=3.0), {1}),
        (of("push-ascending-aggregated", most_sent=2), {2}),
        (of("push-descending-aggregated", load=50.0), {3, 4}),
        (of("chain", load=61.0), {3, 4}),
        (grown("push-descending-aggregated", 1.2, "load"), {5}),
        (of("push-ascending", load=210.0), {6}),
        (of("chain", fairness=0.5), {7, 8}),
        (of("push-ascending-aggregated", fairness=0.3), {8}),
        (grown("push-descending-aggregated", 0.8, "fairness"), {9}),
        (of("chain", hops_max=99), {10}),
        (of("chain", hops=30.0), {11}),
    ],
)
def test_a_check_fails_when_its_numbers_do(changed: Change, which: set[int]) -> None:
    assert {at for at, ok in enumerate(verdicts(changed)) if not ok} == which


def test_a_check_names_the_other_readings_by_which_it_would_fail() -> None:
    found = checks(kawakami_means(of("push-ascending", lists="ring", load=1.0)))
    worst = next(check for check in found if check["check"].startswith("SL is largest"))
    assert worst["ok"] is True
    assert worst["found"].endswith("not so if lists are read as ring")


def test_checks_without_measurements_have_no_verdict() -> None:
    assert [check["ok"] for check in checks([])] == [None] * len(SENTENCES)


def test_the_page_shows_checks_and_charts_without_scripts() -> None:
    means = kawakami_means()
    found = figures(means)
    result = {
        "paper": "kawakami2016",
        "extent": "quick",
        "trials": 2,
        "cells": 8,
        "figures": found,
        "checks": checks(means),
    }
    text = render(result, KAWAKAMI2016.texts, drawings(found))
    assert text.count("<svg") == 6
    assert "<script" not in text
    assert "descending, aggregated" in text
