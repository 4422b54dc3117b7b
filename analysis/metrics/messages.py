"""messages: one row for each message on each link it crossed, as captured there."""

SCHEMA = """
    link string, direction string, src string, dst string, kind string, priority int, hops int, origin string,
    id string, topic string, payload_bytes long, published_ns long, first_ns long, last_ns long, complete boolean,
    frames int, websocket_bytes long, header_bytes long, pieces int, packets int, label_bytes long,
    flags int, overlay_kind int, carried_kind int, joined int, stalled_ns long, repeated_ns long
"""
