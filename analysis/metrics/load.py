"""load: messages of all kinds that each node received and sent in each unit of time.

The load is that of Kawakami 2016, L = alpha x received + beta x sent. A message counts as received with its last byte,
and as sent with its first byte. Publications that travel joined count as one message. Units without messages have no
row.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.formatting import natural
from analysis.inputs.run_folder import Run
from analysis.metrics.tables import conform, count, own_links, schema, summed

if TYPE_CHECKING:
    from pyspark.sql import Column

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


SCHEMA = schema("""
    node string, unit long, received long, sent long, publications_received long, forwarded long, load double
""")
ROW = "a node and unit of time"
COLUMNS = {
    "node": "node",
    "unit": "number of the unit (1 s); 0 begins with the time that counts",
    "received": "messages of all kinds that it received",
    "sent": "messages of all kinds that it sent",
    "publications_received": "publications that it received",
    "forwarded": "publications of others that it sent",
    "load": "`received` + `sent`",
}
NANOSECONDS = 1_000_000_000
COUNTED = COUNTS[:-1]


def count_load(messages: pa.Table, begin_ns: int, end_ns: int, unit_s: float = UNIT_S) -> pa.Table:
    """By node and unit, the COUNTED messages of these rows in this time; unit 0 begins with it.

    A row of a joined message counts as its share of it, so the sums of all rows are whole. `forwarded`: copies of other
    nodes' publications that it sent.
    """
    sent, came = own_links(messages)
    came = pc.and_(came, messages["complete"])
    when = pc.if_else(sent, messages["first_ns"], messages["last_ns"])
    chosen = pc.and_(
        pc.or_(sent, came),
        pc.and_(pc.greater_equal(when, begin_ns), pc.less_equal(when, end_ns)),
    )
    publication = pc.equal(messages["kind"], "PUBLISH")
    # How many travel joined is not known in traces of earlier versions.
    part = pc.divide(1.0, pc.fill_null(messages["joined"], 1).cast(pa.float64()))
    others = pc.fill_null(pc.not_equal(messages["origin"], messages["link"]), False)
    unit_ns = round(unit_s * NANOSECONDS)
    last_unit = max(0, (end_ns - begin_ns - 1) // unit_ns)
    columns = {
        "node": messages["link"],
        "when_ns": when,
        "received": pc.if_else(came, part, 0.0),
        "sent": pc.if_else(sent, part, 0.0),
        "publications_received": count(pc.and_(came, publication)).cast(pa.float64()),
        "forwarded": count(pc.and_(sent, pc.and_(publication, others))).cast(pa.float64()),
    }
    rows = pa.table(columns).filter(chosen)
    units = np.minimum((rows["when_ns"].to_numpy() - begin_ns) // unit_ns, last_unit)
    return summed(
        rows.append_column("unit", pa.array(units, pa.int64())), ["node", "unit"], COUNTED
    )


def load(counted: pa.Table, alpha: float = 1.0, beta: float = 1.0) -> pa.Table:
    """The load of each node and unit from the counts of all messages."""
    sums = summed(counted, ["node", "unit"], COUNTED)
    for place, name in enumerate(COUNTED, start=2):
        sums = sums.set_column(place, name, pc.round(sums[name]).cast(pa.int64()))
    weighed = [
        pc.multiply(sums[name].cast(pa.float64()), weight)
        for name, weight in (("received", alpha), ("sent", beta))
    ]
    return conform(sums.append_column("load", pc.add(*weighed)), SCHEMA)
