"""The parts of a hop's time: propagation, transmission, retransmission, and the rest, which is queueing.

Each part in this order is at most what is left, so they add up, and none is negative:

    propagation     the configured delays of the hop's links
    transmission    the time of the message's bytes on otherwise idle links: all of it on the slowest link, and one
                    packet of it on each other link, since packets are pipelined
    retransmission  how much later the message was complete because packets were lost and sent again
    queue           everything else: in the node, in its kernel, before a link, behind jitter, in a TCP window
"""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from analysis.inputs.link_settings import PathToCore

PARTS = ("queue_s", "transmission_s", "propagation_s", "retransmission_s")
USUAL_PACKET_BYTES = 66.0  # around a segment: Ethernet 14, IP 20, TCP 32
PATHS = pa.schema(
    [
        ("node", pa.string()),
        ("direction", pa.string()),
        ("from_ns", pa.int64()),
        ("until_ns", pa.int64()),
        ("router", pa.string()),
        *((n, pa.float64()) for n in PathToCore._fields[5:]),
        ("packet_bytes", pa.float64()),
    ]
)


def paths_frame(
    spark: SparkSession, paths: list[PathToCore], packet_bytes: Mapping[tuple[str, str], float]
) -> DataFrame:
    """The paths as a small table; `packet_bytes`: bytes of a packet's headers on a (link, direction)."""
    rows = [
        {
            **path._asdict(),
            "packet_bytes": packet_bytes.get((path.node, path.direction), USUAL_PACKET_BYTES),
        }
        for path in paths
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, PATHS))


def with_parts(hops: DataFrame, paths: DataFrame) -> DataFrame:
    """Add the PARTS of each completed hop; null where a link is unknown.

    Needs ready_ns, sent_first_ns, received_last_ns, stream_bytes, packets, stalled_ns, repeated_up_ns,
    repeated_down_ns.
    """
    total = (sf.col("received_last_ns") - sf.col("ready_ns")) / 1e9
    apart = ~sf.coalesce(sf.col("up_router") == sf.col("down_router"), sf.lit(False))
    own, far = ("up_own", "down_own"), ("up_far", "down_far")

    def each(name: str) -> list[Column]:
        """The values of the four links that a hop may cross; two nodes behind one router meet in it."""
        return [
            *(sf.col(f"{link}_{name}") for link in own),
            *(sf.when(apart, sf.col(f"{link}_{name}")).otherwise(0.0) for link in far),
        ]

    wire_bytes = sf.col("stream_bytes") + sf.col("packets") * sf.col("up_packet_bytes")
    slowest = sf.greatest(*each("byte_s"))
    others = sum(each("byte_s"), sf.lit(0.0)) - slowest
    transmission = wire_bytes * (slowest + others / sf.greatest(sf.col("packets"), sf.lit(1.0)))
    joined = _join_path(_join_path(hops, paths, "up", "src"), paths, "down", "dst")
    known = sf.col("up_node").isNotNull() & sf.col("down_node").isNotNull() & total.isNotNull()
    parted = joined
    left = sf.greatest(total, sf.lit(0.0))
    for name, value in (
        ("propagation_s", sum(each("delay_s"), sf.lit(0.0))),
        ("transmission_s", transmission),
        ("retransmission_s", _lost_s()),
    ):
        parted = parted.withColumn(name, sf.when(known, sf.least(left, value)))
        left = sf.greatest(left - sf.col(name), sf.lit(0.0))
    taken = sf.col("propagation_s") + sf.col("transmission_s") + sf.col("retransmission_s")
    return parted.withColumn("queue_s", total - taken)


def _lost_s() -> Column:
    """The delay by retransmissions.

    A gap is visible on the receiver's link. Loss of the last packet after the sender's link is visible only there, as
    a retransmission before the message arrived, of which the receiver's link has one copy.
    """
    again = sf.when(
        (sf.coalesce(sf.col("repeated_down_ns"), sf.lit(0)) == 0)
        & (sf.col("sent_first_ns") + sf.col("repeated_up_ns") <= sf.col("received_last_ns")),
        sf.col("repeated_up_ns"),
    )
    return sf.greatest(sf.lit(0), sf.col("stalled_ns"), again) / 1e9


def _join_path(hops: DataFrame, paths: DataFrame, direction: str, end: str) -> DataFrame:
    """Join each hop with the path at one of its ends, at the time when the message was ready."""
    mine = paths.where(sf.col("direction") == direction).drop("direction")
    named = mine.select(*(sf.col(name).alias(f"{direction}_{name}") for name in mine.columns))
    ready = sf.col("ready_ns")
    there = (
        (sf.col(end) == sf.col(f"{direction}_node"))
        & (ready >= sf.col(f"{direction}_from_ns"))
        & (ready < sf.col(f"{direction}_until_ns"))
    )
    return hops.join(sf.broadcast(named), there, "left")


def packet_bytes(metrics: Path) -> dict[tuple[str, str], float]:
    """Mean size of a TCP packet's headers on each link and direction with packets."""
    names = ["link", "direction", "tcp_packets", "ethernet_bytes", "ip_bytes", "tcp_bytes"]
    rows = pq.read_table(metrics / "links.parquet", columns=names).to_pylist()
    return {
        (row["link"], row["direction"]): (
            row["ethernet_bytes"] + row["ip_bytes"] + row["tcp_bytes"]
        )
        / row["tcp_packets"]
        for row in rows
        if row["tcp_packets"]
    }
