"""The paper's figures as plain values: cells with the paper's statement (`paper`) and our measurement (`ours`).

The text that we have describes each plot in a sentence; where it says nothing, `paper` is null.
Pure: means over trials in, JSON out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.papers.reproduction import NOT_MEASURED, all_hold, check

Row = Mapping[str, Any]
BEFORE, AFTER = "before", "after"
WHEN = (BEFORE, AFTER)
BOTH, LEFT = "both", "left"
GIVE = {BOTH: "half to each neighbour (the text)", LEFT: "all to the left one (ours, live)"}
RULE = ("k", "e", "e_of", "give", "movers")
WORKLOAD = ("bits", "subscriptions", "sensors", "events_per_sensor", "scale", "side", "events_at")
READING = ("nodes", "rounds", *WORKLOAD, *RULE)
SHARES = ("to_50", "above_250")
VALUES = ("largest", "fairness", *SHARES, "from_500", "none_from_500", "load", "copies", "moves")
OF_EFFECT = ("largest", "fairness", "from_500", "moves")
STATEMENTS = {
    BEFORE: "before levelling, more than half of the nodes have a load of 0 to 50, and very few one of more than 250",
    AFTER: "after levelling, no node has a load of 500 or more",
}
E_OF = {"mean": "of the sample's mean", "load": "events x subscriptions"}


def figures(
    totals: Sequence[Row], nodes: Sequence[Row], histogram: Sequence[Row], moments: Sequence[Row]
) -> list[dict[str, Any]]:
    """The paper's figures, then ours on open questions."""
    usual = usual_reading(moments)
    return [
        _figure("load", "Load by node id, in groups of 10 nodes", _by_node(nodes)),
        _figure("histogram", "How many nodes have which load", _histogram(histogram)),
        _figure("levelled", "All nodes, before and after", _levelled(totals, usual)),
        _figure("rounds", "Load over rounds (not in the paper)", _rounds(moments)),
        _figure("e", "What the threshold e does", _by_e(totals, usual)),
        _figure("k", "What the size k of a sample does", _by(totals, usual, "k")),
        _figure("readings", "Other readings of the text", _readings(totals, usual)),
    ]


def usual_reading(moments: Sequence[Row]) -> dict[str, Any]:
    """The main reading, with which all others are compared: only it is measured round by round."""
    return next(
        ({name: row[name] for name in READING} for row in moments if row["give"] == BOTH), {}
    )


def differs_in(row: Row, usual: Row) -> set[str]:
    """The parameters in which a row differs from the main reading."""
    return {name for name in usual if row[name] != usual[name]}


def _figure(name: str, title: str, cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"figure": name, "title": title, "cells": list(cells)}


