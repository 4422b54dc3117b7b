"""The report's part on receivers: what each got of each level, the worst served first; and by delivery method."""

from typing import Any

from analysis.formatting import natural

URGENT = 4  # levels from here on are shown for each receiver, however many there are
MOST_SHOWN = 30  # rows of the report's table; the others are folded away


def slowest(summary: dict[str, Any], level: str) -> str | None:
    """The receiver that waited longest for a message of this level."""
    waited = {
        receiver: levels[level]["max"]
        for receiver, levels in summary.get("by_receiver", {}).items()
        if level in levels and levels[level]["max"] is not None
    }
    return max(waited, key=lambda receiver: waited[receiver], default=None)


def method_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Level by level, the methods side by side; none where all links have the same."""
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
    """The rows to show, and those to fold away: the most urgent level first, in it the worst served first."""
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
    return (-int(row["level"]), -row["lost"], -(row["max"] or 0.0), natural(row["receiver"]))
