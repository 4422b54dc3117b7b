"""Figures and checks of Kita 2025 from rows with known values."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from analysis.papers.kita2025.figures import checks, figures
from analysis.papers.kita2025.paper import KITA2025, drawings
from analysis.papers.reproduction import render
from support.runs.overlay_rows import Row, kita_means

NAMES = [
    *(f"path-{priority}" for priority in range(1, 6)),
    *("forwards-5", "delay", "tables-path", "tables-forwards", "ours"),
]


def by_name(found: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {figure["figure"]: figure["cells"] for figure in found}


def test_all_checks_hold_where_all_is_as_it_should_be() -> None:
    assert [check["ok"] for check in checks(*kita_means())] == [True] * 10


def test_figures_are_those_of_the_thesis_and_ours() -> None:
    found = figures(*kita_means())
    assert [figure["figure"] for figure in found] == NAMES
    assert all(figure["cells"] for figure in found)
    assert json.loads(json.dumps(found)) == found


def test_every_reading_of_the_thesis_has_its_cells_at_every_priority() -> None:
    cells = by_name(figures(*kita_means()))
    for priority in range(1, 6):
        own = cells[f"path-{priority}"]
        assert len(own) == 6 * 2 * (2 + 8)  # patterns, sizes; two of SG-TBPS, eight of PSG-TBPS
        assert {cell["priority"] for cell in own} == {priority}
    assert len(cells["delay"]) == 5 * len(cells["path-5"])
    assert len(cells["ours"]) == 6 * 2 * 8


def test_each_statement_of_the_thesis_is_at_the_cells_that_it_concerns() -> None:
    cells = by_name(figures(*kita_means()))
    statements = {
        (cell["method"], cell["pattern"]): cell["paper"] and cell["paper"]["statement"]
        for cell in cells["path-5"]
    }
    assert statements["sg-tbps", "a"] is None
    assert "60 %" in statements["psg-tbps", "c"]
    assert "topics of 10" in statements["psg-tbps", "d"]
    assert {cell["paper"]["statement"] for cell in cells["path-1"] if cell["paper"]} == {
        "priority 1 is the same as SG-TBPS"
    }
    assert {cell["paper"] for cell in cells["ours"]} == {None}


def test_a_path_has_its_interval_and_its_share_of_sg_tbps() -> None:
    cells = by_name(figures(*kita_means()))["path-5"]
    one = next(
        cell
        for cell in cells
        if (cell["pattern"], cell["nodes"], cell["method"]) == ("c", 1_000, "psg-tbps")
        and (cell["strategy"], cell["support_from"]) == ("flood", "publishers")
    )
    assert one["ours"]["path"]["mean"] == pytest.approx(2.0)
    assert one["ours"]["path"]["high"] - 2 == pytest.approx(4.303 * 0.04 / 3**0.5)
    assert one["ours"]["path"]["trials"] == 3
    assert one["ours"]["of_sg"] == pytest.approx(0.4)


def scaled(value: str, factor: float, **where: Any) -> Callable[[Row], Row]:
    """Multiply a value in the matching rows."""

    def change(row: Row) -> Row:
        chosen = all(row[name] == wanted for name, wanted in where.items())
        return {**row, value: row[value] * factor} if chosen else row

    return change


@pytest.mark.parametrize(
    ("changed", "which"),
    [
        ({"topics": scaled("path", 1.0001, method="psg-tbps", priority=1)}, [0]),
        ({"topics": scaled("forwards", 0.9999, method="psg-tbps", priority=1)}, [0]),
        ({"topics": scaled("path", 0.1, method="psg-tbps", priority=5)}, [1, 2, 8]),
        ({"topics": scaled("path", 0.6, method="psg-tbps", priority=5, pattern="d")}, [2]),
        ({"topics": scaled("forwards", 30.0, method="psg-tbps", priority=5, pattern="a")}, [3]),
        ({"tables": scaled("path", 1.1, method="atm-tbps", subscribers=40)}, [4, 6]),
        ({"tables": scaled("path", 0.48, method="patm-tbps", subscribers=160)}, [5, 6]),
        ({"tables": scaled("path", 0.5, method="patm-tbps", priority=5, subscribers=640)}, [6]),
        ({"tables": scaled("forwards", 10.0, method="patm-tbps", priority=5)}, [7]),
        ({"topics": scaled("path", 1.06, method="fan-tbps", pattern="b")}, [8]),
        ({"topics": scaled("forwards", 12.0, method="fan-tbps", pattern="a")}, [9]),
    ],
    ids=[
        "priority 1 differs in path",
        "priority 1 differs in messages",
        "too much shorter",
        "small topics gain",
        "a has most messages",
        "two hops for 40 subscribers",
        "one hop for 160",
        "PATM shorter than ATM",
        "PATM sends as much as PSG",
        "ours is longer",
        "ours sends more",
    ],
)
def test_a_check_fails_when_its_numbers_do(
    changed: dict[str, Callable[[Row], Row]], which: list[int]
) -> None:
    verdicts = [check["ok"] for check in checks(*kita_means(**changed))]
    assert [place for place, ok in enumerate(verdicts) if not ok] == which


def test_a_small_topic_is_no_goal_of_ours() -> None:
    change = scaled("path", 3.0, method="fan-tbps", pattern="e")
    assert [check["ok"] for check in checks(*kita_means(topics=change))] == [True] * 10


def test_checks_without_measurements_have_no_verdict() -> None:
    assert [check["ok"] for check in checks([], [])] == [None] * 10


def test_small_topics_alone_cannot_be_judged_by_large_ones() -> None:
    topics, tables = kita_means()
    small = [row for row in topics if row["pattern"] in "def"]
    verdicts = [check["ok"] for check in checks(small, tables)]
    assert verdicts == [True, None, None, None, True, True, True, True, None, None]


def test_the_worst_number_is_reported() -> None:
    found = [check["found"] for check in checks(*kita_means())]
    assert found[4] == "6 of 6; largest 1 (patm-tbps, 40 subscribers)"
    assert found[5] == "6 of 6; smallest 2.12 (patm-tbps, 160 subscribers)"


def test_the_page_shows_checks_and_charts_without_scripts() -> None:
    means = kita_means()
    found = figures(*means)
    result = {
        "paper": "kita2025",
        "extent": "quick",
        "trials": 3,
        "cells": 24,
        "figures": found,
        "checks": checks(*means),
    }
    drawn = drawings(found)
    text = render(result, KITA2025.texts, drawn)
    assert list(drawn) == NAMES
    assert text.count("<svg") == len(NAMES)
    assert "<script" not in text
    assert "up to about 60 % shorter" in text
    assert "PSG-TBPS, search, helped by publishers" in str(drawn["path-5"])
    assert "exact" not in str(drawn["path-5"])
    assert "PATM-TBPS, priority 5" in str(drawn["tables-path"])
