"""How far delays may be off because their two ends were timed by different clocks; and what that means for statistics.

A delay is known to its error: the sum of what both ends' clocks may be off. So a quantile of the true delays lies
between the same quantile of the delays less their errors and that of the delays and their errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis.clocks import Clocks

Array = npt.NDArray[Any]

SHARES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
COLUMN = "delay_error_s"


def of_deliveries(deliveries: pa.Table, clocks: Clocks) -> Array:
    """The error of each delay, nan where nothing came. Needs origin, published_ns, receiver, received_ns."""
    came = deliveries["received_ns"].is_valid().to_numpy()
    errors = np.where(came, 0.0, np.nan)
    for node, at in (("origin", "published_ns"), ("receiver", "received_ns")):
        names = deliveries[node].to_numpy()
        times = deliveries[at].fill_null(0).to_numpy()
        for name, clock in clocks.by_node.items():
            mine = came & (names == name)
            if mine.any():
                errors[mine] += clock.error_at(times[mine]) / 1e9
    return errors


def known(deliveries: pa.Table) -> bool:
    """Whether any delay of these has an error; earlier versions wrote none."""
    return COLUMN in deliveries.column_names and bool(pc.max(deliveries[COLUMN]).as_py())


def of_statistics(
    delays: Array, errors: Array, names: Sequence[str] = tuple(SHARES)
) -> dict[str, float]:
    """How far these quantiles may be off; of at least one delay."""
    shares = [SHARES[name] for name in names]
    here, low, high = (
        np.percentile(values, shares) for values in (delays, delays - errors, delays + errors)
    )
    return dict(zip(names, np.maximum(here - low, high - here).tolist(), strict=True))


def by_level(deliveries: pa.Table) -> dict[str, dict[str, Any]]:
    """Level -> the median and the largest error of its delays, and of each quantile; the most urgent first."""
    delays, errors, levels = (
        deliveries.filter(pc.field("delay_s").is_valid())[name].to_numpy()
        for name in ("delay_s", COLUMN, "priority")
    )
    found = {}
    for level in sorted(set(levels.tolist()), reverse=True):
        mine = levels == level
        found[str(level)] = {
            "median": float(np.median(errors[mine])),
            "largest": float(errors[mine].max()),
            "of": {
                **of_statistics(delays[mine], errors[mine]),
                "mean": float(errors[mine].mean()),
            },
        }
    return found


def contradictions(deliveries: pa.Table) -> list[dict[str, Any]]:
    """Deliveries that came before they were published by more than their error, the worst first."""
    before = pc.field("delay_s") + pc.field(COLUMN) < 0
    found: list[dict[str, Any]] = deliveries.filter(before).to_pylist()
    return sorted(found, key=lambda row: row["delay_s"] + row[COLUMN])


def error_of(summary: Mapping[str, Any], level: str, name: str) -> float:
    """How far this quantile of this level may be off; 0 where all clocks are one."""
    told = summary.get(COLUMN, {}).get(level)
    return float(told["of"][name]) if told else 0.0
