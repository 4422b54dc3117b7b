"""Bytes and packets of each traffic cell, by Spark from the captures: from the start until all messages have come.

What stood on the line before (the handshake) and comes after (keepalives, the end) is no part of it. Bytes are counted
on the client's link, behind the shaper. What the server sent for the first time and what again is told apart where it
left the server: there TCP sends in order, and what the queue in front of the line dropped never came to the client.
"""

from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from analysis.papers.lee2016.sheet import TRAFFIC, Sheet
from analysis.runfolder import Run
from analysis.scan import packets

SEQUENCE_NUMBERS = 1 << 32
LAST_ANSWERS_NS = 1_000_000_000  # acknowledgements of the last message follow within this time


def by_cell(spark: SparkSession, run: Run, sheet: Sheet) -> DataFrame | None:
    """One row a cell; None if the run has none. `data_packets`: of new data, each counted once."""
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
    """How many messages came to each node, and when it is over."""
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
