"""Delays of urgent messages in each cell, by Spark from the run's deliveries. Times are the thesis': scaled back.

A message that had not come when the capture ended is censored: it counts, and has no delay.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from analysis.papers.lee2016.sheet import DELAY, Sheet
from analysis.runfolder import Run


def delays(spark: SparkSession, run: Run, sheet: Sheet) -> DataFrame:
    """One row for each urgent message and cell.

    `waiting`: how many urgent messages were in front of it, on which the model's bound depends.
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


def by_cell(delays: DataFrame, standard_period_s: float) -> DataFrame:
    """What the figures say of each cell. `growth`: seconds of delay more with each second.

    Between two SMs the queue of an overloaded line shrinks by a second each second; what it would be at the last SM is
    compared, so that a few messages are enough.
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
