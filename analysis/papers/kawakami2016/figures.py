"""The paper's figures as plain values: cells with the paper's statement (`paper`) and our computation (`ours`).

The text that we have describes its figures with few numbers; where it says nothing, `paper` is null.
Pure: means over trials in, JSON out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from analysis.papers.methods import METHODS
from analysis.papers.reproduction import NOT_MEASURED, check

Row = Mapping[str, Any]
SERVER, CHAIN, PULL = "server", "chain", "pull"
ASCENDING, DESCENDING = "push-ascending", "push-descending"
ASCENDING_JOINED, DESCENDING_JOINED = f"{ASCENDING}-aggregated", f"{DESCENDING}-aggregated"
PUSH = (ASCENDING, DESCENDING, ASCENDING_JOINED, DESCENDING_JOINED)
OF_PAPER = (
    SERVER,
    CHAIN,
    *PUSH,
)  # the six methods that it compares; pulling is an addition
OF_CELL = ("method", "nodes", "lists")
LISTS = "line"  # the main reading of the text; others are shown beside it
AT_MOST_ONE = "with aggregation a node sends at most 1 message in a unit of time"


@dataclass(frozen=True, slots=True)
class FigureOf:
    """The content of a figure, and the paper's statements on methods in it."""

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
            continue  # only pushing depends on the lists
        statement = figure.said.get(row["method"])
        yield {
            **{name: row[name] for name in OF_CELL},
            "paper": {"statement": statement} if statement else None,
            "ours": {value: row[value] for value in figure.values},
        }


def is_main(row: Row) -> bool:
    """Whether the row is of the main reading of the text."""
    return bool(row["lists"] == LISTS)


# Checks: each statement of the paper, with the numbers behind it. Pure.
#
# The main reading of the text is judged; other readings that fail are named.


Values = Mapping[int, Mapping[str, Mapping[str, float]]]  # by nodes, method, and what was measured
Verdict = tuple[bool, str]
CLOSE_BY = 1.3  # times Server's SL: our interpretation of the paper's wording
KEEPS = 0.9  # of the FI with the fewest nodes: likewise


def checks(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured), and the numbers."""
    readings = {lists: _values(rows, lists) for lists in sorted({row["lists"] for row in rows})}
    return [_judged(name, judge, readings) for name, judge in SENTENCES.items()]


def _values(rows: Iterable[Row], lists: str) -> Values:
    found: dict[int, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row["lists"] == lists and row["method"] in OF_PAPER:
            of_size = found.setdefault(row["nodes"], {})
            of_size[row["method"]] = {
                name: value["mean"] for name, value in row.items() if isinstance(value, Mapping)
            }
    return dict(sorted(found.items()))


def _judged(
    name: str, judge: Callable[[Values], Verdict], readings: Mapping[str, Values]
) -> dict[str, Any]:
    if not readings.get(LISTS):
        return check(name, None, NOT_MEASURED)
    ok, found = judge(readings[LISTS])
    failing = [
        lists for lists, values in readings.items() if lists != LISTS and not judge(values)[0]
    ]
    beside = f"; not so if lists are read as {' or '.join(failing)}" if failing else ""
    return check(name, ok, found + beside)


def _grows(method: str, value: str) -> Callable[[Values], Verdict]:
    def judge(values: Values) -> Verdict:
        course = {nodes: row[method][value] for nodes, row in values.items()}
        ok = all(less < more for less, more in pairwise(course.values()))
        return ok and len(course) > 1, _by_nodes(course)

    return judge


def _is(methods: Sequence[str], value: str, wanted: float) -> Callable[[Values], Verdict]:
    def judge(values: Values) -> Verdict:
        found = [row[method][value] for row in values.values() for method in methods]
        return all(one == wanted for one in found), f"{min(found):.3g} to {max(found):.3g}"

    return judge


def _ranks(value: str, place: int, method: str) -> Callable[[Values], Verdict]:
    """Whether the method has this rank among the six, from the smallest, at every number of nodes."""

    def judge(values: Values) -> Verdict:
        there = {
            nodes: sorted(row, key=lambda name, row=row: row[name][value])[place]  # type: ignore[misc]
            for nodes, row in values.items()
        }
        text = _by_nodes({nodes: row[method][value] for nodes, row in values.items()})
        others = {name for name in there.values() if name != method}
        instead = (
            f"; in its place {', '.join(METHODS[name] for name in sorted(others))}"
            if others
            else ""
        )
        return not others, text + instead

    return judge


def _close_by(values: Values) -> Verdict:
    ratios = {
        nodes: row[DESCENDING_JOINED]["load"] / row[SERVER]["load"] for nodes, row in values.items()
    }
    return max(ratios.values()) <= CLOSE_BY, f"of Server's: {_by_nodes(ratios)}"


def _keeps(values: Values) -> Verdict:
    course = {nodes: row[DESCENDING_JOINED]["fairness"] for nodes, row in values.items()}
    first = next(iter(course.values()))
    return min(course.values()) >= KEEPS * first, _by_nodes(course)


def _by_nodes(course: Mapping[int, float]) -> str:
    """The values as text, by number of nodes."""
    return ", ".join(
        f"{nodes}: {value:,.0f}" if abs(value) >= 1_000 else f"{nodes}: {value:.3g}"
        for nodes, value in course.items()
    )


SENTENCES: Mapping[str, Callable[[Values], Verdict]] = {
    "Server's largest momentary load grows with the number of nodes": _grows(SERVER, "momentary"),
    "Chain's largest momentary load is 2": _is([CHAIN], "momentary", 2),
    "with aggregation a node sends at most 1 message in a unit of time": _is(
        [ASCENDING_JOINED, DESCENDING_JOINED, CHAIN], "most_sent", 1
    ),
    "SL is smallest with Server": _ranks("load", 0, SERVER),
    "SL is second with descending and aggregation": _ranks("load", 1, DESCENDING_JOINED),
    f"and close by: at most {CLOSE_BY} x Server's": _close_by,
    "SL is largest with ascending without aggregation": _ranks("load", -1, ASCENDING),
    "FI is highest with Chain": _ranks("fairness", -1, CHAIN),
    "FI is second with ascending and aggregation": _ranks("fairness", -2, ASCENDING_JOINED),
    f"descending with aggregation keeps its FI (at least {KEEPS} x) as nodes become more": _keeps,
    "Chain's largest number of hops grows with the number of nodes": _grows(CHAIN, "hops_max"),
    "Chain's mean number of hops grows with the number of nodes": _grows(CHAIN, "hops"),
}