def _by_node(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for row in _in_time(rows, "give", "when", "from_node"):
        head = {name: row[name] for name in ("give", "when", "from_node")}
        yield {**head, "paper": None, "ours": {name: row[name] for name in ("load", "largest")}}


def _histogram(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for row in _in_time(rows, "give", "when", "from_load"):
        head = {name: row[name] for name in ("give", "when", "from_load")}
        yield {**head, "paper": _statement(row["when"]), "ours": {"nodes_in": row["nodes_in"]}}


def _levelled(rows: Sequence[Row], usual: Row) -> Iterator[dict[str, Any]]:
    for row in _in_time(rows, "give", "when"):
        if differs_in(row, usual) <= {"give"}:
            yield {
                "give": row["give"],
                "when": row["when"],
                "paper": _statement(row["when"]),
                "ours": {name: row[name] for name in VALUES},
            }


def _rounds(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for row in sorted(rows, key=lambda row: (row["give"], row["round"])):
        yield {
            "give": row["give"],
            "round": row["round"],
            "paper": None,
            "ours": {name: row[name] for name in OF_EFFECT},
        }


def _by_e(rows: Sequence[Row], usual: Row) -> Iterator[dict[str, Any]]:
    own = [row for row in rows if differs_in(row, usual) <= {"e", "e_of"} and row["when"] == AFTER]
    for row in sorted(own, key=lambda row: (list(E_OF).index(row["e_of"]), row["e"])):
        ours = {name: row[name] for name in OF_EFFECT}
        yield {"e_of": row["e_of"], "e": row["e"], "paper": None, "ours": ours}


def _by(rows: Sequence[Row], usual: Row, name: str) -> Iterator[dict[str, Any]]:
    own = [row for row in rows if differs_in(row, usual) <= {name} and row["when"] == AFTER]
    for row in sorted(own, key=lambda row: row[name]):
        ours = {value: row[value] for value in OF_EFFECT}
        yield {name: row[name], "paper": None, "ours": ours}


def _readings(rows: Sequence[Row], usual: Row) -> Iterator[dict[str, Any]]:
    """Other workloads and movers; the main reading is first."""
    for name in ("", *WORKLOAD, "movers"):
        wanted = {name} if name else set()
        own = [row for row in rows if differs_in(row, usual) == wanted]
        for row in _in_time(own, *([name] if name else []), "when"):
            yield {
                "reading": f"{name.replace('_', ' ')} {row[name]}" if name else "the usual one",
                "when": row["when"],
                "paper": _statement(row["when"]),
                "ours": {value: row[value] for value in (*OF_EFFECT, *SHARES)},
            }


def _statement(when: str) -> dict[str, str]:
    return {"statement": STATEMENTS[when]}


def _in_time(rows: Iterable[Row], *names: str) -> list[Row]:
    """Sort by these columns; `before` precedes `after`."""
    return sorted(
        rows,
        key=lambda row: tuple(
            WHEN.index(row[name]) if name == "when" else row[name] for name in names
        ),
    )


# Checks of the reproduction: a sentence with the numbers behind it. Pure.


FEW = 0.05  # of the nodes
MOST_TRIALS = 0.9
FAIRER = 2.0
ALIKE = 0.1


def checks(totals: Sequence[Row], usual: Row) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured), and the numbers."""
    found = {
        (row["give"], row["when"]): row for row in totals if differs_in(row, usual) <= {"give"}
    }
    return [
        _share(
            found.get((BOTH, BEFORE)),
            "to_50",
            "before, more than half of the nodes have a load of 0 to 50",
            lambda share: share > 0.5,
        ),
        _share(
            found.get((BOTH, BEFORE)),
            "above_250",
            f"before, very few have more than 250 (at most {FEW:.0%})",
            lambda share: share <= FEW,
        ),
        *(_none_from_500(found.get((give, AFTER)), give) for give in (BOTH, LEFT)),
        _fairer(found),
        _as_well(found),
        _every_reading(totals),
    ]


def _share(row: Row | None, value: str, name: str, holds: Any) -> dict[str, Any]:
    if row is None:
        return check(name, None, NOT_MEASURED)
    return check(name, holds(row[value]["mean"]), f"{row[value]['mean']:.1%} of the nodes")


def _none_from_500(row: Row | None, give: str) -> dict[str, Any]:
    name = (
        f"after, no node has 500 or more, in at least {MOST_TRIALS:.0%} of the trials (give {give})"
    )
    if row is None:
        return check(name, None, NOT_MEASURED)
    share = row["none_from_500"]["mean"]
    text = f"{share:.0%} of {row['none_from_500']['trials']} trials; the largest is {row['largest']['mean']:,.0f}"
    return check(name, share >= MOST_TRIALS, f"{text} in the mean")


def _fairer(found: Mapping[tuple[str, str], Row]) -> dict[str, Any]:
    name = f"levelling at least doubles the fairness of load ({FAIRER:g} x Jain's index)"
    values = [
        (after["fairness"]["mean"] / found[give, BEFORE]["fairness"]["mean"], f"give {give}")
        for (give, when), after in found.items()
        if when == AFTER and (give, BEFORE) in found
    ]
    return all_hold(name, values, lambda value: value >= FAIRER, "smallest")


def _as_well(found: Mapping[tuple[str, str], Row]) -> dict[str, Any]:
    """Compare fairness, to which all nodes contribute: the largest load depends on which few nodes were sampled."""
    name = f"who gives all to the left neighbour levels about as well (fairness at most {ALIKE:.0%} lower)"
    both, left = found.get((BOTH, AFTER)), found.get((LEFT, AFTER))
    if both is None or left is None:
        return check(name, None, NOT_MEASURED)
    fair = {give: row["fairness"]["mean"] for give, row in ((BOTH, both), (LEFT, left))}
    text = ", ".join(f"{give} {value:.3f}" for give, value in fair.items())
    largest = f"largest load {both['largest']['mean']:,.0f} and {left['largest']['mean']:,.0f}"
    return check(name, fair[LEFT] >= (1 - ALIKE) * fair[BOTH], f"{text}; {largest}")


def _every_reading(totals: Sequence[Row]) -> dict[str, Any]:
    name = "levelling makes the load fairer by each reading of the text"
    before = {_reading(row): row for row in totals if row["when"] == BEFORE}
    values = [
        (row["fairness"]["mean"] / before[place]["fairness"]["mean"], _describe(row))
        for row in totals
        if row["when"] == AFTER and (place := _reading(row)) in before
    ]
    return all_hold(name, values, lambda value: value > 1, "smallest")


def _reading(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in READING)


def _describe(row: Row) -> str:
    names = ("events_per_sensor", "scale", "side", "k", "e", "e_of", "give")
    return ", ".join(f"{name.replace('_', ' ')} {row[name]}" for name in names)
