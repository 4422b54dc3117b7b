"""Writes the results of a sweep: each combination of values over its trials, as tables, charts and a page.

The settings come from the command that ran the cells; everything else is read from their run folders.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.inputs.results import read_summary
from analysis.inputs.run_folder import Run
from analysis.metrics.percentiles import NOT_WITHIN, SHARES
from analysis.report import interval_charts, pages
from analysis.report.drawing import Drawing
from analysis.stats.bootstrap import LOST, STATISTICS
from analysis.stats.comparison import WHOLE, figures, side
from analysis.stats.trials import levels_of

CELLS, POINTS, RESULT, REPORT = "cells.parquet", "points.parquet", "result.json", "report.html"
DATASET = "dataset"  # the metrics of all runs
MOST_PANELS = 3  # levels in a chart, the most urgent ones
MOST_WAYS = 12  # series in a chart; a reader cannot distinguish more
OF_LEVEL = ("expected", "delivered", "lost", "p50", "p95", "p99", "max", "hops_mean", "hops_max")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z/%]*)\Z")


@dataclass(frozen=True, slots=True)
class CellRun:
    """A measured cell: its settings (path -> value), trial, seed and run."""

    settings: Mapping[str, str]
    trial: int
    seed: int
    run: Run


@dataclass(frozen=True, slots=True)
class Swept:
    """A path that is swept: a text column, and a numeric one beside it if its values are numbers of one quantity."""

    path: str
    column: str | None = None  # of the numbers
    numbers: Mapping[str, float | None] = field(default_factory=dict)  # value -> number

    @property
    def fields(self) -> list[tuple[str, pa.DataType]]:
        text = (self.path, pa.string())
        return [text] if self.column is None else [text, (self.column, pa.float64())]

    def row(self, settings: Mapping[str, str]) -> dict[str, str | float | None]:
        """The columns of a combination."""
        value = settings[self.path]
        number = {} if self.column is None else {self.column: self.numbers[value]}
        return {self.path: value, **number}


def swept_row(swept: Sequence[Swept], settings: Mapping[str, str]) -> dict[str, Any]:
    """The columns of all swept paths."""
    return {name: value for one in swept for name, value in one.row(settings).items()}


def dataset_columns(
    swept: Sequence[Swept], settings: Mapping[str, str]
) -> dict[str, "pa.Scalar[Any]"]:
    """The same with their types, for a dataset of the metrics."""
    row = swept_row(swept, settings)
    return {name: pa.scalar(row[name], kind) for one in swept for name, kind in one.fields}


def result_of(
    sheet: Mapping[str, Any], cells: Sequence[CellRun], failed: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The result of a sweep: `points`, one for each combination, in the order of the cells."""
    combined: dict[tuple[tuple[str, str], ...], list[CellRun]] = {}
    for cell in cells:
        combined.setdefault(tuple(cell.settings.items()), []).append(cell)
    return {
        **sheet,
        "points": [_point(dict(settings), of_it) for settings, of_it in combined.items()],
        "failed": list(failed),
    }


def _point(settings: dict[str, str], cells: Sequence[CellRun]) -> dict[str, Any]:
    runs = [cell.run for cell in cells]
    numbers = figures(side(*runs))
    verdicts = [read_summary(run).get("expectations", []) for run in runs]
    return {
        "settings": settings,
        "runs": [run.name for run in runs],
        "seeds": [cell.seed for cell in cells],
        "levels": levels_of(runs),
        **{name: numbers[name] for name in (*WHOLE, "expected", "delivered", "lost")},
        "met": sum(all(one["ok"] for one in of_run) for of_run in verdicts)
        if any(verdicts)
        else None,
        "unmet": _unmet(verdicts),
        "low_fidelity": sum(not read_summary(run)["fidelity"]["ok"] for run in runs),
    }


def _unmet(verdicts: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, int]:
    """Expectation -> number of trials in which it was not met."""
    found: dict[str, int] = {}
    for of_run in verdicts:
        for one in of_run:
            if not one["ok"]:
                found[one["expect"]] = found.get(one["expect"], 0) + 1
    return found


def write_result(
    folder: Path,
    result: Mapping[str, Any],
    cells: Sequence[CellRun],
    swept: Sequence[Swept],
) -> Path:
    """Write result.json, a table of cells, a table of points, and the page; returns the path of the page."""
    unfinished = folder / f".{RESULT}.{os.getpid()}"
    unfinished.write_text(json.dumps(result, indent=2) + "\n")
    unfinished.replace(folder / RESULT)
    _write(folder / CELLS, cell_rows(cells, swept), _cell_schema(swept))
    _write(folder / POINTS, point_rows(result, swept), _point_schema(swept))
    return pages.write(folder / REPORT, render(result))


def _write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    pq.write_table(pa.Table.from_pylist(rows, schema), unfinished, compression="zstd")
    unfinished.replace(path)


def cell_rows(cells: Sequence[CellRun], swept: Sequence[Swept]) -> list[dict[str, Any]]:
    """A row for each cell and level."""
    rows = []
    for cell in cells:
        numbers = figures(side(cell.run))
        about = {"run": cell.run.name, "trial": cell.trial, "seed": cell.seed}
        whole = {name: numbers[name] for name in WHOLE}
        rows += [
            {
                **swept_row(swept, cell.settings),
                **about,
                "priority": int(level),
                **of_level,
                **{f"{name}_{NOT_WITHIN}": of_level[NOT_WITHIN].get(name) for name in SHARES},
                **whole,
            }
            for level, of_level in numbers["levels"].items()
        ]
    return rows


