"""Figures and checks of Banno 2013 from rows with known values."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from analysis.papers.banno2013.figures import checks, figures
from analysis.papers.banno2013.paper import BANNO2013, drawings
from analysis.papers.reproduction import render
from support.runs.overlay_rows import Row, banno_means


def verdicts(**changed: Callable[[Row], Row]) -> list[bool | None]:
    topics, _, totals = banno_means(**changed)
    return [check["ok"] for check in checks(topics, totals)]


def test_all_checks_hold_where_all_is_as_it_should_be() -> None:
    assert verdicts() == [True] * 4


def test_figures_are_those_of_the_paper_that_need_no_time() -> None:
    found = figures(*banno_means())
    assert [figure["figure"] for figure in found] == ["path", "forwards", "load", "correlation"]
    assert json.loads(json.dumps(found)) == found
    path, _, load, correlation = (figure["cells"] for figure in found)
    assert len(path) == 6 * 2 * 3  # patterns, sizes; SG-TBPS by flood and search, Scribe
    assert [cell["from_node"] for cell in load[:5]] == [0, 1_000, 2_000, 3_000, 4_000]
    statements = {cell["method"]: cell["paper"]["statement"] for cell in correlation}
    assert "correlate clearly" in statements["sg-tbps"]
    assert "hardly" in statements["scribe"]


def grown(row: Row) -> Row:
    large = row["method"] == "sg-tbps" and row["nodes"] == 10_000
    return {**row, "path": row["path"] * 1.2} if large else row


def total(method: str, **values: Any) -> Callable[[Row], Row]:
    return lambda row: {**row, **values} if row["method"] == method else row


@pytest.mark.parametrize(
    ("changed", "which"),
    [
        ({"topics": grown}, 0),
        ({"totals": total("sg-tbps", correlation=0.2)}, 1),
        ({"totals": total("scribe", correlation=-0.2)}, 2),
        ({"totals": total("scribe", without_forwards=9_000)}, 3),
        ({"totals": total("sg-tbps", without_forwards=0)}, 3),
    ],
    ids=["paths grow", "no correlation", "a correlation", "leaves in Scribe", "no leaves"],
)
def test_a_check_fails_when_its_numbers_do(
    changed: dict[str, Callable[[Row], Row]], which: int
) -> None:
    expected: list[bool | None] = [True] * 4
    expected[which] = False
    assert verdicts(**changed) == expected


def test_checks_without_measurements_have_no_verdict() -> None:
    assert [check["ok"] for check in checks([], [])] == [None] * 4


def test_the_page_shows_checks_and_charts_without_scripts() -> None:
    topics, load, totals = banno_means()
    found = figures(topics, load, totals)
    result = {
        "paper": "banno2013",
        "extent": "full",
        "trials": 1,
        "cells": 24,
        "figures": found,
        "checks": checks(topics, totals),
    }
    text = render(result, BANNO2013.texts, drawings(found))
    assert text.count("<svg") == 3
    assert "<script" not in text
    assert "1 trial ·" in text
    assert "40,000 ± 0" in text
