"""events: what nodes wrote into their logs besides messages: starts and stops, links that came and went, notes."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

SCHEMA = """
    t_ns long, node string, event string, peer string, id string, topic string, reason string, messages long
"""


def events(logs: DataFrame) -> DataFrame:
    """All but those that each message causes."""
    return logs.where(
        "event is not null and event not in ('publish', 'receive', 'duplicate', 'drop')"
    ).selectExpr("t as t_ns", "node", "event", "peer", "id", "topic", "reason", "messages")


class Event(NamedTuple):
    """A line of a node's log."""

    t_ns: int
    node: str
    event: str
    peer: str | None
    messages: int | None = None  # that it is about, if it says so


def in_order(events: Iterable[Event]) -> list[Event]:
    """By time; those of one node at one moment stay as they are."""
    return sorted(events, key=lambda event: (event.t_ns, event.node))


def broker_of(event: Event, brokers: Collection[str]) -> str | None:
    """The broker to which a sensor or subscriber was linked, if the event tells of that."""
    is_client = event.event == "connect" and event.node not in brokers
    return event.peer if is_client and event.peer in brokers else None


def read_events(metrics: Path) -> list[Event]:
    """The lines of the nodes' logs that are not about single messages."""
    table = pq.read_table(metrics / "events.parquet", columns=list(Event._fields))
    return [Event(*row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def connected(events: list[Event], brokers: Collection[str]) -> dict[str, list[tuple[int, str]]]:
    """When each sensor and subscriber was linked to which broker; nothing where there is no choice."""
    found: dict[str, list[tuple[int, str]]] = {}
    for event in in_order(events) if len(brokers) > 1 else ():
        if (broker := broker_of(event, brokers)) is not None:
            found.setdefault(event.node, []).append((event.t_ns, broker))
    return found
