"""The paper's figures as plain values: cells with what the paper says (`paper`) and what was measured (`ours`).

The text that we have tells what its figures show, with no numbers; where it is silent, `paper` is null.
Pure: means over trials in, JSON out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.papers.ways import OF_WAY

Row = Mapping[str, Any]
SG, SCRIBE = "sg-tbps", "scribe"
OF_TOPIC = ("pattern", "publishers", "subscribers", "nodes")
LOADS = ("sent", "received", "forwarded")
GROUP = 1_000  # nodes
CORRELATED = (
    "in SG-TBPS received and forwarded correlate clearly: who forwards more also receives more"
)
UNCORRELATED = "in Scribe received and forwarded correlate hardly"
LEAVES = "nodes that forward nothing exist only in SG-TBPS"
RELATION = {SG: f"{CORRELATED}; {LEAVES}", SCRIBE: UNCORRELATED}


def figures(
    topics: Sequence[Row], load: Sequence[Row], totals: Sequence[Row]
) -> list[dict[str, Any]]:
    """All figures in the paper's order."""
    return [
        _figure("path", "Mean path length by size of topics and overlay", _topics(topics, "path")),
        _figure(
            "forwards",
            "Messages for one publication (not in the paper)",
            _topics(topics, "forwards"),
        ),
        _figure("load", "Load of nodes in groups of 1,000, most forwards first", _load(load)),
        _figure("correlation", "Does who receives more also forward more?", _totals(totals)),
    ]


def _figure(name: str, title: str, cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"figure": name, "title": title, "cells": list(cells)}


def _topics(rows: Sequence[Row], value: str) -> Iterator[dict[str, Any]]:
    for row in rows:
        head = {name: row[name] for name in (*OF_TOPIC, *OF_WAY)}
        yield {**head, "paper": None, "ours": {value: row[value]}}


def _load(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {
            "method": row["method"],
            "from_node": row["node_rank_group"] * GROUP,
            "paper": None,
            "ours": {name: row[name] for name in LOADS},
        }


def _totals(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        statement = RELATION.get(row["method"])
        yield {
            "method": row["method"],
            "nodes": row["nodes"],
            "paper": {"statement": statement} if statement else None,
            "ours": {name: row[name] for name in ("correlation", "without_forwards")},
        }
