"""load: messages of all kinds that each node received and sent in each unit of time.

The load is that of Kawakami 2016, L = alpha x received + beta x sent. A message counts as received with its last byte,
and as sent with its first byte. Publications that travel joined count as one message. Units without messages have no
row.
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

# Fairness of the load: one formula for columns of Spark and for plain numbers.


Quantity = TypeVar("Quantity", float, "Column")


def jain(total: Quantity, squares: Quantity, nodes: Quantity) -> Quantity:
    """Jain's index from the sum of all loads, the sum of their squares, and the number of nodes.

    1 if all nodes have the same load, 1/n if one of n has all of it. Nodes without load count, too: Kawakami 2016
    divides by the publishers only, but its own example is right only with the subscriber.
    """
    return total * total / (nodes * squares)


# The summary's `load`.


UNIT_S = 1.0
COUNTS = ("received", "sent", "publications_received", "forwarded", "load")
WITHOUT_MESSAGES = ("router", "external")  # kinds of nodes without our protocol
ByNode = Mapping[str, Mapping[str, float]]


def summary(run: Run, metrics: Path, unit_s: float, seconds: float | None) -> dict[str, Any]:
    """Load of all nodes, of the brokers if there are several, and of each node."""
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
    """Totals of each node, idle ones included; `momentary`: load in the node's busiest unit of time."""
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
    """SL (`per_unit`), the busiest nodes, fairness, and the correlation of receiving and forwarding."""
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
    """The node with the largest value; of several the first."""
    if not found:
        return None
    node = max(found, key=lambda one: found[one][name])
    return {"node": node, "load": found[node][name]}


def _correlation(found: ByNode) -> float | None:
    """Correlation over nodes of publications received and forwarded; None if one of both is constant."""
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
    """Count the messages received or sent in this time; unit 0 begins with it.

    `forwarded`: copies of other nodes' publications that it sent.
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
    """Number of rows that fulfil the condition; `part`: the share of a message that a row is."""
    one = sf.lit(1.0) if part is None else part
    return sf.round(sf.sum(sf.when(condition, one).otherwise(0.0))).cast("long")
