"""events: log records of nodes other than messages: starts and stops, links that opened and closed, notes."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.metrics.publications import RECORDED
from analysis.metrics.tables import conform, schema

SCHEMA = schema("""
    t_ns long, node string, event string, peer string, id string, topic string, reason string, messages long
""")
ROW = "a line of a node's log that is not about a single message"
COLUMNS = {
    "t_ns": "when",
    "node": "whose log",
    "event": "name of the event, as in `connect`",
    "peer": "the other node, if there is one",
    "id": "message that it concerns, if it is one",
    "topic": "topic, if it concerns one",
    "reason": "why, if the node says so",
    "messages": "number of messages that it concerns, if known",
}


def events(logs: pa.Table) -> pa.Table:
    """All records except those of single messages."""
    field = pc.field("event")
    rows = logs.filter(field.is_valid() & ~field.isin(RECORDED))
    return conform(rows.append_column("t_ns", rows["t"]), SCHEMA)


class Event(NamedTuple):
    """A record of a node's log."""

    t_ns: int
    node: str
    event: str
    peer: str | None
    messages: int | None = None  # number of messages that it concerns, if known


def in_order(events: Iterable[Event]) -> list[Event]:
    """Sort by time; records of one node at one moment keep their order."""
    return sorted(events, key=lambda event: (event.t_ns, event.node))


def broker_of(event: Event, brokers: Collection[str]) -> str | None:
    """The broker to which a client connected, if the event is a connection of a client."""
    is_client = event.event == "connect" and event.node not in brokers
    return event.peer if is_client and event.peer in brokers else None


def listed(events: pa.Table) -> list[Event]:
    """The rows of `events` as records."""
    columns = events.select(list(Event._fields)).columns
    return [Event(*row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def read_events(metrics: Path) -> list[Event]:
    """Read the metric `events`."""
    return listed(pq.read_table(metrics / "events.parquet", columns=list(Event._fields)))


def connected(events: list[Event], brokers: Collection[str]) -> dict[str, list[tuple[int, str]]]:
    """Client -> times and brokers of its links; empty if there is one broker."""
    found: dict[str, list[tuple[int, str]]] = {}
    for event in in_order(events) if len(brokers) > 1 else ():
        if (broker := broker_of(event, brokers)) is not None:
            found.setdefault(event.node, []).append((event.t_ns, broker))
    return found
