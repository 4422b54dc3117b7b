"""datagrams: UDP flows, one row for each pair of addresses and ports on each link and direction."""

SCHEMA = """
    link string, direction string, src string, dst string, src_port int, dst_port int, datagrams long, udp_acks long,
    payload_bytes long, wire_bytes long, first_ns long, last_ns long
"""
