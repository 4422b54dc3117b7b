"""publications: one row for each message that a node's log says it published."""

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
    """The `publish` records from this moment on. A line that was cut off when its node was killed is no record."""
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
    """How many messages had been published before this moment."""
    return _published(logs).where(sf.col("t") < from_ns).select("id").distinct().count()


def _published(logs: DataFrame) -> DataFrame:
    return logs.where("event = 'publish' and id is not null")


def receptions(logs: DataFrame) -> DataFrame:
    """How often which node's application got which message, and how often it was held back, by its own account."""
    return (
        logs.where("event in ('receive', 'duplicate') and id is not null")
        .groupBy("id", sf.col("node").alias("receiver"))
        .agg(
            *(
                sf.sum((sf.col("event") == event).cast("long")).alias(name)
                for name, event in (("handed", "receive"), ("held_back", "duplicate"))
            )
        )
    )


def drops(logs: DataFrame) -> DataFrame:
    """Whose queue had no room for which message on its way to whom; a link that had gone has no queue."""
    return (
        logs.where("event = 'drop' and id is not null and peer is not null")
        .where("reason is null or reason not like 'there is no link%'")
        .select("id", sf.col("node").alias("dropper"), "peer")
        .distinct()
    )
