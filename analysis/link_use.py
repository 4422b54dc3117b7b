"""How much of its rate each link used: the summary's `use`."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analysis.receivers import natural


def summary(metrics: Path, unit_s: float, seconds: float | None) -> dict[str, Any]:
    """Of each link and direction that carried anything in the time that counts."""
    names = ["link", "direction", "unit", "bytes", "rate_bps", "share"]
    units = seconds / unit_s if seconds else None
    by_link: dict[str, dict[str, dict[str, Any]]] = {}
    for row in pq.read_table(metrics / "use.parquet", columns=names).to_pylist():
        if row["unit"] < 0 or (units is not None and row["unit"] >= units):
            continue
        link = by_link.setdefault(row["link"], {})
        told = link.setdefault(row["direction"], {"bytes": 0, "mean": None, "peak": None})
        told["bytes"] += row["bytes"]
        if row["share"] is not None:
            told["peak"] = max(told["peak"] or 0.0, row["share"])
            told["mean"] = (told["mean"] or 0.0) + (row["share"] / units if units else 0.0)
    for told in (told for link in by_link.values() for told in link.values()):
        if told["mean"] is not None:  # the last digits depend on the order in which it was summed
            told["mean"] = round(told["mean"], 9)
    return {
        "unit_s": unit_s,
        "by_link": {name: by_link[name] for name in sorted(by_link, key=natural)},
    }
