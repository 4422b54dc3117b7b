"""links: totals of each link and direction. overhead: the same bytes, one row for each layer."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from analysis.protocols.link import COUNTS

# From the wire inwards; together these are all bytes of all packets.
LAYERS = (
    "ethernet",
    "ip",
    "tcp",
    "retransmitted",
    "websocket",
    "label",
    "header",
    "payload",
    "control",
    "mqtt",
    "unread",
    "udp_acks",
    "datagrams",
    "other",
)
LINKS_SCHEMA = ", ".join(["link string", "direction string", *(f"{name} long" for name in COUNTS)])
SCHEMA = "link string, direction string, layer string, bytes long"


def links(totals: DataFrame) -> DataFrame:
    """Sum the totals of a scan (`analysis.scan`) over the parts of a link's file."""
    return totals.groupBy("link", "direction").agg(*(sf.sum(name).alias(name) for name in COUNTS))


def overhead(links: DataFrame) -> DataFrame:
    """Bytes by link, direction and layer."""
    return links.select(
        "link",
        "direction",
        sf.explode(
            sf.array(
                *(
                    sf.struct(sf.lit(layer).alias("layer"), sf.col(f"{layer}_bytes").alias("bytes"))
                    for layer in LAYERS
                )
            )
        ).alias("row"),
    ).select("link", "direction", "row.*")
