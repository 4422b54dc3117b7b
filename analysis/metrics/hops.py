"""hops: one row for each overlay link (src -> dst) that a message crossed, or began to cross, as its n-th hop.

    ready        sent_first         sent_last               received_last
      |  waited_s   |    sending_s     |      crossing_s          |
      +-------------+------------------+--------------------------+
      at src         first byte         last byte                  all bytes
                     on src's link      on src's link              on dst's link

`ready` is the publish time at the origin, elsewhere the arrival of the previous hop (a node may receive a message again
by a longer path, and send it only then). So the parts of all hops of a path add up to the delay. So do the parts by
cause (`delay_parts`).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analysis.metrics.delay_parts import PARTS, with_parts
from nodes.protocol.wire import REPEATED

SCHEMA = """
    id string, src string, dst string, origin string, topic string, priority int, hops int, payload_bytes long,
    published_ns long, ready_ns long, sent_first_ns long, sent_last_ns long, received_first_ns long,
    received_last_ns long, copies long, waited_s double, sending_s double, crossing_s double,
    stream_bytes long, packets double, queue_s double, transmission_s double, propagation_s double,
    retransmission_s double, sent long, repeated long
"""


def hops(messages: DataFrame, from_ns: int = 0, paths: DataFrame | None = None) -> DataFrame:
    """Join sightings on the sender's link with those on the receiver's, of publications since `from_ns`.

    `paths`: settings of the links (`delay_parts.paths_frame`); without them, the parts by cause are null.
    `copies`: complete copies that arrived; `sent`: copies that were sent, and `repeated`: those marked as repetitions.
    `stream_bytes` and `packets`: on the sender's link; a joined publication has its share of the packets.
    """
    # A message may also cross routers' links; a hop is from the sender's link to the receiver's.
    up = (sf.col("direction") == "up") & (sf.col("link") == sf.col("src"))
    down = (sf.col("direction") == "down") & (sf.col("link") == sf.col("dst"))
    whole = sf.col("complete")

    def earliest(column: str, when: Column) -> Column:
        return sf.min(sf.when(when, sf.col(column)))

    # Partitioned by id once: all groups and joins below find their rows in the same partition.
    published = (
        messages.where("kind = 'PUBLISH'")
        .where(sf.col("published_ns") >= from_ns)
        .repartition("id")
    )
    # Columns that are equal in all sightings of a message are part of the key: fixed-width aggregates need no sorting.
    same = ("id", "origin", "topic", "priority", "published_ns")
    size = sum(
        (sf.col(f"{part}_bytes") for part in ("websocket", "label", "header")), sf.lit(0)
    ) + sf.col("payload_bytes")
    crossed = published.groupBy(*same, "src", "dst", "hops").agg(
        sf.max("payload_bytes").alias("payload_bytes"),
        earliest("first_ns", up).alias("sent_first_ns"),
        earliest("last_ns", up & whole).alias("sent_last_ns"),
        earliest("first_ns", down).alias("received_first_ns"),
        earliest("last_ns", down & whole).alias("received_last_ns"),
        _count(down & whole).alias("copies"),
        _count(up).alias("sent"),
        _count(up & (sf.col("flags").bitwiseAND(REPEATED) > 0)).alias("repeated"),
        sf.max(size).alias("stream_bytes"),
        sf.max(sf.col("packets") / sf.coalesce("joined", sf.lit(1))).alias("packets"),
        sf.min_by("stalled_ns", sf.when(down & whole, sf.col("last_ns"))).alias("stalled_ns"),
        sf.max(sf.when(up, sf.col("repeated_ns"))).alias("repeated_up_ns"),
        sf.max(sf.when(down, sf.col("repeated_ns"))).alias("repeated_down_ns"),
    )
    arrived = crossed.groupBy(
        "id", sf.col("dst").alias("src"), (sf.col("hops") + 1).alias("hops")
    ).agg(sf.min("received_last_ns").alias("came_ns"))
    ready = sf.when(sf.col("src") == sf.col("origin"), sf.col("published_ns")).otherwise(
        sf.col("came_ns")
    )
    timed = crossed.join(arrived, ["id", "src", "hops"], "left").withColumn("ready_ns", ready)
    if paths is None:
        parted = timed.select("*", *(sf.lit(None).cast("double").alias(part) for part in PARTS))
    else:
        parted = with_parts(timed, paths)
    return parted.select(
        "id",
        "src",
        "dst",
        "origin",
        "topic",
        "priority",
        "hops",
        "payload_bytes",
        "published_ns",
        "ready_ns",
        "sent_first_ns",
        "sent_last_ns",
        "received_first_ns",
        "received_last_ns",
        "copies",
        seconds("ready_ns", "sent_first_ns").alias("waited_s"),
        seconds("sent_first_ns", "sent_last_ns").alias("sending_s"),
        seconds("sent_last_ns", "received_last_ns").alias("crossing_s"),
        "stream_bytes",
        "packets",
        *PARTS,
        "sent",
        "repeated",
    )


def _count(condition: Column) -> Column:
    """Number of rows that fulfil the condition; traces of earlier versions have no flags."""
    return sf.sum(sf.coalesce(condition, sf.lit(False)).cast("long"))


def seconds(begin: str, end: str) -> Column:
    """The time between two columns of nanoseconds."""
    return (sf.col(end) - sf.col(begin)) / 1e9
