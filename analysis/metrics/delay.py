"""delay: what became of the expected deliveries, by priority."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

SCHEMA = """
    priority int, expected long, delivered long, lost long, duplicates long,
    p50 double, p95 double, p99 double, max double, hops_mean double, hops_max int
"""


def delay(deliveries: DataFrame) -> DataFrame:
    """Counts, exact percentiles of the delay (linear between neighbours), and hops. Lost messages have no delay."""
    came = sf.col("status") == "delivered"
    return deliveries.groupBy("priority").agg(
        sf.count("*").alias("expected"),
        sf.sum(came.cast("long")).alias("delivered"),
        sf.sum((~came).cast("long")).alias("lost"),
        sf.sum("duplicates").alias("duplicates"),
        *(
            sf.percentile("delay_s", share).alias(name)
            for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
        ),
        sf.max("delay_s").alias("max"),
        sf.avg("hops").alias("hops_mean"),
        sf.max("hops").alias("hops_max"),
    )
