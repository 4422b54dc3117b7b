"""datagrams: UDP flows, one row for each pair of addresses and ports on each link and direction."""

import pyarrow as pa

from analysis.protocols.udp import DATAGRAMS

SCHEMA = pa.schema(list(DATAGRAMS))
ROW = "a pair of addresses and ports that used UDP, on a link and direction"
COLUMNS = {
    "src": "sending node; for an unknown one, its address",
    "dst": "receiving node; for an unknown one, its address",
    "src_port": "port of the sender",
    "dst_port": "port of the receiver",
    "datagrams": "how many",
    "udp_acks": "how many of them are answers of `ack: udp`",
    "payload_bytes": "size of all payloads",
    "wire_bytes": "size of all frames",
    "first_ns": "time of the first datagram",
    "last_ns": "time of the last datagram",
}
