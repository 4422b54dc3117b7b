"""Who heard of it when: what became of the expected deliveries, by receiver and level."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from analysis import clock_errors, precision

URGENT = 4  # levels from here on are shown for each receiver, however many there are
MOST_SHOWN = 30  # rows of the report's table; the others are folded away


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """A key that sorts as people count: sensors-2 before sensors-10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((False, int(part), "") if part.isdecimal() else (True, 0, part) for part in parts)


def by_receiver(deliveries: pa.Table) -> dict[str, dict[str, dict[str, Any]]]:
    """receiver -> level -> counts and exact percentiles of the delay, as the metric `delay` has them.

    `error_s`: how far these may be off, where clocks differ.
    """
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
    errors: dict[tuple[str, int], list[float]] = {}
    uncertain = clock_errors.known(deliveries)
    names = ("receiver", "priority", "delay_s", clock_errors.COLUMN if uncertain else "delay_s")
    for receiver, priority, delay, error in zip(
        *(deliveries[name].to_pylist() for name in names), strict=True
    ):
        key = (group_of(receiver), priority)
        delays.setdefault(key, []).append(delay)
        if uncertain and delay is not None:
            errors.setdefault(key, []).append(error)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for key in sorted(delays, key=lambda key: (natural(key[0]), -key[1])):
        group, priority = key
        told = _outcome(delays[key]) | _error(delays[key], errors.get(key))
        found.setdefault(group, {})[str(priority)] = told
    return found


def _error(delays: list[float | None], errors: list[float] | None) -> dict[str, Any]:
    """How far the percentiles may be off; nothing where they are exact."""
    if not errors or not any(errors):
        return {}
    came = np.array([delay for delay in delays if delay is not None])
    return {"error_s": clock_errors.of_statistics(came, np.array(errors), ("p50", "p95", "max"))}


def told(row: Mapping[str, Any], name: str) -> str:
    """A percentile of such a row, in as many digits as the clocks leave."""
    return precision.told(row[name], (row.get("error_s") or {}).get(name, 0.0))


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
