"""The cell of each node of a run, from `paper` in the manifest, which `testbed reproduce` writes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import Run
from analysis.scan import packets

DELAY, TRAFFIC = "delay", "traffic"  # experiments
THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Sheet:
    """One lab of a reproduction."""

    scale: int
    emulator: str
    cells: Mapping[str, Mapping[str, Any]]  # node: cell
    urgent_topics: tuple[str, ...]
    messages_of_traffic: int
    standard_period_s: float
    titles: Mapping[str, str]  # series: title, in their order
    thesis: Mapping[str, Any]

    def nodes(self, experiment: str) -> list[str]:
        """The nodes of an experiment."""
        return [name for name, cell in self.cells.items() if cell["experiment"] == experiment]


def read_sheet(run: Run) -> Sheet:
    """Read the sheet; AnalysisError if the run was not made to reproduce this paper."""
    paper = run.manifest.get("paper") or {}
    if paper.get("name") != "lee2016":
        raise AnalysisError(
            f"Run {run.name} was not made to reproduce lee2016.", "`testbed reproduce lee2016`"
        )
    return Sheet(
        scale=paper["scale"],
        emulator=paper["emulator"],
        cells=paper["cells"],
        urgent_topics=tuple(paper["urgent_topics"]),
        messages_of_traffic=paper["messages_of_traffic"],
        standard_period_s=paper["standard_period_s"],
        titles={one["key"]: one["title"] for one in paper["series"]},
        thesis=paper["thesis"],
    )


# Delays of urgent messages in each cell, by Spark from the run's deliveries, scaled back to the thesis' time.
#
# A message that had not arrived at the end of the capture is censored: it counts, and has no delay.


def delays(spark: SparkSession, run: Run, sheet: Sheet) -> DataFrame:
    """One row for each urgent message and cell.

    `waiting`: number of urgent messages in front of it, on which the model's bound depends.
    """
    start_ns = run.manifest["play"]["start_ns"]
    urgent = (
        spark.read.parquet(str(run.metrics / "deliveries.parquet"))
        .where(sf.col("topic").isin(*sheet.urgent_topics))
        .where(sf.col("receiver").isin(*sheet.nodes(DELAY)))
        .select("receiver", "id", "published_ns", "received_ns", "delay_s")
    )
    earlier = urgent.select(
        sf.col("receiver").alias("of"),
        sf.col("published_ns").alias("before_ns"),
        sf.col("received_ns").alias("until_ns"),
    )
    in_front = (
        (sf.col("of") == sf.col("receiver"))
        & (sf.col("before_ns") < sf.col("published_ns"))
        & (sf.col("until_ns").isNull() | (sf.col("until_ns") > sf.col("published_ns")))
    )
    counted = (
        urgent.join(earlier, in_front, "left")
        .groupBy("receiver", "id", "published_ns", "delay_s")
        .agg(sf.count("before_ns").alias("waiting"))
    )
    bounds = _bounds(spark, sheet)
    return counted.join(bounds, sf.col("receiver") == sf.col("node")).select(
        "node",
        ((sf.col("published_ns") - start_ns) / 1e9 * sheet.scale).alias("at_s"),
        (sf.col("delay_s") * sheet.scale).alias("delay_s"),
        "waiting",
        (sf.col("before_s") + (sf.col("waiting") + 1) * sf.col("each_s")).alias("bound_s"),
    )


def _bounds(spark: SparkSession, sheet: Sheet) -> DataFrame:
    rows = []
    for node in sheet.nodes(DELAY):
        bound = sheet.cells[node]["bound"] or {"before_s": None, "each_s": None}
        rows.append((node, bound["before_s"], bound["each_s"]))
    return spark.createDataFrame(rows, "node string, before_s double, each_s double")


def delays_by_cell(delays: DataFrame, standard_period_s: float) -> DataFrame:
    """Statistics of each cell. `growth`: additional seconds of delay per second.

    Between two SMs the queue of an overloaded link shrinks by a second each second; delays are converted to the time of
    the last SM, so that a few messages are enough.
    """
    since = sf.pmod("at_s", sf.lit(standard_period_s))
    shares = {"p10_s": 0.1, "p50_s": 0.5, "p90_s": 0.9, "p95_s": 0.95, "p99_s": 0.99}
    return delays.groupBy("node").agg(
        sf.count("*").alias("messages"),
        sf.count("delay_s").alias("arrived"),
        *(sf.percentile("delay_s", share).alias(name) for name, share in shares.items()),
        sf.max("delay_s").alias("largest_s"),
        sf.max("bound_s").alias("largest_bound_s"),
        sf.max(sf.col("delay_s") / sf.col("bound_s")).alias("largest_of_bound"),
        sf.regr_slope(sf.col("delay_s") + since, sf.col("at_s") - since).alias("growth"),
    )


# Bytes and packets of each traffic cell, by Spark from the captures: from the start until all messages have arrived.
#
# The handshake before it and keepalives after it do not count. Bytes are counted on the client's link, behind the
# shaper. New and retransmitted data of the server are distinguished on the server's link: there TCP sends in order, and
# segments that the queue before the client's link dropped never arrived at the client.


SEQUENCE_NUMBERS = 1 << 32
LAST_ANSWERS_NS = 1_000_000_000  # acknowledgements of the last message follow within this time


def traffic_by_cell(spark: SparkSession, run: Run, sheet: Sheet) -> DataFrame | None:
    """One row for each cell; None if the run has none. `data_packets`: new data, each counted once."""
    nodes = set(sheet.nodes(TRAFFIC))
    clients = tuple(node for node in run.nodes if node.name in nodes)
    if not clients:
        return None
    servers = tuple(node for node in run.nodes if node.kind == "broker")
    addresses = spark.createDataFrame(
        [(node.name, node.address) for node in clients], "node string, address long"
    )
    ends = _ends(spark, run, nodes)
    packet = packets(spark, replace(run, nodes=(*clients, *servers)))
    towards, back = sf.col("ip_dst") == sf.col("address"), sf.col("ip_src") == sf.col("address")
    seen = (
        packet.where(sf.col("ts_ns") >= run.manifest["play"]["start_ns"])
        .join(sf.broadcast(addresses.join(ends, "node")), towards | back)
        .where(sf.col("ts_ns") <= sf.col("end_ns"))
        .withColumn("down", towards)
        .withColumn("data", towards & sf.col("is_tcp") & (sf.col("payload_len") > 0))
        .withColumn("here", sf.col("link") == sf.col("node"))
    )
    sent = Window.partitionBy("node", "link", "data").orderBy("ts_ns")
    before = sent.rowsBetween(Window.unboundedPreceding, -1)
    place = sf.col("seq") - sf.first("seq").over(sent)
    known = (
        seen.withColumn("place", sf.pmod(place, sf.lit(SEQUENCE_NUMBERS)))
        .withColumn("reached", sf.max(sf.col("place") + sf.col("payload_len")).over(before))
        .withColumn("again", sf.col("data") & (sf.col("place") < sf.coalesce("reached", sf.lit(0))))
    )
    here, down, data, again = (sf.col(name) for name in ("here", "down", "data", "again"))
    return known.groupBy("node", "messages", "arrived").agg(
        _size(here & down).alias("down_bytes"),
        _count(here & down).alias("down_packets"),
        _count(~here & data & ~again).alias("data_packets"),
        _count(~here & again).alias("retransmitted_packets"),
        _size(~here & again).alias("retransmitted_bytes"),
        _size(here & ~down).alias("up_bytes"),
        _count(here & ~down).alias("up_packets"),
        _count(here & ~down & ~sf.col("is_tcp")).alias("answers"),
    )


def _ends(spark: SparkSession, run: Run, nodes: set[str]) -> DataFrame:
    """Number of messages that arrived at each node, and the end of the time that counts."""
    deliveries = spark.read.parquet(str(run.metrics / "deliveries.parquet"))
    return (
        deliveries.where(sf.col("receiver").isin(*nodes))
        .groupBy(sf.col("receiver").alias("node"))
        .agg(
            sf.count("*").alias("messages"),
            sf.count("received_ns").alias("arrived"),
            (sf.max("received_ns") + LAST_ANSWERS_NS).alias("end_ns"),
        )
    )


def _count(when: Column) -> Column:
    return sf.sum(sf.when(when, 1).otherwise(0))


def _size(when: Column) -> Column:
    return sf.sum(sf.when(when, sf.col("wirelen").cast("long")).otherwise(0))
