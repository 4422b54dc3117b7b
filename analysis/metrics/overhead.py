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
ROW = "a link, direction and layer"
COLUMNS = {
    "layer": "layer that the bytes belong to",
    "bytes": "bytes of this layer",
}
LINKS_ROW = "a link and direction"
LINKS_COLUMNS = {
    "packets": "all packets",
    "wire_bytes": "all bytes; the layers add up to it",
    "ethernet_bytes": "layer: Ethernet headers and padding of TCP packets",
    "ip_bytes": "layer: IP headers of TCP packets",
    "tcp_bytes": "layer: TCP headers",
    "retransmitted_bytes": "layer: TCP payload that had been seen on this link before",
    "websocket_bytes": "layer: frame heads and masks, ping, pong, close, the HTTP upgrade",
    "label_bytes": "layer: labels of chunks",
    "header_bytes": "layer: our headers of publications",
    "payload_bytes": "layer: payload of publications",
    "control_bytes": "layer: control messages, whole",
    "unread_bytes": "layer: stream bytes in which no message could be read",
    "udp_acks_bytes": "layer: datagrams of `ack: udp`, whole",
    "other_bytes": "layer: packets that are neither TCP nor UDP over IPv4, whole",
    "mqtt_bytes": "layer: MQTT without the payload of publications",
    "datagrams_bytes": "layer: other UDP over IPv4, whole",
    "tcp_packets": "TCP packets",
    "data_packets": "TCP packets that carry bytes",
    "ack_packets": "TCP packets that only acknowledge",
    "retransmitted_packets": "packets that bring bytes again, or fill a gap after more than 3 ms",
    "retransmitted_payload": "TCP payload of these packets",
    "reordered_packets": "packets that fill a gap within 3 ms",
    "udp_ack_packets": "datagrams of `ack: udp`",
    "other_packets": "packets that are neither TCP nor UDP over IPv4",
    "datagram_packets": "other UDP packets",
    "connections": "TCP connections",
    "publish_messages": "publications",
    "control_messages": "control messages",
    "compressed_messages": "messages that were compressed, and so not read",
    "compressed_streams": "streams of compressed WebSockets, which are not read",
    "orphan_pieces": "chunks whose message has no beginning",
    "missing_bytes": "stream bytes that are missing although their receiver acknowledged them",
    "lost_tail_bytes": "bytes of the capture file outside of complete records; with the direction `up`",
    "mqtt_messages": "publications by MQTT",
    "mqtt_control": "other MQTT packets",
}
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
