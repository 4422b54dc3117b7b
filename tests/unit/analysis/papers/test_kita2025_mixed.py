"""Urgent and routine topics that share a table: the figure and its checks, from rows with known values."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from analysis.papers.kita2025 import mixed
from analysis.papers.kita2025.paper import drawings

Row = dict[str, Any]
PATHS = {
    ("atm-tbps", 5): 3.0,
    ("atm-tbps", 1): 3.0,
    ("patm-tbps", 5): 2.0,
    ("patm-tbps", 1): 3.2,
}


def spread(value: float) -> Row:
    return {"mean": value, "low": None, "high": None, "trials": 1}


def rows() -> Iterator[Row]:
    head = {"nodes": 10_000, "table_size": 60, "topics_each": 4}
    for subscribers in (10, 40, 160):
        for (method, priority), path in PATHS.items():
            full = subscribers == 160  # of neighbours, and no method has a choice
            yield {
                "subscribers": subscribers,
                **head,
                "method": method,
                "priority": priority,
                "path": spread(5.0 if full else path),
                "one_hop": spread(0.1),
            }


def verdicts(change: Callable[[Row], Row] = dict) -> list[bool | None]:
    return [check["ok"] for check in mixed.checks([change(row) for row in rows()])]


def test_both_checks_hold_where_methods_have_a_choice() -> None:
    assert verdicts() == [True, True]


@pytest.mark.parametrize(("priority", "path", "which"), [(5, 3.0, 0), (1, 2.9, 1)])
def test_a_check_fails_when_its_numbers_do(priority: int, path: float, which: int) -> None:
    def change(row: Row) -> Row:
        hit = (row["method"], row["priority"], row["subscribers"]) == ("patm-tbps", priority, 40)
        return {**row, "path": spread(path)} if hit else row

    expected: list[bool | None] = [True, True]
    expected[which] = False
    assert verdicts(change) == expected


def test_checks_without_measurements_have_no_verdict() -> None:
    assert [check["ok"] for check in mixed.checks([])] == [None, None]


def test_the_figure_says_that_it_is_ours_and_has_a_chart() -> None:
    found = mixed.figure(list(rows()))
    assert json.loads(json.dumps(found)) == found
    assert "not in the thesis" in found["title"]
    assert {cell["paper"] for cell in found["cells"]} == {None}
    text = str(drawings([found])["mixed"])
    assert text.count("<svg") == 1
    assert "PATM-TBPS, urgent" in text
