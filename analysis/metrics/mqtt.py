"""mqtt: one row for each MQTT packet on each link it crossed. mqtt_deliveries: publications from publisher to receiver.

Other brokers write no logs of ours, and MQTT numbers messages anew on each hop. So a publication is identified by its
topic and its payload's digest. Among equal publications the n-th that arrived at a broker is the n-th that each
receiver got: brokers keep the order (MQTT 5.0, 4.6). That is certain only if a receiver got as many as were sent.
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
    retain boolean, sent_first_ns long, received_last_ns long, delay_s double, sure boolean
"""
SAME = ("topic", "digest")


def deliveries(packets: DataFrame) -> DataFrame:
    """Each arrival at a node that is not a broker and did not forward it, with the time since it left its publisher.

    A broker is a node that sends CONNACK: a publication that it could not forward is not a delivery to the broker.
    """
    whole = packets.where("kind = 'PUBLISH' and complete and digest is not null")
    published = _without_repetitions(whole)
    sent = published.where("direction = 'up' and link = src")
    came = published.where("direction = 'down' and link = dst")
    had = came.groupBy(*SAME, sf.col("dst").alias("src")).agg(sf.min("last_ns").alias("had_ns"))
    senders = sent.groupBy(*SAME, "src").agg(sf.min("first_ns").alias("began_ns"))
    senders = senders.join(had, [*SAME, "src"], "left")
    passed_on = senders.where("had_ns <= began_ns").select(*SAME, sf.col("src").alias("dst"))
    own = senders.where("had_ns is null or had_ns > began_ns").select(*SAME, "src")
    first = _numbered(_at_broker(sent.join(own, [*SAME, "src"]), came), "at_broker_ns")
    brokers = packets.where("kind = 'CONNACK'").select(sf.col("src").alias("dst")).distinct()
    received = came.join(passed_on, [*SAME, "dst"], "left_anti").join(brokers, "dst", "left_anti")
    arrived = _numbered(received, "last_ns", "dst")
    return (
        first.select(
            *SAME,
            "occurrence",
            sf.col("alike").alias("of_sent"),
            sf.col("src").alias("origin"),
            sf.col("first_ns").alias("sent_first_ns"),
        )
        .join(
            arrived.select(
                *SAME,
                "occurrence",
                sf.col("alike").alias("of_arrived"),
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
            (sf.col("of_sent") == sf.col("of_arrived")).alias("sure"),
        )
    )


def _without_repetitions(published: DataFrame) -> DataFrame:
    """Each publication once on each link: one marked DUP counts only if there is no earlier one.

    With a packet id (QoS 1 and 2) it repeats the one with the same id.
    """
    on_link = ("link", "direction", "src", "dst", "packet_id")
    before = sf.row_number().over(Window.partitionBy(*SAME, *on_link).orderBy("last_ns"))
    return published.withColumn("nth", before).where("not dup or nth = 1").drop("nth")


def _at_broker(sent: DataFrame, came: DataFrame) -> DataFrame:
    """Add the time at which each arrived at the broker; TCP keeps the order on the way."""
    mine = _numbered(sent, "first_ns", "src", "dst").drop("alike")
    there = _numbered(came, "last_ns", "src", "dst").select(
        *SAME, "src", "dst", "occurrence", sf.col("last_ns").alias("there_ns")
    )
    joined = mine.join(there, [*SAME, "src", "dst", "occurrence"], "left").drop("occurrence")
    return joined.withColumn("at_broker_ns", sf.coalesce("there_ns", "last_ns"))


def _numbered(rows: DataFrame, by: str, *of: str) -> DataFrame:
    """Number equal publications in the order of time, and count them."""
    alike = Window.partitionBy(*SAME, *of)
    numbered = rows.withColumn("occurrence", sf.row_number().over(alike.orderBy(by)))
    return numbered.withColumn("alike", sf.count("*").over(alike))
