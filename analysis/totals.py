"""What a link and direction cost: the columns, and all that can be counted without looking into streams."""

from typing import Any

import numpy.typing as npt
import pyarrow as pa

from analysis.pcap import ACK, FIN, RST, SYN, Packets

Array = npt.NDArray[Any]

# The *_bytes of the layers add up to wire_bytes.
TOTALS = pa.struct(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        *(
            (name, pa.int64())
            for name in (
                "packets",
                "wire_bytes",
                "ethernet_bytes",
                "ip_bytes",
                "tcp_bytes",
                "retransmitted_bytes",
                "websocket_bytes",
                "label_bytes",
                "header_bytes",
                "payload_bytes",
                "control_bytes",
                "unread_bytes",
                "answers_bytes",
                "other_bytes",
                "tcp_packets",
                "data_packets",
                "ack_packets",
                "retransmitted_packets",
                "retransmitted_payload",
                "reordered_packets",
                "answer_packets",
                "other_packets",
                "connections",
                "publish_messages",
                "control_messages",
                "compressed_messages",
                "orphan_pieces",
                "missing_bytes",
                "lost_tail_bytes",
                "mqtt_bytes",
                "mqtt_messages",
                "mqtt_control",
                "datagrams_bytes",
                "datagram_packets",
                "compressed_streams",
            )
        ),
    ]
)
COUNTS = tuple(field.name for field in TOTALS if field.name not in ("link", "direction"))


def packet_totals(packets: Packets, chosen: Array) -> dict[str, int]:
    """Of the chosen packets."""
    tcp, datagrams = chosen & packets.is_tcp, chosen & packets.is_udp
    other = chosen & ~tcp & ~datagrams
    wire = packets.wirelen
    ethernet = wire[tcp] - packets.ip_len[tcp]  # header, and padding of short frames
    quiet = packets.flags & (SYN | FIN | RST) == 0
    return {
        "packets": int(chosen.sum()),
        "wire_bytes": int(wire[chosen].sum()),
        "ethernet_bytes": int(ethernet.sum()),
        "ip_bytes": int(packets.ip_header[tcp].sum()),
        "tcp_bytes": int(packets.tcp_header[tcp].sum()),
        "datagrams_bytes": int(wire[datagrams].sum()),
        "other_bytes": int(wire[other].sum()),
        "tcp_packets": int(tcp.sum()),
        "data_packets": int((tcp & (packets.payload_len > 0)).sum()),
        "ack_packets": int(
            (tcp & quiet & (packets.payload_len == 0) & (packets.flags & ACK > 0)).sum()
        ),
        "datagram_packets": int(datagrams.sum()),
        "other_packets": int(other.sum()),
    }
