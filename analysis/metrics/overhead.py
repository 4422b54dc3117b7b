"""links: totals of each link and direction. overhead: the same bytes, one row for each layer."""

import pyarrow as pa

from analysis.metrics.tables import TYPES, schema, summed
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
LINKS_SCHEMA = pa.schema(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        *((name, TYPES["long"]) for name in COUNTS),
    ]
)
SCHEMA = schema("link string, direction string, layer string, bytes long")
HEADERS = ("tcp_packets", "ethernet_bytes", "ip_bytes", "tcp_bytes")


def links(totals: pa.Table) -> pa.Table:
    """Sum the totals of a scan (`analysis.scan`) over the parts of a link's file."""
    return summed(totals, ["link", "direction"], COUNTS).cast(LINKS_SCHEMA)


def overhead(links: pa.Table) -> pa.Table:
    """Bytes by link, direction and layer."""
    parts = [
        pa.table(
            [
                links["link"],
                links["direction"],
                pa.repeat(layer, links.num_rows),
                links[f"{layer}_bytes"],
            ],
            schema=SCHEMA,
        )
        for layer in LAYERS
    ]
    return pa.concat_tables(parts).combine_chunks()


def header_bytes(links: pa.Table) -> dict[tuple[str, str], float]:
    """Mean size of a TCP packet's headers on each link and direction with packets."""
    return {
        (row["link"], row["direction"]): (
            row["ethernet_bytes"] + row["ip_bytes"] + row["tcp_bytes"]
        )
        / row["tcp_packets"]
        for row in links.select(["link", "direction", *HEADERS]).to_pylist()
        if row["tcp_packets"]
    }
