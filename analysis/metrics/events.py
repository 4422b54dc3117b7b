"""events: what nodes wrote into their logs besides messages: starts and stops, links that came and went, notes."""

from pyspark.sql import DataFrame

SCHEMA = """
    t_ns long, node string, event string, peer string, id string, topic string, reason string, messages long
"""


def events(logs: DataFrame) -> DataFrame:
    """All but those that each message causes."""
    return logs.where(
        "event is not null and event not in ('publish', 'receive', 'duplicate', 'drop')"
    ).selectExpr("t as t_ns", "node", "event", "peer", "id", "topic", "reason", "messages")
