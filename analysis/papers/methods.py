"""The methods of publishing and collecting that papers compare: their names, and their points in charts."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
METHODS = {
    "sg-tbps": "SG-TBPS",
    "psg-tbps": "PSG-TBPS",
    "fan-tbps": "fan-TBPS (ours)",
    "atm-tbps": "ATM-TBPS",
    "patm-tbps": "PATM-TBPS",
    "scribe": "Scribe",
    "server": "Server",
    "push-descending-aggregated": "descending, aggregated",
    "push-ascending-aggregated": "ascending, aggregated",
    "chain": "Chain",
    "push-descending": "descending",
    "push-ascending": "ascending",
    "pull": "pull (SFB)",
}
PRIORITISED = ("psg-tbps", "patm-tbps", "fan-tbps")
OF_WAY = ("method", "strategy", "support", "support_from")
USUAL_SUPPORT = "next"


def title(row: Row) -> str:
    """The name of a row's method, with the variant."""
    support = row.get("support") or ""
    parts = (
        METHODS[row["method"]],
        row.get("strategy") or "",
        "" if support == USUAL_SUPPORT else support,
        f"helped by {row['support_from']}" if row.get("support_from") else "",
    )
    return ", ".join(filter(None, parts))


def with_priority(row: Row) -> str:
    """The same, with the priority for methods that have priorities."""
    known = row["method"] in PRIORITISED
    return f"{title(row)}, priority {row['priority']}" if known else title(row)


def titles(rows: Iterable[Row], name: Callable[[Row], str] = title) -> list[str]:
    """The names of all rows, in the order of METHODS."""
    order = list(METHODS)
    known = {name(row): (order.index(row["method"]), name(row)) for row in rows}
    return sorted(known, key=lambda way: known[way])


# Points of a chart from the cells of a figure.


Cell = Mapping[str, Any]
PATTERN = "pattern"


def by_pattern(cells: Iterable[Cell], value: str) -> list[dict[str, Any]]:
    """Points with patterns side by side, a panel for each number of nodes."""
    return points(cells, value, at=lambda cell: cell["pattern"], panel=nodes_panel)


def points(
    cells: Iterable[Cell],
    value: str,
    at: Callable[[Cell], Any],
    panel: Callable[[Cell], str],
    name: Callable[[Cell], str] = title,
) -> list[dict[str, Any]]:
    """A point for each cell, in the order of METHODS."""
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
