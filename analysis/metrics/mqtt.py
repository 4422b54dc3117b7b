"""mqtt: one row for each MQTT packet on each link it crossed. mqtt_deliveries: publications from publisher to receiver.

Brokers of others keep no log of ours, and MQTT numbers messages anew on each hop. So a publication is known by its
topic and its payload's digest; of several that are alike, the first that was sent is the first that arrived.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

SCHEMA = """
    link string, direction string, src string, dst string, version int, kind string, topic string, qos int,
    retain boolean, dup boolean, packet_id int, payload_bytes long, header_bytes long, properties_bytes long,
    digest string, first_ns long, last_ns long, complete boolean, packets int
"""
DELIVERIES_SCHEMA = """
    topic string, digest string, occurrence int, origin string, receiver string, payload_bytes long, qos int,
    retain boolean, sent_first_ns long, received_last_ns long, delay_s double
"""
SAME = ("topic", "digest")


def deliveries(packets: DataFrame) -> DataFrame:
    """Each arrival at a node that did not send it on, with the moment its first byte left its publisher's link."""
    published = packets.where("kind = 'PUBLISH' and complete and not dup and digest is not null")
    sent = published.where("direction = 'up' and link = src")
    origin = sent.groupBy(*SAME).agg(sf.min_by("src", "first_ns").alias("origin"))
    first = _numbered(sent.join(origin, list(SAME)).where("src = origin"), "first_ns")
    passed_on = sent.select(*SAME, sf.col("src").alias("dst")).distinct()
    passed_on = passed_on.join(origin, list(SAME)).where("dst != origin").drop("origin")
    came = published.where("direction = 'down' and link = dst")
    arrived = _numbered(came.join(passed_on, [*SAME, "dst"], "left_anti"), "last_ns", "dst")
    return (
        first.select(*SAME, "occurrence", "origin", sf.col("first_ns").alias("sent_first_ns"))
        .join(
            arrived.select(
                *SAME,
                "occurrence",
                sf.col("dst").alias("receiver"),
                "payload_bytes",
                "qos",
                "retain",
                sf.col("last_ns").alias("received_last_ns"),
            ),
            [*SAME, "occurrence"],
        )
        .select(
            *SAME,
            "occurrence",
            "origin",
            "receiver",
            "payload_bytes",
            "qos",
            "retain",
            "sent_first_ns",
            "received_last_ns",
            ((sf.col("received_last_ns") - sf.col("sent_first_ns")) / 1e9).alias("delay_s"),
        )
    )


def _numbered(rows: DataFrame, by: str, *of: str) -> DataFrame:
    """Those that are alike, in the order of time."""
    alike = Window.partitionBy(*SAME, *of).orderBy(by)
    return rows.withColumn("occurrence", sf.row_number().over(alike))
