"""publications: one row for each publication in a node's log."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

SCHEMA = """
    id string, origin string, topic string, priority int, payload_bytes long, published_ns long, late_s double,
    place array<long>
"""
LOG_SCHEMA = """
    t long, node string, event string, id string, topic string, priority int, size long, late_ns long,
    peer string, reason string, messages long, place array<long>
"""


def publications(logs: DataFrame, from_ns: int = 0) -> DataFrame:
    """The `publish` records from this time on. A line that was truncated when its node was killed is no record."""
    return (
        _published(logs)
        .where(sf.col("t") >= from_ns)
        .select(
            "id",
            sf.col("node").alias("origin"),
            "topic",
            "priority",
            sf.col("size").alias("payload_bytes"),
            sf.col("t").alias("published_ns"),
            (sf.col("late_ns") / 1e9).alias("late_s"),
            "place",
        )
        .dropDuplicates(["id"])
    )


def count_before(logs: DataFrame, from_ns: int) -> int:
    """Number of publications before this time."""
    return _published(logs).where(sf.col("t") < from_ns).select("id").distinct().count()


def _published(logs: DataFrame) -> DataFrame:
    return logs.where("event = 'publish' and id is not null")


def receptions(logs: DataFrame) -> DataFrame:
    """How often each node's application received each message, and how often a duplicate was discarded, by its log."""
    return (
        logs.where("event in ('receive', 'duplicate') and id is not null")
        .groupBy("id", sf.col("node").alias("receiver"))
        .agg(
            *(
                sf.sum((sf.col("event") == event).cast("long")).alias(name)
                for name, event in (("handed", "receive"), ("suppressed", "duplicate"))
            )
        )
    )


def drops(logs: DataFrame) -> DataFrame:
    """Messages dropped by full queues, with node and peer; a closed link has no queue."""
    return (
        logs.where("event = 'drop' and id is not null and peer is not null")
        .where("reason is null or reason not like 'there is no link%'")
        .select("id", sf.col("node").alias("dropper"), "peer")
        .distinct()
    )
