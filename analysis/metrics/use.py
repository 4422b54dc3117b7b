"""use: what each link carried in each direction in each unit of time, and what share of its rate that is."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analysis.lines import Lines

SCHEMA = """
    link string, direction string, unit long, from_ns long, packets long, bytes long, rate_bps double, share double
"""
COUNTED = "link string, direction string, from_ns long, packets long, bytes long"
RATES = pa.schema(
    [
        ("line", pa.string()),
        ("way", pa.string()),
        ("begin_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("rate_bps", pa.float64()),
    ]
)


def use(counts: DataFrame, lines: Lines, begin_ns: int, unit_s: float) -> DataFrame:
    """Unit 0 begins with the time that counts; what was before has negative numbers.

    The share is of what the line was asked to carry when the unit began; null where it had no limit.
    """
    rates = [
        (link, direction, asked.from_ns, asked.until_ns, asked.rate_bps)
        for (link, direction), times in lines.items()
        for asked in times
    ]
    table = pa.table(
        [
            pa.array(column, field.type)
            for column, field in zip(zip(*rates, strict=True), RATES, strict=True)
        ],
        schema=RATES,
    )
    asked = counts.sparkSession.createDataFrame(table)
    unit_ns = round(unit_s * 1e9)
    there = (
        (sf.col("link") == sf.col("line"))
        & (sf.col("direction") == sf.col("way"))
        & (sf.col("from_ns") >= sf.col("begin_ns"))
        & (sf.col("from_ns") < sf.col("end_ns"))
    )
    return counts.join(sf.broadcast(asked), there, "left").select(
        "link",
        "direction",
        sf.floor((sf.col("from_ns") - begin_ns) / unit_ns).cast("long").alias("unit"),
        "from_ns",
        "packets",
        "bytes",
        "rate_bps",
        (sf.col("bytes") * 8 / (sf.col("rate_bps") * unit_s)).alias("share"),
    )
