"""load: what each node had to do in each unit of time: messages of all kinds that it received and sent.

The load is that of Kawakami 2016, L = alpha x received + beta x sent. A message counts when all of it had come to its
receiver, and when its first byte had left its sender. Publications that travel joined are one message together, since
that is what joining is for. Units in which a node did nothing have no row.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analysis.formatting import natural
from analysis.inputs.run_folder import Run

# How evenly load is spread over nodes: one formula for columns of Spark and for plain numbers.


Quantity = TypeVar("Quantity", float, "Column")


def jain(total: Quantity, squares: Quantity, nodes: Quantity) -> Quantity:
    """Jain's index from the sum of all loads, the sum of their squares, and how many nodes there are.

    1 if all have the same load, 1/n if one of n has all of it. Every node counts, also one without load: Kawakami 2016
    divides by the publishers only, but its own example comes out right with the subscriber, too.
    """
    return total * total / (nodes * squares)


# How much each node had to do, and how evenly that is spread: the summary's `load`.


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


SCHEMA = """
    node string, unit long, received long, sent long, publications_received long, forwarded long, load double
"""
NANOSECONDS = 1_000_000_000


def load(
    messages: DataFrame,
    begin_ns: int,
    end_ns: int,
    unit_s: float = UNIT_S,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> DataFrame:
    """Of the messages that came or left between these times; unit 0 begins at the first of them.

    `forwarded`: copies of others' publications that it sent.
    """
    sent = (sf.col("direction") == "up") & (sf.col("link") == sf.col("src"))
    came = (sf.col("direction") == "down") & (sf.col("link") == sf.col("dst")) & sf.col("complete")
    publication = sf.col("kind") == "PUBLISH"
    of_message = 1 / sf.coalesce(
        sf.col("joined"), sf.lit(1)
    )  # not known in traces of earlier versions
    when = sf.when(sent, sf.col("first_ns")).otherwise(sf.col("last_ns"))
    unit_ns = round(unit_s * NANOSECONDS)
    last_unit = max(0, (end_ns - begin_ns - 1) // unit_ns)
    unit = sf.least(sf.lit(last_unit), sf.floor((sf.col("when_ns") - begin_ns) / unit_ns))
    counted = (
        messages.where(sent | came)
        .withColumn("when_ns", when)
        .where(sf.col("when_ns").between(begin_ns, end_ns))
        .groupBy(sf.col("link").alias("node"), unit.cast("long").alias("unit"))
        .agg(
            _count(came, of_message).alias("received"),
            _count(sent, of_message).alias("sent"),
            _count(came & publication).alias("publications_received"),
            _count(sent & publication & (sf.col("origin") != sf.col("link"))).alias("forwarded"),
        )
    )
    return counted.withColumn("load", alpha * sf.col("received") + beta * sf.col("sent"))


def _count(condition: Column, part: Column | None = None) -> Column:
    """How many rows it holds for; of rows that are parts of something, how many whole ones."""
    one = sf.lit(1.0) if part is None else part
    return sf.round(sf.sum(sf.when(condition, one).otherwise(0.0))).cast("long")
