"""Writes result.json and report.html of a reproduction from the Parquet tables of its cells."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from analysis.papers.methods import OF_WAY, title
from analysis.papers.tables import read_sheet
from analysis.report import pages
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The page: checks first, then each figure; no scripts, no external resources.


Figure = Mapping[str, Any]
SPREAD = {"mean", "low", "high", "trials"}


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The texts of a paper's page."""

    title: str
    heading: str
    notes: Sequence[str]


def write_page(
    folder: Path, result: Mapping[str, Any], texts: PageTexts, drawings: Mapping[str, Drawing]
) -> Path:
    """Write the page; returns its path. `drawings`: the charts by name of their figure."""
    return pages.write(folder / "report.html", render(result, texts, drawings))


def render(result: Mapping[str, Any], texts: PageTexts, drawings: Mapping[str, Drawing]) -> str:
    """The page's HTML."""
    figures = [
        {
            **figure,
            "note": figure.get("note"),
            "drawing": drawings.get(figure["figure"]),
            "table": _table(figure["cells"]),
            "patterns": _patterns(figure["cells"]),
            "said": list(dict.fromkeys(filter(None, map(_statement, figure["cells"])))),
        }
        for figure in result["figures"]
        if figure["cells"]
    ]
    return pages.render("cells.html", result=result, texts=texts, figures=figures)


def _patterns(cells: Sequence[Mapping[str, Any]]) -> str:
    """The meaning of pattern letters, if there are any."""
    known = {
        cell["pattern"]: f"{cell['pattern']} {cell['publishers']}, {cell['subscribers']}"
        for cell in cells
        if "pattern" in cell
    }
    return " · ".join(known[pattern] for pattern in sorted(known))


def _statement(cell: Mapping[str, Any]) -> str | None:
    paper = cell["paper"]
    return paper.get("statement") if paper else None


def _table(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Headers and rows as text; the first columns identify the cell."""
    named = [name for name in cells[0] if name not in (*OF_WAY, "paper", "ours")]
    way = any(name in cells[0] for name in OF_WAY)
    values = list(cells[0]["ours"])
    return {
        "heads": [*(["way"] if way else []), *named, *values],
        "text_columns": int(way),
        "rows": [
            [
                *([title(cell)] if way else []),
                *(_text(cell[name]) for name in named),
                *(_text(cell["ours"][value]) for value in values),
            ]
            for cell in cells
        ],
    }


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping) and set(value) == SPREAD:
        if value["low"] is None:
            return _text(value["mean"])
        return f"{_text(value['mean'])} ± {value['high'] - value['mean']:.2g}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


Progress = Callable[[str, int, int], None]
MEASURING, DRAWING = "measuring the cells", "drawing the figures"


@dataclass(frozen=True, slots=True)
class Results:
    """The figures and checks of a paper."""

    figures: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict)  # of result.json, of this paper alone


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper's own part of the analysis."""

    name: str
    texts: PageTexts
    measure: Callable[["SparkSession", Path], Results]
    drawings: Callable[[list[dict[str, Any]]], Mapping[str, Drawing]]


def measure_cells(
    spark: "SparkSession", paper: Paper, folder: Path, progress: Progress
) -> dict[str, Any]:
    """Write result.json and report.html into the folder; returns what result.json holds."""
    sheet = read_sheet(folder, paper.name)
    progress(MEASURING, 0, 1)
    found = paper.measure(spark, folder)
    progress(MEASURING, 1, 1)
    result = {**sheet, **found.more, "figures": found.figures, "checks": found.checks}
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    progress(DRAWING, 0, 1)
    write_page(folder, result, paper.texts, paper.drawings(found.figures))
    progress(DRAWING, 1, 1)
    return result


# Checks: a sentence, whether it holds (null: not measured), and the numbers behind it.


NOT_MEASURED = "not measured"


def check(name: str, ok: bool | None, found: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "found": found}


def all_hold(
    name: str,
    values: Sequence[tuple[float, str]],
    holds: Callable[[float], bool],
    worst: Literal["largest", "smallest"] = "largest",
) -> dict[str, Any]:
    """Check that all values hold; reports the worst one. `values`: value and place."""
    if not values:
        return check(name, None, NOT_MEASURED)
    extreme, where = max(values) if worst == "largest" else min(values)
    right = sum(holds(value) for value, _ in values)
    return check(
        name, right == len(values), f"{right} of {len(values)}; {worst} {extreme:.3g} ({where})"
    )
