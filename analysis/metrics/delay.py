"""delay: what became of the expected deliveries, by priority."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analysis.metrics.parts import PARTS

SCHEMA = """
    priority int, expected long, delivered long, lost long, duplicates long,
    p50 double, p95 double, p99 double, max double, hops_mean double, hops_max int, mean double, late long,
    out_of_order long, queue_s double, transmission_s double, propagation_s double, retransmission_s double,
    delay_error_s double, delay_error_max_s double
"""


def delay(deliveries: DataFrame) -> DataFrame:
    """Counts, exact percentiles of the delay (linear between neighbours), hops, and the mean of each part of the delay.

    Lost messages have no delay, and are neither late nor out of order. `late` is null where there is no deadline.
    `delay_error_s` and `delay_error_max_s`: the median and the largest of what the clocks of the ends may be off.
    """
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
        sf.avg("delay_s").alias("mean"),
        sf.when(
            sf.max("deadline_s").isNotNull(),
            sf.sum(sf.coalesce("late", sf.lit(False)).cast("long")),
        ).alias("late"),
        sf.sum(sf.coalesce("out_of_order", sf.lit(False)).cast("long")).alias("out_of_order"),
        *(sf.avg(part).alias(part) for part in PARTS),
        sf.percentile("delay_error_s", 0.5).alias("delay_error_s"),
        sf.max("delay_error_s").alias("delay_error_max_s"),
    )
