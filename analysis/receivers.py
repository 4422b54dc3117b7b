"""Who heard of it when: what became of the expected deliveries, by receiver and level."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

URGENT = 4  # levels from here on are shown for each receiver, however many there are
MOST_SHOWN = 30  # rows of the report's table; the others are folded away


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """A key that sorts as people count: sensors-2 before sensors-10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((False, int(part), "") if part.isdecimal() else (True, 0, part) for part in parts)


def by_receiver(deliveries: pa.Table) -> dict[str, dict[str, dict[str, Any]]]:
    """receiver -> level -> counts and exact percentiles of the delay, as the metric `delay` has them."""
    return _grouped(deliveries, lambda receiver: receiver)


def by_method(
    deliveries: pa.Table, methods: Mapping[str, str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """The same by the delivery method of the receiver's link; `methods` tells it."""
    return _grouped(deliveries, lambda receiver: methods[receiver])


def _grouped(
    deliveries: pa.Table, group_of: Callable[[str], str]
) -> dict[str, dict[str, dict[str, Any]]]:
    delays: dict[tuple[str, int], list[float | None]] = {}
    columns = (deliveries[name].to_pylist() for name in ("receiver", "priority", "delay_s"))
    for receiver, priority, delay in zip(*columns, strict=True):
        delays.setdefault((group_of(receiver), priority), []).append(delay)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for group, priority in sorted(delays, key=lambda key: (natural(key[0]), -key[1])):
        found.setdefault(group, {})[str(priority)] = _outcome(delays[group, priority])
    return found


def _outcome(delays: list[float | None]) -> dict[str, Any]:
    came = [delay for delay in delays if delay is not None]
    count = {"expected": len(delays), "delivered": len(came), "lost": len(delays) - len(came)}
    if not came:
        return {**count, "p50": None, "p95": None, "max": None}
    p50, p95 = (float(value) for value in np.percentile(came, (50, 95)))
    return {**count, "p50": p50, "p95": p95, "max": max(came)}


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
