"""The rows for people, and for programs."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.support.delivery.rows import Row
from benchmarks.support.delivery.scheduling import Cost


def delays(title: str, rows: Sequence[Row]) -> Table:
    """How long urgent messages took on one kind of line."""
    shown = Table(title=title)
    shown.add_column("", no_wrap=True)
    columns = ("p50 s", "p95 s", "largest s", "urgent", "routine in time", "in the end")
    for column in (*columns, "wire / payload", "ms a message"):
        shown.add_column(column, justify="right")
    for row in rows:
        shown.add_row(
            row.name,
            *(f"{value:.3f}" for value in (row.p50_s, row.p95_s, row.largest_s)),
            f"{row.urgent_arrived} of {row.urgent_sent}",
            f"{row.routine_in_time:.0%}",
            f"{row.routine_arrived:.0%}",
            f"{row.wire_per_payload:.4f}",
            f"{row.processor_ms:.2f}",
        )
    return shown


def costs(title: str, found: Sequence[Cost]) -> Table:
    """What the schedulers cost."""
    shown = Table(title=title)
    shown.add_column("", no_wrap=True)
    for column in ("µs a message", "µs a chunk", "chunks", "calls"):
        shown.add_column(column, justify="right")
    for one in found:
        times = (f"{one.per_message:.1f}", f"{one.per_chunk:.2f}")
        shown.add_row(one.method, *times, str(one.chunks), str(one.calls))
    return shown


def plain(row: Row | Cost) -> dict[str, Any]:
    """For JSON, which has no infinity."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(row).items()
    }
