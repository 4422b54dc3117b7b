"""The paper's figures as plain values: cells with the paper's statement (`paper`) and our measurement (`ours`).

The text that we have describes its figures without numbers; where it says nothing, `paper` is null.
Pure: means over trials in, JSON out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.papers.methods import OF_WAY
from analysis.papers.reproduction import NOT_MEASURED, all_hold, check

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


# Checks of the reproduction: a sentence with the numbers behind it. Pure.


ALIKE = 0.1  # of the path
CLEARLY, HARDLY = 0.3, 0.1  # correlation
RARE = 0.2


def checks(topics: Sequence[Row], totals: Sequence[Row]) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured), and the numbers."""
    return [
        _relay_free(topics),
        _correlation(totals, SG, f"correlate clearly in SG-TBPS (at least {CLEARLY})"),
        _correlation(totals, SCRIBE, f"hardly correlate in Scribe (at most {HARDLY})"),
        _leaves(totals),
    ]


def _relay_free(rows: Sequence[Row]) -> dict[str, Any]:
    """Only a topic's own nodes forward it, so the number of other nodes does not matter."""
    paths: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row["method"] == SG:
            found = paths.setdefault((row["pattern"], row["strategy"]), {})
            found[row["nodes"]] = row["path"]["mean"]
    changes = [
        (max(found.values()) / min(found.values()) - 1, f"pattern {pattern}, {strategy}")
        for (pattern, strategy), found in paths.items()
        if len(found) > 1
    ]
    name = "SG-TBPS's paths do not depend on the size of the overlay (at most 10 % apart)"
    return all_hold(name, changes, lambda change: change <= ALIKE)


def _correlation(rows: Sequence[Row], method: str, statement: str) -> dict[str, Any]:
    name = f"received and forwarded {statement}"
    own = [row["correlation"]["mean"] for row in rows if row["method"] == method]
    if not own:
        return check(name, None, NOT_MEASURED)
    value = own[0]
    return check(name, value >= CLEARLY if method == SG else abs(value) <= HARDLY, f"{value:.2f}")


def _leaves(rows: Sequence[Row]) -> dict[str, Any]:
    """In the paper only SG-TBPS has such nodes. Here a few nodes are on no path to a root, either."""
    name = (
        f"nodes that forward nothing are common in SG-TBPS, and in Scribe at most {RARE} x as many"
    )
    idle = {row["method"]: row["without_forwards"]["mean"] for row in rows}
    if not {SG, SCRIBE} <= set(idle):
        return check(name, None, NOT_MEASURED)
    found = f"SG-TBPS {idle[SG]:,.0f}, Scribe {idle[SCRIBE]:,.0f}"
    return check(name, idle[SG] > 0 and idle[SCRIBE] <= RARE * idle[SG], found)
