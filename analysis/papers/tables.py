"""The results of reproduction cells as Parquet: one file for each table, one row for each trial and method."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.errors import AnalysisError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


OF_LEVELLING: Mapping[str, type] = {
    "trial": int,
    "nodes": int,
    "rounds": int,
    "bits": int,  # of a coordinate
    "subscriptions": int,
    "sensors": int,
    "events_per_sensor": int,
    "scale": float,  # of the exponential distribution around the centre, as a share of the space's side
    "side": float,  # of a box, in the mean
    "events_at": str,
    "k": int,
    "e": float,
    "e_of": str,
    "give": str,
    "movers": str,
}
LEVELLED: Mapping[str, type] = {
    "moves": int,  # up to then
    "load": float,  # events x subscriptions; mean over nodes
    "largest": int,
    "fairness": float,  # Jain's index
    "to_50": float,  # share of the nodes
    "above_250": float,
    "from_500": int,  # nodes
    "copies": int,  # of subscriptions, in all nodes
}
OF_WAITING: Mapping[str, type] = {
    "lab": str,  # simulated, real
    "trial": int,
    "sites": int,  # each with a broker and a gauge on its own link
    "wait_ms": int,  # longest time that a broker waits for other readings
}
COLUMNS: Mapping[str, Mapping[str, type]] = {
    "topics": {
        "pattern": str,
        "publishers": int,
        "subscribers": int,
        "nodes": int,
        "trial": int,
        "method": str,
        "strategy": str,
        "priority": int,
        "support": str,
        "support_from": str,
        "path": float,  # hops; mean over publishers of the mean over subscribers
        "forwards": float,  # messages between nodes for one publication, duplicates included
        "starts": float,  # nodes that the publication starts from
        "delay_ms": float,  # by the thesis' model
        "publications": int,
        "deliveries": int,
    },
    "tables": {
        "subscribers": int,
        "nodes": int,
        "trial": int,
        "method": str,
        "priority": int,
        "table_size": int,
        "path": float,
        "forwards": float,
        "one_hop": float,  # share of the deliveries
        "delay_ms": float,
    },
    "mixed": {
        "subscribers": int,
        "nodes": int,
        "trial": int,
        "method": str,
        "priority": int,  # of the topics
        "table_size": int,  # entries of a node, for all its topics
        "topics_each": int,  # that a node publishes, one of them urgent
        "path": float,
        "one_hop": float,  # share of the deliveries
    },
    "load": {
        "method": str,
        "trial": int,
        "node_rank_group": int,  # 0: the thousand nodes that forward most
        "sent": float,
        "received": float,
        "forwarded": float,
    },
    "load_totals": {
        "method": str,
        "trial": int,
        "correlation": float,  # over nodes, of received and forwarded
        "without_forwards": int,
        "nodes": int,
    },
    "stopping": {
        "method": str,
        "publishers": int,
        "nodes": int,
        "trial": int,
        "kind": str,  # publication, word (stop, go and similar), control (of the graph)
        "t_ms": int,  # where the bin begins
        "messages": int,
    },
    "stopping_totals": {
        "method": str,
        "publishers": int,
        "nodes": int,
        "trial": int,
        "publications": int,
        "withheld": int,  # by stopped publishers
        "expected": int,  # deliveries to subscribers that were confirmed before and stayed
        "lost": int,  # of them
    },
    "collection": {
        "nodes": int,  # one of them is the subscriber
        "trial": int,
        "lists": str,  # line, ring, halves
        "method": str,
        "momentary": float,  # the largest load of a node in a unit of time
        "largest": float,  # the largest load of a node in all units of time
        "load": float,  # SL: of all nodes, for one unit of time
        "squares": float,  # of the nodes' loads for one unit of time, their sum
        "most_sent": int,  # by a publisher in a unit of time
        "hops_max": int,
        "hops": float,  # mean over all that is sent
        "hops_plain": float,  # mean over publishers
    },
    "waiting": {
        **OF_WAITING,
        "measured_s": int,  # how long readings count
        "due": int,  # readings that were published in this time
        "messages": float,  # between brokers; a joined message counts in shares
        "packets": float,  # of these messages
        "bytes": int,  # of these messages, without the packets' headers
        "line_bytes": int,  # of all packets on the sites' links in this time, in both directions, with all headers
    },
    "waiting_readings": {  # that arrived at the office, also before the measurement
        **OF_WAITING,
        "gauge": str,
        "published_s": float,  # since readings count
        "came_s": float,
    },
    "levelling": {**OF_LEVELLING, "when": str, **LEVELLED},
    "levelling_nodes": {
        "give": str,
        "trial": int,
        "when": str,
        "from_node": int,  # in id order
        "load": float,
        "largest": int,
    },
    "levelling_histogram": {
        "give": str,
        "trial": int,
        "when": str,
        "from_load": int,
        "nodes_in": int,
    },
    "levelling_moments": {**OF_LEVELLING, "round": int, **LEVELLED},
}
SHEET = "cells.json"  # the paper of the folder, and the extent of the computation


def write_tables(
    folder: Path, sheet: Mapping[str, Any], tables: Mapping[str, Iterable[Mapping[str, Any]]]
) -> None:
    """Write the tables, then the sheet: a folder with a sheet is complete."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    for name, rows in tables.items():
        schema = pa.schema([(column, arrow[kind]) for column, kind in COLUMNS[name].items()])
        pq.write_table(
            pa.Table.from_pylist(list(rows), schema), path_of(folder, name), compression="zstd"
        )
    (folder / SHEET).write_text(json.dumps(sheet, indent=2) + "\n")


def read_sheet(folder: Path, paper: str) -> dict[str, Any]:
    """Read the sheet; AnalysisError if the folder is not a complete reproduction of this paper."""
    try:
        sheet = json.loads((folder / SHEET).read_text())
    except (OSError, ValueError):
        sheet = None
    if not isinstance(sheet, dict) or sheet.get("paper") != paper:
        raise AnalysisError(
            f"{folder} is not the folder of a reproduction of {paper}",
            f"`testbed reproduce {paper}`",
        )
    return sheet


def read_table(spark: "SparkSession", folder: Path, name: str) -> "DataFrame":
    return spark.read.parquet(str(path_of(folder, name)))


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


# Means over trials, with 95 % intervals by Student's t.


Row = Mapping[str, Any]
# Quantile 0.975 of Student's t for 1, 2, ... degrees of freedom; for more, the last value.
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def means(frame: "DataFrame", by: Sequence[str], values: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each group, in order, with a `spread` of each value."""
    from pyspark.sql import functions as sf

    aggregates = [
        column
        for value in values
        for column in (
            sf.avg(value).alias(f"{value}_mean"),
            sf.stddev_samp(value).alias(f"{value}_deviation"),
        )
    ]
    grouped = frame.groupBy(*by).agg(sf.count("*").alias("trials"), *aggregates).collect()
    return [
        {
            **{name: row[name] for name in by},
            **{
                value: spread(row[f"{value}_mean"], row[f"{value}_deviation"], row["trials"])
                for value in values
            },
        }
        for row in sorted(grouped, key=lambda row: tuple(row[name] for name in by))
    ]


def spread(mean: float, deviation: float | None, trials: int) -> dict[str, Any]:
    """Mean and interval; a single trial has no interval."""
    if trials < 2 or deviation is None:
        return {"mean": mean, "low": None, "high": None, "trials": trials}
    half = STUDENT[min(trials - 1, len(STUDENT)) - 1] * deviation / math.sqrt(trials)
    return {"mean": mean, "low": mean - half, "high": mean + half, "trials": trials}