def _cell_schema(swept: Sequence[Swept]) -> pa.Schema:
    counts = ("expected", "delivered", "lost")
    return pa.schema(
        [
            *(column for one in swept for column in one.fields),
            ("run", pa.string()),
            ("trial", pa.int32()),
            ("seed", pa.int64()),
            ("priority", pa.int32()),
            *((name, pa.int64() if name in counts else pa.float64()) for name in OF_LEVEL),
            *((f"{name}_{NOT_WITHIN}", pa.float64()) for name in SHARES),
            *((name, pa.float64()) for name in WHOLE),
        ]
    )


def point_rows(result: Mapping[str, Any], swept: Sequence[Swept]) -> list[dict[str, Any]]:
    """A row for each combination, level and statistic."""
    return [
        {
            **swept_row(swept, point["settings"]),
            "trials": len(point["runs"]),
            "priority": int(level),
            "expected": numbers["expected"],
            "statistic": name,
            **numbers[name],
        }
        for point in result["points"]
        for level, numbers in point["levels"].items()
        for name in (*STATISTICS, LOST)
    ]


def _point_schema(swept: Sequence[Swept]) -> pa.Schema:
    return pa.schema(
        [
            *(column for one in swept for column in one.fields),
            ("trials", pa.int32()),
            ("priority", pa.int32()),
            ("expected", pa.int64()),
            ("statistic", pa.string()),
            *((name, pa.float64()) for name in ("value", "low", "high", NOT_WITHIN)),
        ]
    )


def render(result: Mapping[str, Any]) -> str:
    """The page's HTML."""
    varied = [axis for axis in result["axes"] if len(axis["values"]) > 1]
    fixed = [axis for axis in result["axes"] if len(axis["values"]) == 1]
    return pages.render(
        "sweep.html",
        result=result,
        varied=varied,
        fixed=fixed,
        levels=_levels(result["points"]),
        beyond=_beyond(result["points"]),
        drawings=drawings(result),
    )


def _levels(points: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({level for point in points for level in point["levels"]}, reverse=True)


def _beyond(points: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a chart has points that were not reached."""
    return any(
        level.get(name, {}).get(NOT_WITHIN) is not None
        for point in points
        for level in point["levels"].values()
        for name in ("p50", "p95")
    )


def drawings(result: Mapping[str, Any]) -> dict[str, Drawing]:
    """Charts by title: delays and losses over the swept values, with intervals over trials."""
    varied = [axis for axis in result["axes"] if len(axis["values"]) > 1]
    if not varied or not result["points"]:
        return {}
    along = next((axis for axis in varied if _unit(axis["values"]) is not None), None)
    across = along or varied[0]
    others = [axis["path"] for axis in varied if axis is not across]
    levels = _levels(result["points"])[:MOST_PANELS]
    found = {}
    for statistic, title, what in (
        ("p50", "Median delay", "delay, s"),
        ("p95", "95 % of the delay", "delay, s"),
        (LOST, "Lost", "share of deliveries"),
    ):
        rows = _chart_rows(result["points"], statistic, across["path"], others, levels)
        if not any(row["mean"] for row in rows) or len({row["way"] for row in rows}) > MOST_WAYS:
            continue
        panels = [f"level {level}" for level in levels]
        unit = _unit(across["values"]) if along else None
        axes = (f"{across['path']}{f', {unit}' if unit else ''}", what)
        label = f"{title} over {across['path']}"
        if along:
            numbers = [{**row, "at": _number(row["at"])} for row in rows]
            found[title] = interval_charts.lines(numbers, panels, axes, statistic, label)
        else:
            found[title] = interval_charts.dots(rows, panels, axes, statistic, label)
    return found


def _chart_rows(
    points: Sequence[Mapping[str, Any]],
    statistic: str,
    across: str,
    others: Sequence[str],
    levels: Sequence[str],
) -> list[dict[str, Any]]:
    """A point for each combination and level; `beyond` at its bound, if the percentile was not reached."""
    rows = []
    for point in points:
        way = ", ".join(point["settings"][path] for path in others) or "all"
        for level in levels:
            found = point["levels"].get(level, {}).get(statistic)
            if found is None:
                continue
            place = {"way": way, "at": point["settings"][across], "panel": f"level {level}"}
            bound = found.get(NOT_WITHIN)
            if found["value"] is not None:
                ends = {"low": found["low"], "high": found["high"]}
                rows.append({**place, "mean": found["value"], **ends})
            elif bound is not None:
                rows.append({**place, "mean": bound, "beyond": True})
    return rows


def _unit(values: Sequence[str]) -> str | None:
    """The common unit of all values; None if they are not numbers of one unit."""
    units = {match[2] if (match := _NUMBER.match(value)) else None for value in values}
    return next(iter(units)) if len(units) == 1 else None


def _number(value: str) -> float:
    match = _NUMBER.match(value)
    assert match is not None  # `_unit` has seen to it
    return float(match[1])
