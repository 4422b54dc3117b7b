"""The results as tables, and for JSON."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.support.brokers.forwarding import Forwarded
from benchmarks.support.brokers.scene import Reception


def forwarding(found: Sequence[Forwarded], direct_s: float) -> Table:
    """The cost of one broker."""
    title = f"one broker; {direct_s * 1e3:.3f} ms without any"
    columns = ("messages a processor second", "a second", "delay ms", "added ms")
    shown = _table(title, columns)
    for one in found:
        shown.add_row(
            one.name,
            f"{one.per_processor_s:,.0f}",
            f"{one.per_s:,.0f}",
            f"{one.delay_s * 1e3:.3f}",
            f"{(one.delay_s - direct_s) * 1e3:.3f}",
        )
    return shown


def alerts(title: str, found: Sequence[Reception]) -> Table:
    """The delays of level 5."""
    shown = _table(title, ("alerts", "p50 s", "p99 s", "largest s", "photographs"))
    for one in found:
        delays = (one.p50_s, one.p99_s, one.largest_s)
        photographs = "" if math.isnan(one.photographs) else f"{one.photographs:.0%}"
        arrived = f"{one.arrived} of {one.due}"
        shown.add_row(one.name, arrived, *(f"{delay:.3f}" for delay in delays), photographs)
    return shown


def plain(row: Reception | Forwarded) -> dict[str, Any]:
    """The row for JSON, which has no infinity."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(row).items()
    }


def _table(title: str, columns: Sequence[str]) -> Table:
    shown = Table(title=title)
    shown.add_column("", no_wrap=True)
    for column in columns:
        shown.add_column(column, justify="right")
    return shown
