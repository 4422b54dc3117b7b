"""What must be true of a reproduction of Kawakami 2016: each sentence of the paper, with the numbers behind it. Pure.

They are judged by the reading of the text that is the default; what the other readings would give is told beside.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from analysis.papers.judging import NOT_MEASURED, check
from analysis.papers.kawakami2016.figures import (
    ASCENDING,
    ASCENDING_JOINED,
    CHAIN,
    DESCENDING_JOINED,
    LISTS,
    OF_PAPER,
    SERVER,
)
from analysis.papers.ways import METHODS

Row = Mapping[str, Any]
Values = Mapping[int, Mapping[str, Mapping[str, float]]]  # by nodes, method, and what was measured
Verdict = tuple[bool, str]
CLOSE_BY = 1.3  # times Server's SL: our reading of the paper's word
KEEPS = 0.9  # of the FI at the fewest nodes: likewise


def checks(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured here), and the numbers."""
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
        return ok and len(course) > 1, _told(course)

    return judge


def _is(methods: Sequence[str], value: str, wanted: float) -> Callable[[Values], Verdict]:
    def judge(values: Values) -> Verdict:
        found = [row[method][value] for row in values.values() for method in methods]
        return all(one == wanted for one in found), f"{min(found):.3g} to {max(found):.3g}"

    return judge


def _ranks(value: str, place: int, method: str) -> Callable[[Values], Verdict]:
    """Whether the method has this place among the six, from the smallest on, at every number of nodes."""

    def judge(values: Values) -> Verdict:
        there = {
            nodes: sorted(row, key=lambda name, row=row: row[name][value])[place]  # type: ignore[misc]
            for nodes, row in values.items()
        }
        told = _told({nodes: row[method][value] for nodes, row in values.items()})
        others = {name for name in there.values() if name != method}
        instead = (
            f"; in its place {', '.join(METHODS[name] for name in sorted(others))}"
            if others
            else ""
        )
        return not others, told + instead

    return judge


def _close_by(values: Values) -> Verdict:
    ratios = {
        nodes: row[DESCENDING_JOINED]["load"] / row[SERVER]["load"] for nodes, row in values.items()
    }
    return max(ratios.values()) <= CLOSE_BY, f"of Server's: {_told(ratios)}"


def _keeps(values: Values) -> Verdict:
    course = {nodes: row[DESCENDING_JOINED]["fairness"] for nodes, row in values.items()}
    first = next(iter(course.values()))
    return min(course.values()) >= KEEPS * first, _told(course)


def _told(course: Mapping[int, float]) -> str:
    """By number of nodes."""
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
