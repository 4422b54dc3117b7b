"""The paper's figures as plain values: cells with what the paper says (`paper`) and what was computed (`ours`).

The text that we have tells what its figures show, with few numbers; where it is silent, `paper` is null.
Pure: means over trials in, JSON out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
SERVER, CHAIN, PULL = "server", "chain", "pull"
ASCENDING, DESCENDING = "push-ascending", "push-descending"
ASCENDING_JOINED, DESCENDING_JOINED = f"{ASCENDING}-aggregated", f"{DESCENDING}-aggregated"
PUSH = (ASCENDING, DESCENDING, ASCENDING_JOINED, DESCENDING_JOINED)
OF_PAPER = (
    SERVER,
    CHAIN,
    *PUSH,
)  # the six methods that it compares; pulling is told of beside them
OF_CELL = ("method", "nodes", "lists")
LISTS = "line"  # how the text is read; the other readings are shown beside
AT_MOST_ONE = "with aggregation a node sends at most 1 message in a unit of time"


@dataclass(frozen=True, slots=True)
class FigureOf:
    """What one figure shows, and what the paper says of methods in it."""

    name: str
    title: str
    axis: str
    values: Sequence[str]  # the first one is drawn
    said: Mapping[str, str] = field(default_factory=dict)


FIGURES = (
    FigureOf(
        "momentary",
        "Largest load of a node in a unit of time",
        "messages in a unit of time",
        ("momentary", "most_sent"),
        {
            SERVER: "Server's largest momentary load grows with the number of nodes",
            CHAIN: "Chain's is 2",
            ASCENDING_JOINED: AT_MOST_ONE,
            DESCENDING_JOINED: AT_MOST_ONE,
        },
    ),
    FigureOf(
        "largest",
        "Largest total load of a node in 2,520 units of time",
        "messages in 2,520 units of time",
        ("largest",),
    ),
    FigureOf(
        "load",
        "Load of all nodes (SL) for one unit of time",
        "messages for a unit of time",
        ("load",),
        {
            SERVER: "Server has the smallest SL",
            DESCENDING_JOINED: "descending with aggregation is next to Server"
            " (printed as “ascending … next to Server”, which must be a slip)",
            ASCENDING: "ascending without aggregation has the largest SL",
        },
    ),
    FigureOf(
        "fairness",
        "Fairness of load (FI)",
        "Jain's index",
        ("fairness",),
        {
            CHAIN: "Chain has the highest FI",
            ASCENDING_JOINED: "ascending with aggregation has the second highest FI",
            DESCENDING_JOINED: "descending with aggregation keeps its FI as nodes become more",
        },
    ),
    FigureOf(
        "hops-max",
        "Hops from a publisher to the subscriber, largest",
        "hops, largest",
        ("hops_max",),
        {CHAIN: "Chain's hops grow with the number of nodes"},
    ),
    FigureOf(
        "hops",
        "Hops from a publisher to the subscriber, mean over all that is sent",
        "hops, mean",
        ("hops", "hops_plain"),
        {CHAIN: "Chain's hops grow with the number of nodes"},
    ),
)


def figures(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """All figures in the paper's order."""
    return [
        {"figure": one.name, "title": one.title, "cells": list(_cells(one, rows))}
        for one in FIGURES
    ]


def _cells(figure: FigureOf, rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if not is_main(row) and row["method"] not in PUSH:
            continue  # nothing but pushing depends on what the lists are
        statement = figure.said.get(row["method"])
        yield {
            **{name: row[name] for name in OF_CELL},
            "paper": {"statement": statement} if statement else None,
            "ours": {value: row[value] for value in figure.values},
        }


def is_main(row: Row) -> bool:
    """Whether the text is read here as in this row."""
    return bool(row["lists"] == LISTS)
