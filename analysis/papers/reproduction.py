"""From the Parquet of a reproduction's cells to result.json and report.html."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers.page import Words, write_page
from analysis.papers.tables import read_sheet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Told = Callable[[str, int, int], None]
MEASURING, DRAWING = "measuring the cells", "drawing the figures"


@dataclass(frozen=True, slots=True)
class Findings:
    """What a paper's own part of the analysis makes of the tables."""

    figures: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    more: Mapping[str, Any] = field(default_factory=dict)  # of result.json, of this paper alone


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper's own part of the analysis."""

    name: str
    words: Words
    measure: Callable[["SparkSession", Path], Findings]
    drawings: Callable[[list[dict[str, Any]]], Mapping[str, str]]


def measure_cells(spark: "SparkSession", paper: Paper, folder: Path, told: Told) -> dict[str, Any]:
    """Write result.json and report.html into the folder; returns what result.json holds."""
    sheet = read_sheet(folder, paper.name)
    told(MEASURING, 0, 1)
    found = paper.measure(spark, folder)
    told(MEASURING, 1, 1)
    result = {**sheet, **found.more, "figures": found.figures, "checks": found.checks}
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    told(DRAWING, 0, 1)
    write_page(folder, result, paper.words, paper.drawings(found.figures))
    told(DRAWING, 1, 1)
    return result
