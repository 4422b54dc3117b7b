"""Urgent and routine topics that share a node's table: figure, checks and chart. An addition to the thesis."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers.kita2025.figures import ATM, HIGHEST, PATM
from analysis.papers.methods import METHODS, points
from analysis.papers.reproduction import all_hold
from analysis.papers.tables import means, path_of, read_table
from analysis.report import interval_charts
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]
NAME = "mixed"
TITLE = "Ours, not in the thesis: urgent and routine topics share a table of 60 entries"
OF_CELL = ("subscribers", "nodes", "table_size", "topics_each", "method", "priority")
VALUES = ("path", "one_hop")
SPARE_ENTRIES_UNTIL = 80  # subscribers: with more, neighbours fill the table
NO_WORSE = 0.005  # of the path: a smaller difference is chance


def read(spark: "SparkSession", folder: Path) -> list[Row]:
    """Read the table; empty if the folder is older than this experiment."""
    if not path_of(folder, NAME).exists():
        return []
    return list(means(read_table(spark, folder, NAME), OF_CELL, VALUES))


def figure(rows: Sequence[Row]) -> dict[str, Any]:
    """A cell for each method, priority and number of subscribers."""
    cells = [
        {
            **{name: row[name] for name in OF_CELL},
            "paper": None,
            "ours": {value: row[value] for value in VALUES},
        }
        for row in rows
    ]
    return {"figure": NAME, "title": TITLE, "cells": cells}


def checks(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Checks of the benefit of priorities, and of their cost."""
    whose = f"ours: where topics of up to {SPARE_ENTRIES_UNTIL} subscribers share a table,"
    return [
        all_hold(
            f"{whose} paths of urgent ones are shorter by PATM- than by ATM-TBPS",
            _of_atm(rows, urgent=True),
            lambda ratio: ratio < 1,
        ),
        all_hold(
            f"{whose} routine ones pay for it: their paths are not shorter by PATM-TBPS",
            _of_atm(rows, urgent=False),
            lambda ratio: ratio >= 1 - NO_WORSE,
            worst="smallest",
        ),
    ]


def _of_atm(rows: Sequence[Row], urgent: bool) -> list[tuple[float, str]]:
    """PATM-TBPS's path divided by ATM-TBPS's, by number of subscribers."""
    paths = {
        (row["method"], row["subscribers"]): row["path"]["mean"]
        for row in rows
        if _urgent(row) == urgent and row["subscribers"] <= SPARE_ENTRIES_UNTIL
    }
    return [
        (path / paths[ATM, subscribers], f"{subscribers} subscribers")
        for (method, subscribers), path in paths.items()
        if method == PATM and (ATM, subscribers) in paths
    ]


def _urgent(row: Row) -> bool:
    return bool(row["priority"] == HIGHEST)


def way(cell: Row) -> str:
    """The name of a series: method, and kind of topics."""
    return f"{METHODS[cell['method']]}, {'urgent' if _urgent(cell) else 'routine'}"


def drawing(cells: Sequence[Row], label: str) -> Drawing:
    """Hops by number of subscribers."""
    found = points(
        cells,
        "path",
        at=lambda cell: cell["subscribers"],
        panel=lambda cell: f"{cell['topics_each']} topics a publisher, one of them urgent",
        name=way,
    )
    panels = list(dict.fromkeys(point["panel"] for point in found))
    axes = ("subscribers of a topic", "hops, mean")
    return interval_charts.lines(found, panels, axes, NAME, label, doubling=True)
