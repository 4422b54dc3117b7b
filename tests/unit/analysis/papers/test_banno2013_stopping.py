"""The figure and checks of the experiment on stopping, from rows with known values."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from analysis.papers.banno2013 import stopping
from analysis.papers.banno2013.paper import drawings

Row = dict[str, Any]


def spread(value: float) -> Row:
    return {"mean": value, "low": None, "high": None, "trials": 1}


def course(t_ms: int) -> float:
    nobody = any(begin + 100 <= t_ms < end for begin, end in stopping.NOBODY_MS)
    return 0.0 if nobody else 500.0


def rows() -> Iterator[Row]:
    for publishers in (10, 100):
        for t_ms in range(0, 7_000, 50):
            head = {"publishers": publishers, "nodes": 1_000, "t_ms": t_ms}
            sg = {**head, "method": "sg-tbps"}
            yield {**sg, "kind": "publication", "messages": spread(course(t_ms))}
            yield {**sg, "kind": "topic control", "messages": spread(7.0 if t_ms == 2_050 else 0.0)}
            yield {**sg, "kind": "control", "messages": spread(60.0)}
            scribe = {**head, "method": "scribe"}
            sent = spread(course(t_ms) * 4 + 25)
            yield {**scribe, "kind": "publication", "messages": sent}
            yield {**scribe, "kind": "topic control", "messages": spread(9.0)}


def totals(loser: str | None = None) -> list[Row]:
    return [
        {
            "method": method,
            "publishers": 10,
            "nodes": 1_000,
            "expected": spread(900.0),
            "lost": spread(float(method == loser)),
        }
        for method in ("sg-tbps", "scribe")
    ]


def verdicts(change: Callable[[Row], Row] = dict, loser: str | None = None) -> list[bool | None]:
    return [c["ok"] for c in stopping.checks([change(row) for row in rows()], totals(loser))]


def during(method: str, times: tuple[int, int], value: float) -> Callable[[Row], Row]:
    def change(row: Row) -> Row:
        hit = row["method"] == method and times[0] <= row["t_ms"] < times[1]
        return {**row, "messages": spread(value)} if hit and row["kind"] == "publication" else row

    return change


def test_all_checks_hold_where_all_is_as_it_should_be() -> None:
    assert verdicts() == [True] * 4


@pytest.mark.parametrize(
    ("change", "which"),
    [
        (during("sg-tbps", (2_900, 2_950), 1.0), 0),
        (during("sg-tbps", (4_000, 5_000), 400.0), 0),
        (during("scribe", (2_000, 7_000), 0.0), 1),
    ],
    ids=["one more is sent", "not all go on", "Scribe stops"],
)
def test_a_check_fails_when_its_numbers_do(change: Callable[[Row], Row], which: int) -> None:
    expected: list[bool | None] = [True] * 4
    expected[which] = False
    assert verdicts(change) == expected


@pytest.mark.parametrize(("loser", "which"), [("sg-tbps", 2), ("scribe", 3)])
def test_a_lost_publication_is_reported(loser: str, which: int) -> None:
    expected: list[bool | None] = [True] * 4
    expected[which] = False
    assert verdicts(loser=loser) == expected


def test_checks_without_measurements_have_no_verdict() -> None:
    assert [check["ok"] for check in stopping.checks([], [])] == [None] * 4


def test_the_figure_has_a_cell_for_each_moment_and_a_chart_with_a_place_for_0() -> None:
    found = stopping.figure(list(rows()))
    assert json.loads(json.dumps(found)) == found
    assert len(found["cells"]) == 2 * 2 * 140
    scribe = next(cell for cell in found["cells"] if cell["method"] == "scribe")
    assert scribe["ours"]["control"] is None
    text = str(drawings([found])["stopping"])
    assert text.count("<svg") == 1
    assert "SG-TBPS: stop, go and the like" in text
    assert "Scribe: joins, leaves, renewals" in text
    assert "100 publishers, 1,000 nodes" in text
