"""The experiment on stopping: messages over time while subscribers leave and return. Figure, checks and chart."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers.banno2013.figures import SCRIBE, SG
from analysis.papers.methods import METHODS
from analysis.papers.reproduction import NOT_MEASURED, check
from analysis.papers.tables import means, path_of, read_table
from analysis.report import interval_charts
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]
NAME = "stopping"
KINDS = ("publication", "topic control", "control")
OF_RUN = ("method", "publishers", "nodes")
STATEMENT = {
    SG: "when nobody subscribes, SG-TBPS falls to no messages at all",
    SCRIBE: "Scribe never does: its publishers send to the root always",
}
MESSAGE_NAMES = {SG: "stop, go and the like", SCRIBE: "joins, leaves, renewals"}
SOON_MS = 300  # time until a leave or a join has reached all publishers
NOBODY_MS = ((2_000, 3_000), (6_000, 7_000))
ALL_MS, ALL_AGAIN_MS = (0, 1_000), (4_000, 5_000)
AS_MANY = 0.1


def read(spark: "SparkSession", folder: Path) -> tuple[list[Row], list[Row]]:
    """Messages and totals; empty if the folder is older than this experiment."""
    if not path_of(folder, NAME).exists():
        return [], []
    moments = means(read_table(spark, folder, NAME), (*OF_RUN, "kind", "t_ms"), ("messages",))
    values = ("publications", "withheld", "expected", "lost")
    totals = means(read_table(spark, folder, "stopping_totals"), OF_RUN, values)
    return list(moments), list(totals)


def figure(rows: Sequence[Row]) -> dict[str, Any]:
    """A cell for each run and moment; kinds of messages that were not measured are null."""
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        place = (*(row[name] for name in OF_RUN), row["t_ms"])
        cell = cells.setdefault(
            place,
            {
                **dict(zip((*OF_RUN, "t_ms"), place, strict=True)),
                "paper": {"statement": STATEMENT[row["method"]]},
                "ours": dict.fromkeys(KINDS),
            },
        )
        cell["ours"][row["kind"]] = row["messages"]
    title = "Messages in 50 ms while subscribers leave, come back and leave again"
    return {"figure": NAME, "title": title, "cells": [cells[place] for place in sorted(cells)]}


def checks(rows: Sequence[Row], totals: Sequence[Row]) -> list[dict[str, Any]]:
    """Checks: a sentence with the numbers behind it."""
    return [
        _each_run(
            "SG-TBPS falls to 0 publications when nobody subscribes, and goes on when all are back",
            [row for row in rows if row["method"] == SG],
            lambda all_there, nobody, back: not nobody and back >= (1 - AS_MANY) * all_there,
        ),
        _each_run(
            "Scribe sends also when nobody subscribes",
            [row for row in rows if row["method"] == SCRIBE],
            lambda all_there, nobody, back: nobody > 0,
        ),
        *(
            _lost([row for row in totals if row["method"] == method], method)
            for method in STATEMENT
        ),
    ]


def _each_run(
    name: str, rows: Sequence[Row], holds: Callable[[float, float, float], bool]
) -> dict[str, Any]:
    runs: dict[int, list[Row]] = {}
    for row in rows:
        if row["kind"] == KINDS[0]:
            runs.setdefault(row["publishers"], []).append(row)
    if not runs:
        return check(name, None, NOT_MEASURED)
    counts = {
        publishers: (
            _sent(own, [ALL_MS]),
            _sent(own, NOBODY_MS),
            _sent(own, [ALL_AGAIN_MS]),
        )
        for publishers, own in sorted(runs.items())
    }
    text = "; ".join(
        f"{publishers} publishers: {first:,.0f} with all subscribers, {none:,.0f} without, {back:,.0f} with all again"
        for publishers, (first, none, back) in counts.items()
    )
    return check(name, all(holds(*count) for count in counts.values()), text)


def _sent(rows: Iterable[Row], times: Iterable[tuple[int, int]]) -> float:
    """Messages in these times, without the beginning in which a change propagates."""
    within = [(begin + SOON_MS, end) for begin, end in times]
    moments = [row for row in rows if any(a <= row["t_ms"] < b for a, b in within)]
    return float(sum(row["messages"]["mean"] for row in moments))


def _lost(totals: Sequence[Row], method: str) -> dict[str, Any]:
    text = "loses nothing: who was confirmed before a publication and stays gets it"
    name = f"{METHODS[method]} {text}"
    if not totals:
        return check(name, None, NOT_MEASURED)
    expected = sum(row["expected"]["mean"] for row in totals)
    lost = sum(row["lost"]["mean"] for row in totals)
    return check(name, not lost, f"{lost:,.0f} of {expected:,.0f} deliveries")


def drawing(cells: Sequence[Row], label: str) -> Drawing:
    """Publications and control messages; a panel for each number of publishers."""
    shown = [(kind, method) for kind in KINDS[:2] for method in STATEMENT]
    points = [
        {
            "way": METHODS[method]
            if kind == KINDS[0]
            else f"{METHODS[method]}: {MESSAGE_NAMES[method]}",
            "at": cell["t_ms"],
            "panel": _panel(cell),
            **{side: cell["ours"][kind][side] for side in ("mean", "low", "high")},
        }
        for kind, method in shown
        for cell in cells
        if cell["method"] == method and cell["ours"][kind] is not None
    ]
    panels = list(dict.fromkeys(_panel(cell) for cell in sorted(cells, key=_publishers)))
    axes = ("time in ms", "messages in 50 ms")
    return interval_charts.lines(points, panels, axes, NAME, label, with_zero=True)


def _publishers(cell: Row) -> int:
    return -int(cell["publishers"])


def _panel(cell: Row) -> str:
    return f"{cell['publishers']} publishers, {cell['nodes']:,} nodes"
