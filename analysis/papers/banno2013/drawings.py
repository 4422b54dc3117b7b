"""The figures of Banno 2013 as charts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.papers import charts
from analysis.papers.banno2013 import stopping
from analysis.papers.banno2013.figures import LOADS
from analysis.papers.points import PATTERN, by_pattern, nodes_panels
from analysis.papers.ways import METHODS

Figure = Mapping[str, Any]
Cell = Mapping[str, Any]
OF_TOPICS = {"path": "hops, mean", "forwards": "messages for one publication"}


def drawings(figures: Iterable[Figure]) -> dict[str, str]:
    """The chart of each figure that has one, by its name."""
    drawn = {}
    for figure in figures:
        name, label, cells = figure["figure"], figure["title"], figure["cells"]
        if cells and name in OF_TOPICS:
            axes = (PATTERN, OF_TOPICS[name])
            found = by_pattern(cells, name)
            drawn[name] = charts.dots(found, nodes_panels(cells), axes, name, label)
        if cells and name == "load":
            drawn[name] = _load(cells, name, label)
        if cells and name == stopping.NAME:
            drawn[name] = stopping.drawing(cells, label)
    return drawn


def _load(cells: Sequence[Cell], name: str, label: str) -> str:
    points = [
        {
            "way": value,
            "at": cell["from_node"],
            "panel": METHODS[cell["method"]],
            **{side: cell["ours"][value][side] for side in ("mean", "low", "high")},
        }
        for value in LOADS
        for cell in cells
    ]
    axes = ("nodes, those with most forwards first", "messages of a node, mean")
    return charts.lines(points, list(METHODS.values()), axes, name, label)
