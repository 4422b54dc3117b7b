"""Cells of a figure as a table for people: a row for each place, a column for each way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

Cell = Mapping[str, Any]


def cells_of(result: Mapping[str, Any], name: str) -> list[Cell]:
    """Of the figure of this name; none if there is no such figure."""
    return [cell for one in result["figures"] if one["figure"] == name for cell in one["cells"]]


def pivot(
    title: str,
    cells: Iterable[Cell],
    places: Sequence[str],
    way: Callable[[Cell], str],
    value: str,
) -> Table:
    """`places`: which values of a cell say its row; `value`: which of ours is shown, with its mean."""
    from analysis.papers.ways import titles

    shown = list(cells)
    ways = titles(shown, way)
    rows: dict[tuple[Any, ...], dict[str, str]] = {}
    for cell in shown:
        row = rows.setdefault(tuple(cell[name] for name in places), {})
        row[way(cell)] = number(cell["ours"][value]["mean"])
    table = Table(title=title, title_justify="left")
    for name in places:
        table.add_column(name, justify="right")
    for name in ways:
        table.add_column(name, justify="right")
    for place, texts in rows.items():
        table.add_row(*map(_plain, place), *(texts.get(name, "-") for name in ways))
    return table


def number(value: float) -> str:
    """Three digits are enough."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
