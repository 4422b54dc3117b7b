"""link_utilization: bytes that each link carried in each direction and unit of time, and the share of its rate."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.captures.packets import Packets
from analysis.formatting import natural
from analysis.inputs.link_settings import SettingsOfLinks, settings_at
from analysis.metrics.tables import conform, schema
from analysis.protocols.link import DOWN, UP, upward
from analysis.protocols.messages import LinkPlace

SCHEMA = schema("""
    link string, direction string, unit long, from_ns long, packets long, bytes long, rate_bps double, share double
""")
ROW = "a link, direction and unit of time"
COLUMNS = {
    "unit": "number of the unit (1 s); 0 begins with the time that counts",
    "from_ns": "the unit's beginning",
    "packets": "packets in the unit",
    "bytes": "bytes of these packets behind the shaper",
    "rate_bps": "rate that the link was set to when the unit began; null without a limit",
    "share": "share of this rate; more than 1: faster than it was set to",
}
COUNTED = schema("link string, direction string, from_ns long, packets long, bytes long")


def utilization(
    counts: pa.Table, settings: SettingsOfLinks, begin_ns: int, unit_s: float
) -> pa.Table:
    """Add the share of the link's rate. Unit 0 begins with the time that counts; earlier units are negative.

    The share is of the rate at the beginning of the unit; null without a limit.
    """
    unit_ns = round(unit_s * 1e9)
    rates = [
        settings_at(settings[place], at_ns).rate_bps
        if (place := (link, direction)) in settings
        else None
        for link, direction, at_ns in zip(
            *(counts[name].to_pylist() for name in ("link", "direction", "from_ns")), strict=True
        )
    ]
    rate = pa.array(rates, pa.float64())
    units = (counts["from_ns"].to_numpy() - begin_ns) // unit_ns
    bits = pc.multiply(counts["bytes"].cast(pa.float64()), 8.0)
    rows = counts.append_column("unit", pa.array(units, pa.int64()))
    rows = rows.append_column("rate_bps", rate)
    rows = rows.append_column("share", pc.divide(bits, pc.multiply(rate, unit_s)))
    return conform(rows, SCHEMA)


# Counts from the packets of a link. Pure: columns in, rows out.


UTILIZATION = pa.struct(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        ("from_ns", pa.int64()),
        ("packets", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


def count_utilization(
    packets: Packets, place: LinkPlace, unit_ns: int, origin_ns: int
) -> pa.StructArray:
    """A row for each direction and unit with packets; units are aligned to the origin.

    A packet counts with all its bytes in the unit in which it passed the capture point.
    """
    up = upward(packets, place)
    units = (packets.ts_ns - origin_ns) // unit_ns
    rows = []
    for direction, chosen in ((UP, up), (DOWN, ~up)):
        found, which = np.unique(units[chosen], return_inverse=True)
        counts = np.bincount(which, minlength=len(found))
        sizes = np.bincount(which, packets.wirelen[chosen], len(found))
        for unit, count, size in zip(found.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            rows.append((place.name, direction, origin_ns + unit * unit_ns, count, round(size)))
    return pa.array(rows, UTILIZATION)


# The summary's `link_utilization`.


def summary(metrics: Path, unit_s: float, seconds: float | None) -> dict[str, Any]:
    """Mean and peak of each link and direction with traffic in the time that counts."""
    names = ["link", "direction", "unit", "bytes", "rate_bps", "share"]
    units = seconds / unit_s if seconds else None
    by_link: dict[str, dict[str, dict[str, Any]]] = {}
    for row in pq.read_table(metrics / "link_utilization.parquet", columns=names).to_pylist():
        if row["unit"] < 0 or (units is not None and row["unit"] >= units):
            continue
        link = by_link.setdefault(row["link"], {})
        total = link.setdefault(row["direction"], {"bytes": 0, "mean": None, "peak": None})
        total["bytes"] += row["bytes"]
        if row["share"] is not None:
            total["peak"] = max(total["peak"] or 0.0, row["share"])
            total["mean"] = (total["mean"] or 0.0) + (row["share"] / units if units else 0.0)
    for total in (total for link in by_link.values() for total in link.values()):
        if total["mean"] is not None:  # the last digits depend on the order in which it was summed
            total["mean"] = round(total["mean"], 9)
    return {
        "unit_s": unit_s,
        "by_link": {name: by_link[name] for name in sorted(by_link, key=natural)},
    }


def summed(used: list[pa.StructArray]) -> pa.StructArray:
    """Sum the counts of a file's windows; a unit may lie in several of them."""
    keys = ["link", "direction", "from_ns"]
    counts = ["packets", "bytes"]
    if not used:
        return pa.array([], UTILIZATION)
    table = pa.Table.from_struct_array(pa.chunked_array(used))
    found = table.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in counts])
    columns = [*(found[name] for name in keys), *(found[f"{name}_sum"] for name in counts)]
    return pa.StructArray.from_arrays(
        [column.combine_chunks() for column in columns], fields=list(UTILIZATION)
    )
