"""load: what each node had to do in each unit of time: messages of all kinds that it received and sent.

The load is that of Kawakami 2016, L = alpha x received + beta x sent. A message counts when all of it had come to its
receiver, and when its first byte had left its sender. Publications that travel joined are one message together, since
that is what joining is for. Units in which a node did nothing have no row.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analysis.load import UNIT_S

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
