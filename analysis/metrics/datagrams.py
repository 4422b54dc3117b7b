"""datagrams: who sent UDP to whom, one row for each pair of addresses and ports on each link and direction."""

from pyspark.sql import DataFrame

SCHEMA = """
    link string, direction string, src string, dst string, src_port int, dst_port int, datagrams long, answers long,
    payload_bytes long, wire_bytes long, first_ns long, last_ns long
"""


def datagrams(scan: DataFrame) -> DataFrame:
    """The flows of a scan (`analysis.scan`)."""
    return scan.where("datagrams is not null").select("datagrams.*")
