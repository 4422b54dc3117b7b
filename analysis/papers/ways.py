"""The ways of publishing and of collecting that are compared: how they are named, and how they look in charts."""

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
COLOURS = (
    *("var(--level-1)", "var(--level-5)", "var(--level-2)", "var(--layer-websocket)"),
    *("var(--good)", "var(--level-3)", "var(--layer-ip)", "var(--layer-ethernet)"),
)
SHAPES = (
    *("circle", "triangle-up", "square", "diamond", "cross"),
    *("triangle-down", "triangle-right", "triangle-left"),
)
DASHES = ([1, 0], [8, 3], [4, 3], [2, 2], [6, 2, 2, 2], [1, 3], [10, 4], [3, 1])


def title(row: Row) -> str:
    """For people: what this way is, with what it differs in from others of the method."""
    support = row.get("support") or ""
    told = (
        METHODS[row["method"]],
        row.get("strategy") or "",
        "" if support == USUAL_SUPPORT else support,
        f"helped by {row['support_from']}" if row.get("support_from") else "",
    )
    return ", ".join(filter(None, told))


def with_priority(row: Row) -> str:
    """The same, for methods that know priorities with theirs."""
    known = row["method"] in PRIORITISED
    return f"{title(row)}, priority {row['priority']}" if known else title(row)


def titles(rows: Iterable[Row], name: Callable[[Row], str] = title) -> list[str]:
    """Of all ways that occur, methods in their order."""
    order = list(METHODS)
    known = {name(row): (order.index(row["method"]), name(row)) for row in rows}
    return sorted(known, key=lambda way: known[way])
