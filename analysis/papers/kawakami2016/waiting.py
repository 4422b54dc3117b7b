"""An addition to the paper: how long a broker should wait for other readings. Figures, checks and charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers.kawakami2016.freshness import (
    LABS,
    OF_LAB,
    REAL,
    SIMULATED,
    TWIN,
    trials,
    with_twins,
)
from analysis.papers.kawakami2016.real_labs import read_labs
from analysis.papers.reproduction import NOT_MEASURED, check
from analysis.papers.tables import means, path_of, read_table
from analysis.report import interval_charts
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]
TABLE, READINGS = "waiting", "waiting_readings"
MEASURED = {  # and how a chart names it
    "delay_s": "",
    "delay_p50_s": "delay, median, s",
    "delay_p95_s": "delay of 95 %, s",
    "age_s": "age of the newest reading, s",
    "messages": "messages for a reading",
    "bytes": "bytes for a reading",
    "line_bytes": "all bytes on the lines, for a reading",
}
FIGURES: Mapping[str, tuple[str, Sequence[str]]] = {
    "waiting": (
        "Delay and age of readings by how long brokers wait",
        ("delay_s", "delay_p50_s", "delay_p95_s", "age_s"),
    ),
    "waiting-traffic": (
        "What a reading costs by how long brokers wait",
        ("messages", "bytes", "line_bytes"),
    ),
}
ACROSS = "wait at most, s"
# Largest difference between real and simulated labs; pauses of the machine matter most for short delays.
AGREE_SHARE, AGREE_S = 0.15, 0.05
NAMES = (
    "every reading comes, however long brokers wait",
    "waiting costs time: readings are later with the longest wait than without",
    "waiting saves messages: fewer with the longest wait than without",
    "on real lines, too: later with the longest wait than without, and fewer bytes",
    f"median delay and age on real lines are within {AGREE_SHARE:.0%} or {AGREE_S:g} s of those simulated",
)


@dataclass(frozen=True, slots=True)
class Waited:
    """Means over trials, and the runs of real labs, or why there are none."""

    rows: Sequence[Row] = ()
    runs: Sequence[Row] = ()
    without: str | None = None


def read(spark: "SparkSession", folder: Path) -> Waited:
    """Read the tables; empty if the folder is older than this experiment."""
    if not path_of(folder, READINGS).exists():
        return Waited()
    labs = read_labs(spark, folder)
    found = trials(
        [*_rows(read_table(spark, folder, READINGS)), *labs.readings],
        [*_rows(read_table(spark, folder, TABLE)), *labs.totals],
    )
    averaged = means(spark.createDataFrame(with_twins(found)), OF_LAB, (*MEASURED, "missing"))
    return Waited(averaged, labs.runs, labs.without)


def _rows(frame: "DataFrame") -> list[Row]:
    return [row.asDict() for row in frame.collect()]


def figures(waited: Waited) -> list[dict[str, Any]]:
    """Both figures; the paper has neither."""
    rows = sorted(
        waited.rows, key=lambda row: (LABS.index(row["lab"]), row["sites"], row["wait_ms"])
    )
    note = f"Simulated only: {waited.without}." if waited.without else None
    return [
        {
            "figure": name,
            "title": title,
            "note": note,
            "cells": [
                {
                    **{place: row[place] for place in OF_LAB},
                    "paper": None,
                    "ours": {value: row[value] for value in values},
                }
                for row in rows
            ],
        }
        for name, (title, values) in FIGURES.items()
    ]


def checks(waited: Waited) -> list[dict[str, Any]]:
    """Checks: a sentence with the numbers behind it."""
    every, later, fewer, real, agree = NAMES
    if not waited.rows:
        return [check(name, None, NOT_MEASURED) for name in NAMES]
    lost = sum(row["missing"]["mean"] for row in waited.rows)
    simulated = _ends(waited.rows, SIMULATED)
    return [
        check(every, not lost, f"{lost:g} missing"),
        check(later, *_changed(simulated, "delay_s", "s", 1)),
        check(fewer, *_changed(simulated, "messages", "messages", -1)),
        _on_real_links(real, waited),
        _agreement(agree, waited),
    ]


def _ends(rows: Sequence[Row], lab: str) -> tuple[Row, Row]:
    """The rows without waiting, and with the longest wait."""
    found = sorted((row for row in rows if row["lab"] == lab), key=lambda row: int(row["wait_ms"]))
    return found[0], found[-1]


def _changed(ends: tuple[Row, Row], value: str, unit: str, sign: int) -> tuple[bool, str]:
    (first, last), (before, after) = ends, (row[value]["mean"] for row in ends)
    sentence = (
        f"{before:.3g} {unit} at {first['wait_ms']} ms, {after:.3g} {unit} at {last['wait_ms']} ms"
    )
    return sign * (after - before) > 0, sentence


def _on_real_links(name: str, waited: Waited) -> dict[str, Any]:
    if not any(row["lab"] == REAL for row in waited.rows):
        return check(name, None, waited.without or NOT_MEASURED)
    ends = _ends(waited.rows, REAL)
    later, delays = _changed(ends, "delay_s", "s", 1)
    fewer, sizes = _changed(ends, "bytes", "bytes", -1)
    return check(name, later and fewer, f"{delays}; {sizes}")


def _agreement(name: str, waited: Waited) -> dict[str, Any]:
    """Compare real and simulated labs; not judged if the machine did not keep up."""
    by_lab = {(row["lab"], row["sites"], row["wait_ms"]): row for row in waited.rows}
    found = []
    for (lab, sites, wait_ms), twin in by_lab.items():
        real = by_lab.get((REAL, sites, wait_ms))
        if lab == TWIN and real is not None:
            for value, name_of in (("delay_p50_s", "delay"), ("age_s", "age")):
                ours, theirs = real[value]["mean"], twin[value]["mean"]
                limit = max(AGREE_SHARE * theirs, AGREE_S)
                sentence = f"{name_of} {ours:.3g} s for {theirs:.3g} s at {wait_ms} ms"
                found.append((abs(ours - theirs) / limit, sentence))
    if not found:
        return check(name, None, waited.without or NOT_MEASURED)
    right = sum(far <= 1 for far, _ in found)
    text = f"{right} of {len(found)}; furthest apart: {max(found)[1]}"
    busy = [run["run"] for run in waited.runs if not _kept_up(run)]
    if right < len(found) and busy:
        return check(name, None, f"{text}; not judged: the machine did not keep up in {busy[0]}")
    return check(name, right == len(found), text)


def _kept_up(run: Row) -> bool:
    machine = run["fidelity"]["machine"]
    return machine is None or bool(machine["ok"])


def drawing(name: str, cells: Sequence[Row], label: str) -> dict[str, Drawing]:
    """The chart of a figure, by its name; empty if nothing was measured."""
    _, values = FIGURES[name]
    shown = {value: MEASURED[value] for value in values if MEASURED[value]}
    points = [
        {
            "way": way,
            "at": cell["wait_ms"] / 1000,
            "panel": panel,
            **{side: cell["ours"][value].get(side) for side in ("mean", "low", "high")},
        }
        for value, panel in shown.items()
        for lab, way in _ways(cells).items()
        for cell in cells
        if cell["lab"] == lab
    ]
    if not points:
        return {}
    return {name: interval_charts.apart(points, dict.fromkeys(shown.values(), ACROSS), name, label)}


def _ways(cells: Sequence[Row]) -> dict[str, str]:
    """The labs as a chart names them; with one seed only the twins are shown."""
    seeds = max(
        (next(iter(cell["ours"].values()))["trials"] for cell in cells if cell["lab"] == SIMULATED),
        default=0,
    )
    present = {cell["lab"] for cell in cells}
    if seeds == 1:
        present -= {SIMULATED} if TWIN in present else {TWIN}
    titles = {
        REAL: "real lines",
        TWIN: "simulated, same seed",
        SIMULATED: f"simulated, {seeds} seeds" if seeds > 1 else "simulated",
    }
    return {lab: titles[lab] for lab in LABS if lab in present}
