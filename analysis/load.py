"""How much each node had to do, and how evenly that is spread: the summary's `load`."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from analysis.fairness import jain
from analysis.receivers import natural
from analysis.runfolder import Run

UNIT_S = 1.0
COUNTS = ("received", "sent", "publications_received", "forwarded", "load")
WITHOUT_MESSAGES = ("router", "external")  # kinds of nodes that do not speak our protocol
ByNode = Mapping[str, Mapping[str, float]]


def summary(run: Run, metrics: Path, unit_s: float, seconds: float | None) -> dict[str, Any]:
    """Of all nodes, of the brokers alone if there are several, and of each node."""
    nodes = [node.name for node in run.nodes if node.kind not in WITHOUT_MESSAGES]
    found = by_node(metrics, nodes)
    units = seconds / unit_s if seconds else None
    brokers = {name: found[name] for name in run.brokers if name in found}
    return {
        "unit_s": unit_s,
        "seconds": seconds,
        "all": spread(found, units),
        "brokers": spread(brokers, units) if len(brokers) > 1 else None,
        "by_node": found,
    }


def by_node(metrics: Path, nodes: Collection[str]) -> dict[str, dict[str, Any]]:
    """What each did in all; `momentary` is its load in its busiest unit of time. Nodes that did nothing, too."""
    grouped = (
        pq.read_table(metrics / "load.parquet")
        .group_by("node")
        .aggregate([*((name, "sum") for name in COUNTS), ("load", "max")])
    )
    known = {
        row["node"]: {**{name: row[f"{name}_sum"] for name in COUNTS}, "momentary": row["load_max"]}
        for row in grouped.to_pylist()
    }
    idle = {**dict.fromkeys(COUNTS, 0), "load": 0.0, "momentary": 0.0}
    return {name: known.get(name, dict(idle)) for name in sorted(nodes, key=natural)}


def spread(found: ByNode, units: float | None) -> dict[str, Any]:
    """SL (`per_unit`), the busiest nodes, fairness, and whether who receives more also forwards more."""
    loads = np.array([row["load"] for row in found.values()])
    total, squares = float(loads.sum()), float((loads**2).sum())
    return {
        "nodes": len(found),
        "load": total,
        "per_unit": total / units if units else None,
        "momentary": _most(found, "momentary"),
        "largest": _most(found, "load"),
        "fairness": jain(total, squares, len(found)) if squares else None,
        "correlation": _correlation(found),
    }


def _most(found: ByNode, name: str) -> dict[str, Any] | None:
    """Who has most of it; of several the first."""
    if not found:
        return None
    node = max(found, key=lambda one: found[one][name])
    return {"node": node, "load": found[node][name]}


def _correlation(found: ByNode) -> float | None:
    """Over nodes, of publications received and forwarded; None where one of both is the same everywhere."""
    received, forwarded = (
        np.array([row[name] for row in found.values()], dtype=float)
        for name in ("publications_received", "forwarded")
    )
    if len(found) < 2 or not received.std() or not forwarded.std():
        return None
    return float(np.corrcoef(received, forwarded)[0, 1])
