"""The experiment on waiting: figures, checks and charts from rows whose truth is known."""

import json
from typing import Any

from analysis.papers.kawakami2016 import waiting
from analysis.papers.kawakami2016.drawings import drawings
from analysis.papers.spread import spread


def rows(**changed: Any) -> list[dict[str, Any]]:
    """Longer waits: later, older, fewer messages."""
    return [
        {
            "sites": 10,
            "wait_ms": wait_ms,
            "delay_s": spread(0.2 + wait_ms / 2000, 0.01, 3),
            "delay_p95_s": spread(0.4 + wait_ms / 1000, 0.01, 3),
            "age_s": spread(3 + wait_ms / 2000, 0.01, 3),
            "messages": spread(2 - wait_ms / 2000, 0.01, 3),
            "missing": spread(0, 0.0, 3),
            **changed,
        }
        for wait_ms in (500, 0, 1000)
    ]


def verdicts(found: list[dict[str, Any]]) -> list[bool | None]:
    return [check["ok"] for check in waiting.checks(found)]


def test_checks_hold_where_waiting_costs_time_and_saves_messages() -> None:
    assert verdicts(rows()) == [True, True, True]
    assert waiting.checks(rows())[1]["found"] == "0.2 s at 0 ms, 0.7 s at 1000 ms"


def test_checks_see_what_is_not_so() -> None:
    assert verdicts(rows(missing=spread(1, 0.0, 3))) == [False, True, True]
    assert verdicts(rows(delay_s=spread(1, 0.0, 3))) == [True, False, True]
    assert verdicts(rows(messages=spread(1, 0.0, 3))) == [True, True, False]


def test_a_folder_from_before_has_no_such_rows_and_no_chart() -> None:
    assert verdicts([]) == [None, None, None]
    assert drawings(waiting.figures([])) == {}


def test_cells_stand_by_how_long_brokers_wait_and_each_figure_has_a_chart() -> None:
    found = waiting.figures(rows())
    assert json.loads(json.dumps(found)) == found
    assert [cell["wait_ms"] for cell in found[0]["cells"]] == [0, 500, 1000]
    drawn = drawings(found)
    assert drawn.keys() == waiting.FIGURES.keys()
    assert all(text.startswith("<svg") for text in drawn.values())
