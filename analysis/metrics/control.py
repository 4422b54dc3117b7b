"""control: messages other than publications that each node sent and received, by kind; overlay messages by their kinds.

`wire_bytes`: all bytes of a message on a node's link: its own, its frames and labels, and its share of packet headers.
A packet with several messages counts for each of them, so on each link and direction the headers are scaled to the
actual number of packets. Pure acknowledgements are left out.
"""

from collections.abc import Collection, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from analysis.protocols.overlay_messages import CARRIED_KINDS, OVERLAY_KINDS

SCHEMA = """
    node string, direction string, between_brokers boolean, kind string, overlay_kind string, carried_kind string,
    messages long, message_bytes long, wire_bytes double, bytes_per_s double
"""


def control(
    messages: DataFrame, links: DataFrame, brokers: Collection[str], begin_ns: int, end_ns: int
) -> DataFrame:
    """Count the messages that began in this time; `bytes_per_s` is their average over it."""
    own = messages.where("(direction = 'up' and link = src) or (direction = 'down' and link = dst)")
    place = ("link", "direction")
    touched = own.groupBy(*place).agg(sf.sum("packets").alias("touched"))
    header = (
        links.where("tcp_packets > 0")
        .join(touched, list(place))
        .select(
            *place,
            (
                sf.least(sf.lit(1.0), sf.col("data_packets") / sf.col("touched"))
                * (sf.col("ethernet_bytes") + sf.col("ip_bytes") + sf.col("tcp_bytes"))
                / sf.col("tcp_packets")
            ).alias("packet_bytes"),
        )
    )
    size = sum(
        (sf.col(f"{part}_bytes") for part in ("websocket", "label", "header")), sf.lit(0)
    ) + sf.col("payload_bytes")
    both = sf.col("src").isin(list(brokers)) & sf.col("dst").isin(list(brokers))
    seconds = max((end_ns - begin_ns) / 1e9, 1e-9)
    return (
        own.where("kind != 'PUBLISH'")
        .where(sf.col("first_ns").between(begin_ns, end_ns))
        .join(sf.broadcast(header), list(place))
        .groupBy(
            sf.col("link").alias("node"),
            "direction",
            both.alias("between_brokers"),
            "kind",
            _named("overlay_kind", OVERLAY_KINDS).alias("overlay_kind"),
            _named("carried_kind", CARRIED_KINDS).alias("carried_kind"),
        )
        .agg(
            sf.count("*").alias("messages"),
            sf.sum(size).alias("message_bytes"),
            sf.sum(size + sf.col("packets") * sf.col("packet_bytes")).alias("wire_bytes"),
        )
        .withColumn("bytes_per_s", sf.col("wire_bytes") / seconds)
    )


def _named(column: str, names: Mapping[int, str]) -> Column:
    """The name of a number; without a name, the number itself."""
    known = sf.create_map(*(sf.lit(part) for pair in names.items() for part in pair))
    return sf.coalesce(known[sf.col(column)], sf.col(column).cast("string"))
