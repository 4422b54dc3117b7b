"""What is done for a cell: the only thing that whoever computes it calls, on this machine or on another."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from testbed.converged import (
    measure_collection,
    measure_levelling,
    measure_load,
    measure_mixed,
    measure_tables,
    measure_topics,
)
from testbed.protocol_runs import measure_stopping

Rows = Iterator[tuple[str, dict[str, Any]]]  # each with the name of its table


def measure(cell: Mapping[str, Any]) -> Rows:
    """The rows of a cell (`testbed.papers.cells.Cell.as_plain`)."""
    return EXPERIMENTS[cell["experiment"]](**cell["arguments"])


def _topics(**arguments: Any) -> Rows:
    for row in measure_topics(**arguments):
        yield "topics", row


def _tables(**arguments: Any) -> Rows:
    for row in measure_tables(**arguments):
        yield "tables", row


def _mixed(**arguments: Any) -> Rows:
    for row in measure_mixed(**arguments):
        yield "mixed", row


def _load(**arguments: Any) -> Rows:
    groups, totals = measure_load(**arguments)
    for row in groups:
        yield "load", row
    for row in totals:
        yield "load_totals", row


def _stopping(**arguments: Any) -> Rows:
    moments, totals = measure_stopping(**arguments)
    for row in moments:
        yield "stopping", row
    for row in totals:
        yield "stopping_totals", row


def _collection(**arguments: Any) -> Rows:
    for row in measure_collection(**arguments):
        yield "collection", row


def _waiting(**arguments: Any) -> Rows:
    # Nodes with links need more packages than whoever computes other cells has.
    from testbed.papers.waiting import measure_waiting

    readings, total = measure_waiting(**arguments)
    for row in readings:
        yield "waiting_readings", row
    yield "waiting", total


def _levelling(**arguments: Any) -> Rows:
    found = measure_levelling(**arguments)
    for name, rows in (
        ("levelling", found.totals),
        ("levelling_nodes", found.nodes),
        ("levelling_histogram", found.histogram),
        ("levelling_moments", found.moments),
    ):
        for row in rows:
            yield name, row


def _levelling_reading(**arguments: Any) -> Rows:
    for row in measure_levelling(**arguments).totals:
        yield "levelling", row


EXPERIMENTS: Mapping[str, Callable[..., Rows]] = {
    "topics": _topics,
    "tables": _tables,
    "mixed": _mixed,
    "load": _load,
    "stopping": _stopping,
    "levelling": _levelling,
    "levelling_reading": _levelling_reading,
    "collection": _collection,
    "waiting": _waiting,
}
