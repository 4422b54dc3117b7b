"""Points of a chart from the cells of a figure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from analysis.papers.ways import title, titles

Cell = Mapping[str, Any]
PATTERN = "pattern"


def by_pattern(cells: Iterable[Cell], value: str) -> list[dict[str, Any]]:
    """Patterns side by side, a panel for each number of nodes."""
    return points(cells, value, at=lambda cell: cell["pattern"], panel=nodes_panel)


def points(
    cells: Iterable[Cell],
    value: str,
    at: Callable[[Cell], Any],
    panel: Callable[[Cell], str],
    name: Callable[[Cell], str] = title,
) -> list[dict[str, Any]]:
    """One for each cell, ways in their order."""
    shown = list(cells)
    order = titles(shown, name)
    found = [
        {
            "way": name(cell),
            "at": at(cell),
            "panel": panel(cell),
            **{side: cell["ours"][value][side] for side in ("mean", "low", "high")},
        }
        for cell in shown
    ]
    return sorted(found, key=lambda point: order.index(point["way"]))


def nodes_panel(cell: Cell) -> str:
    return f"{cell['nodes']:,} nodes"


def nodes_panels(cells: Iterable[Cell]) -> list[str]:
    """The panels by size."""
    return [f"{nodes:,} nodes" for nodes in sorted({cell["nodes"] for cell in cells})]
