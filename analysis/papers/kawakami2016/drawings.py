"""The figures of Kawakami 2016 as charts. The other readings of the text stand in the tables alone."""

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.papers import charts
from analysis.papers.kawakami2016 import waiting
from analysis.papers.kawakami2016.figures import FIGURES, is_main
from analysis.papers.points import points

Figure = Mapping[str, Any]
ONLY_PANEL = ""


def drawings(figures: Iterable[Figure]) -> dict[str, str]:
    """The chart of each figure, by its name."""
    known = {figure.name: figure for figure in FIGURES}
    drawn: dict[str, str] = {}
    for figure in figures:
        name, label = figure["figure"], figure["title"]
        if name in waiting.FIGURES:
            drawn |= waiting.drawing(name, figure["cells"], label)
            continue
        cells = [cell for cell in figure["cells"] if is_main(cell)]
        if cells:
            found = points(
                cells,
                known[name].values[0],
                at=lambda cell: cell["nodes"],
                panel=lambda _: ONLY_PANEL,
            )
            axes = ("nodes, one of them the subscriber", known[name].axis)
            drawn[name] = charts.lines(
                found, [ONLY_PANEL], axes, name, label, shares=name == "fairness"
            )
    return drawn
