"""deliveries: one row for each message and each subscriber who should get it: delivered, or lost and where."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analysis.metrics.hops import seconds

SCHEMA = """
    id string, receiver string, origin string, topic string, priority int, payload_bytes long, published_ns long,
    status string, reason string, hops int, path array<string>, received_ns long, delay_s double, duplicates long,
    confirmed boolean
"""
DELIVERED, LOST = "delivered", "lost"
NEVER_SENT = "never sent"


def deliveries(
    publications: DataFrame,
    wanted: DataFrame,
    hops: DataFrame,
    receptions: DataFrame,
    brokers: Sequence[str],
) -> DataFrame:
    """A message is delivered when all its bytes were seen on the receiver's link.

    `wanted`: topic, receiver. `receptions`: id, receiver, by the receivers' own account (`confirmed`).
    """
    expected = publications.join(sf.broadcast(wanted), "topic").where("receiver != origin")
    arrived = sf.col("a.received_ns").isNotNull()
    path = _path(sf.col("receiver"), sf.col("origin"), sf.col("m.previous"), sf.col("m.senders"))
    return (
        expected.alias("e")
        .join(_arrivals(hops).alias("a"), ["id", "receiver"], "left")
        .join(_movements(hops, brokers).alias("m"), ["id"], "left")
        .join(receptions.withColumn("said", sf.lit(True)), ["id", "receiver"], "left")
        .withColumn("path", sf.when(arrived, path))
        .withColumn("began_ns", sf.coalesce("a.began_ns", "e.published_ns"))
        .select(
            "id",
            "receiver",
            "origin",
            "topic",
            "priority",
            "e.payload_bytes",
            sf.col("began_ns").alias("published_ns"),
            sf.when(arrived, DELIVERED).otherwise(LOST).alias("status"),
            sf.when(~arrived, _reason()).alias("reason"),
            sf.when(arrived, sf.size("path") - 1).alias("hops"),
            "path",
            "a.received_ns",
            seconds("began_ns", "received_ns").alias("delay_s"),
            sf.when(arrived, sf.col("a.copies") - 1).otherwise(sf.lit(0)).alias("duplicates"),
            sf.coalesce("said", sf.lit(False)).alias("confirmed"),
        )
    )


def _arrivals(hops: DataFrame) -> DataFrame:
    """How far each message came on the last link, to each node that it was sent to."""
    return hops.groupBy("id", sf.col("dst").alias("receiver")).agg(
        sf.min("received_last_ns").alias("received_ns"),
        sf.min("published_ns").alias("began_ns"),
        sf.sum("copies").alias("copies"),
        sf.min("received_first_ns").isNotNull().alias("touched"),
        sf.coalesce(
            sf.min_by("src", "received_last_ns"),
            sf.min_by("src", sf.coalesce("sent_first_ns", "received_first_ns")),
        ).alias("last_sender"),
    )


def _movements(hops: DataFrame, brokers: Sequence[str]) -> DataFrame:
    """What became of each message as a whole: who sent it, who had it from whom, where it got stuck."""
    came = sf.col("received_last_ns").isNotNull()
    to_broker = sf.col("dst").isin(list(brokers))
    first_from = (
        hops.where(came).groupBy("id", "dst").agg(sf.min_by("src", "received_last_ns").alias("src"))
    )
    senders = sf.collect_set("src")
    previous = first_from.groupBy("id").agg(
        sf.collect_list(sf.struct("dst", "src")).alias("came_from")
    )
    stuck = sf.struct("src", "dst", sf.col("received_first_ns").isNotNull().alias("touched"))
    whole = hops.groupBy("id").agg(
        senders.alias("senders"),
        sf.max(sf.col("src") == sf.col("origin")).alias("sent"),
        sf.min_by(
            sf.when(to_broker & ~came, stuck), sf.when(to_broker & ~came, sf.col("hops"))
        ).alias("stuck"),
        sf.max_by(
            sf.when(to_broker & came, sf.col("dst")),
            sf.when(to_broker & came, sf.col("received_last_ns")),
        ).alias("furthest"),
    )
    # Only nodes that also send can be on the way: keeps the map small however many subscribers there are.
    onward = sf.filter("came_from", lambda pair: sf.array_contains(sf.col("senders"), pair["dst"]))
    return whole.join(previous, ["id"], "left").select(
        "id", "senders", "sent", "stuck", "furthest", sf.map_from_entries(onward).alias("previous")
    )


def _path(receiver: Column, origin: Column, previous: Column, senders: Column) -> Column:
    """The nodes from origin to receiver: backwards from whom each one had the message first."""

    def step(path: Column, _: Column) -> Column:
        before = sf.try_element_at(previous, path[0])
        return sf.when((path[0] == origin) | before.isNull(), path).otherwise(
            sf.concat(sf.array(before), path)
        )

    start = sf.array(sf.col("a.last_sender"), receiver)
    return sf.aggregate(senders, start, step)


def _reason() -> Column:
    """Where a message was lost, from the last place that it was seen at."""
    stuck = sf.col("m.stuck")

    def between(src: Column, dst: Column) -> Column:
        return sf.concat(sf.lit("lost between "), src, sf.lit(" and "), dst)

    return (
        sf.when(sf.coalesce("m.sent", sf.lit(False)) == sf.lit(False), sf.lit(NEVER_SENT))
        .when(sf.col("a.touched"), sf.concat(sf.lit("incomplete at "), sf.col("receiver")))
        .when(
            sf.col("a.last_sender").isNotNull(),
            between(sf.col("a.last_sender"), sf.col("receiver")),
        )
        .when(stuck["touched"], sf.concat(sf.lit("incomplete at "), stuck["dst"]))
        .when(stuck.isNotNull(), between(stuck["src"], stuck["dst"]))
        .otherwise(
            sf.concat(
                sf.lit("not forwarded by "), sf.coalesce(sf.col("m.furthest"), sf.col("origin"))
            )
        )
    )
