"""messages: one row for each message on each link it crossed, as captured there."""

import pyarrow as pa

from analysis.protocols.messages import SIGHTING

SCHEMA = pa.schema(list(SIGHTING))
ROW = "a message on a link"
COLUMNS = {
    "src": "sender on this link; for an unknown node, its address",
    "dst": "receiver on this link; for an unknown node, its address",
    "kind": "PUBLISH, or the kind of control message",
    "hops": "overlay links from the origin on, as the header counts them",
    "first_ns": "its first byte passed the capture point",
    "last_ns": "it and all bytes of its stream before it had passed",
    "complete": "false: its end was not captured",
    "frames": "WebSocket frames that carry it",
    "websocket_bytes": "heads and masks of these frames",
    "header_bytes": "our header, topic included",
    "pieces": "chunks that carry it",
    "packets": "TCP packets that carry it, repetitions left out",
    "label_bytes": "labels of these chunks",
    "flags": "the header's flags",
    "overlay_kind": "of an overlay message: the first byte of its payload",
    "carried_kind": "of an overlay message that carries another one: the first byte of that",
    "joined": "publications that came in one message; 1: alone",
    "stalled_ns": "from the first byte beyond its end, or its own last byte, until all bytes up to its end were there",
    "repeated_ns": "its last byte passed once more",
}
