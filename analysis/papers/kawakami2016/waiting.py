"""What the paper leaves open: how long a broker should wait for others' readings. Figures, checks and charts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers import charts
from analysis.papers.judging import NOT_MEASURED, check
from analysis.papers.spread import means
from analysis.papers.tables import path_of, read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]
TABLE = "waiting"
OF_CELL = ("sites", "wait_ms")
SECONDS = {
    "delay_s": "delay, mean",
    "delay_p95_s": "delay of 95 %",
    "age_s": "age of a gauge's newest reading, mean",
}
MESSAGES = {"messages": "messages between brokers for a reading"}
FIGURES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "waiting": ("Delay and age of readings by how long brokers wait", "seconds", SECONDS),
    "waiting-messages": ("Messages for a reading by how long brokers wait", "messages", MESSAGES),
}
ONLY_PANEL = ""


def read(spark: "SparkSession", folder: Path) -> list[Row]:
    """Means over trials; nothing if the folder is from before there was this experiment."""
    if not path_of(folder, TABLE).exists():
        return []
    return list(means(read_table(spark, folder, TABLE), OF_CELL, (*SECONDS, *MESSAGES, "missing")))


def figures(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Both, as the paper has none of them."""
    return [
        {
            "figure": name,
            "title": title,
            "cells": [
                {
                    **{place: row[place] for place in OF_CELL},
                    "paper": None,
                    "ours": {value: row[value] for value in values},
                }
                for row in sorted(rows, key=lambda row: tuple(row[place] for place in OF_CELL))
            ],
        }
        for name, (title, _, values) in FIGURES.items()
    ]


def checks(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Each as one sentence with the numbers behind it."""
    names = (
        "every reading comes, however long brokers wait",
        "waiting costs time: readings are later with the longest wait than without",
        "waiting saves messages: fewer with the longest wait than without",
    )
    if not rows:
        return [check(name, None, NOT_MEASURED) for name in names]
    first, *_, last = sorted(rows, key=lambda row: int(row["wait_ms"]))
    lost = sum(row["missing"]["mean"] for row in rows)
    return [
        check(names[0], not lost, f"{lost:g} missing"),
        _changed(names[1], first, last, "delay_s", "s", 1),
        _changed(names[2], first, last, "messages", "messages", -1),
    ]


def _changed(name: str, first: Row, last: Row, value: str, unit: str, sign: int) -> dict[str, Any]:
    before, after = first[value]["mean"], last[value]["mean"]
    told = (
        f"{before:.3g} {unit} at {first['wait_ms']} ms, {after:.3g} {unit} at {last['wait_ms']} ms"
    )
    return check(name, sign * (after - before) > 0, told)


def drawing(name: str, cells: Sequence[Row], label: str) -> dict[str, str]:
    """The chart of one of them, by its name; none if nothing was measured."""
    _, axis, values = FIGURES[name]
    points = [
        {
            "way": way,
            "at": cell["wait_ms"],
            "panel": ONLY_PANEL,
            **{side: cell["ours"][value].get(side) for side in ("mean", "low", "high")},
        }
        for value, way in values.items()
        for cell in cells
    ]
    if not points:
        return {}
    axes = ("wait at most, ms", axis)
    return {name: charts.lines(points, [ONLY_PANEL], axes, name, label)}
