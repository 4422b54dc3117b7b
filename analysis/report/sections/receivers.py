"""The report's section on receivers: outcomes by receiver and level, the worst first; and by delivery method."""

from typing import Any

from analysis.formatting import natural

URGENT = 4  # levels from here on are always shown for each receiver
MOST_SHOWN = 30  # rows of the visible table; the others are collapsed


def slowest(summary: dict[str, Any], level: str) -> str | None:
    """The receiver with the longest delay of this level, if all of its deliveries came."""
    waited = {
        receiver: levels[level]["max"]
        for receiver, levels in summary.get("by_receiver", {}).items()
        if level in levels and levels[level]["max"] is not None
    }
    return max(waited, key=lambda receiver: waited[receiver], default=None)


def method_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The methods side by side, level by level; empty if all links have the same."""
    methods = summary.get("by_method", {})
    if len(methods) < 2:
        return []
    rows = [
        {"method": method, "level": level, **outcome}
        for method, levels in methods.items()
        for level, outcome in levels.items()
    ]
    return sorted(rows, key=lambda row: (-int(row["level"]), row["method"]))


def receiver_rows(summary: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The visible rows and the collapsed ones: the most urgent level first, in it the worst receiver first."""
    rows = [
        {"receiver": receiver, "level": level, **outcome}
        for receiver, levels in summary.get("by_receiver", {}).items()
        for level, outcome in levels.items()
    ]
    rows.sort(key=_worst_first)
    if len(rows) <= MOST_SHOWN:
        return rows, []
    urgent = sum(int(row["level"]) >= URGENT for row in rows)
    shown = min(urgent or MOST_SHOWN, MOST_SHOWN)
    return rows[:shown], rows[shown:]


def _worst_first(row: dict[str, Any]) -> tuple[Any, ...]:
    longest = row["max"] or (row.get("not_within_s") or {}).get("max") or 0.0
    return (-int(row["level"]), -row["lost"], -longest, natural(row["receiver"]))
