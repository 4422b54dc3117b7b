"""The thesis' figures as plain values: cells with the thesis' statement (`paper`) and our measurement (`ours`).

The text that we have describes its figures with few numbers; where it says nothing, `paper` is null.
Pure: means over trials in, JSON out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.papers.methods import OF_WAY, title, titles
from analysis.papers.reproduction import NOT_MEASURED, all_hold, check

Row = Mapping[str, Any]
PRIORITIES = (1, 2, 3, 4, 5)
HIGHEST = 5
LARGE, SMALL = ("a", "b", "c"), ("d", "e", "f")  # topics of 1,000 and of 10 nodes
SG, PSG, FAN, ATM, PATM = "sg-tbps", "psg-tbps", "fan-tbps", "atm-tbps", "patm-tbps"
# The main reading of the thesis where it is ambiguous; the others are shown beside it.
STRATEGY, SUPPORT, SUPPORT_FROM = "search", "next", "publishers"
OTHER_SUPPORT = "exact"
SAME = "priority 1 is the same as SG-TBPS"
SHORTER = "at priority 5 paths are up to about 60 % shorter than with SG-TBPS"
LITTLE = "topics of 10 nodes gain nothing or little"
MANY = "forwarded messages grow strongly with many publishers and a high priority"
ONE_HOP = "about one hop up to 50 subscribers, then several"
ALIKE = "PATM-TBPS with priority 5 and ATM-TBPS hardly differ in path"
FEWER = "PATM-TBPS forwards far fewer messages than PSG-TBPS"
OF_TOPIC = ("pattern", "publishers", "subscribers", "nodes")
OF_TABLES = ("subscribers", "nodes", "table_size")


def figures(topics: Sequence[Row], tables: Sequence[Row]) -> list[dict[str, Any]]:
    """All figures in the thesis' order, and our own at the end."""
    return [
        *(
            _figure(
                f"path-{priority}",
                f"Mean path length at priority {priority}",
                _paths(topics, priority),
            )
            for priority in PRIORITIES
        ),
        _figure(
            "forwards-5",
            "Messages for one publication at priority 5",
            _values(
                topics, "forwards", HIGHEST, lambda row: MANY if row["method"] == PSG else None
            ),
        ),
        _figure(
            "delay",
            "Estimated delay by priority",
            (cell for p in PRIORITIES for cell in _values(topics, "delay_ms", p, lambda _: None)),
        ),
        _figure("tables-path", "Mean path length with tables of 60 entries", _tables_path(tables)),
        _figure(
            "tables-forwards",
            "Messages for one publication with tables of 60 entries",
            _tables(tables, ("forwards",), {PATM: FEWER}),
        ),
        _figure("ours", "Ours beside PSG-TBPS at priority 5: path and messages", _beside(topics)),
    ]


def _figure(name: str, title: str, cells: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"figure": name, "title": title, "cells": list(cells)}


def _statement(statement: str | None) -> dict[str, str] | None:
    return None if statement is None else {"statement": statement}


def of_priority(rows: Iterable[Row], priority: int) -> Iterator[Row]:
    """The thesis' methods at this priority; SG-TBPS has no priorities, so it is the same at all."""
    for row in rows:
        if row["method"] == PSG and row["priority"] == priority:
            yield row
        elif row["method"] == SG:
            yield {**row, "priority": priority}


def place(row: Row) -> tuple[Any, ...]:
    """The key of the topics of a row."""
    return tuple(row[name] for name in OF_TOPIC)


def base_paths(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """SG-TBPS's row for each topic and strategy."""
    return {(*place(row), row["strategy"]): row for row in rows if row["method"] == SG}


def _head(row: Row, names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _paths(rows: Sequence[Row], priority: int) -> Iterator[dict[str, Any]]:
    base = base_paths(rows)
    for row in of_priority(rows, priority):
        plain = base.get((*place(row), row["strategy"]))
        yield {
            **_head(row, (*OF_TOPIC, *OF_WAY, "priority")),
            "paper": _statement(_of_path(row)),
            "ours": {
                "path": row["path"],
                "starts": row["starts"]["mean"],
                "of_sg": row["path"]["mean"] / plain["path"]["mean"] if plain else None,
            },
        }


def _of_path(row: Row) -> str | None:
    if row["method"] != PSG:
        return None
    if row["priority"] == 1:
        return SAME
    if row["pattern"] in SMALL:
        return LITTLE
    return SHORTER if row["priority"] == HIGHEST else None


def _values(rows: Sequence[Row], value: str, priority: int, said: Any) -> Iterator[dict[str, Any]]:
    for row in of_priority(rows, priority):
        yield {
            **_head(row, (*OF_TOPIC, *OF_WAY, "priority")),
            "paper": _statement(said(row)),
            "ours": {value: row[value]},
        }


def _tables_path(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    return _tables(rows, ("path", "one_hop", "delay_ms"), {ATM: ONE_HOP, PATM: ALIKE})


def _tables(
    rows: Sequence[Row], values: Iterable[str], said: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {
            **_head(row, (*OF_TABLES, "method", "priority")),
            "paper": _statement(said.get(row["method"])),
            "ours": {value: row[value] for value in values},
        }


def _beside(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Ours at the highest priority, beside each reading of PSG-TBPS."""
    for ours, psg in beside_psg(rows):
        yield {
            **_head(psg, (*OF_TOPIC, *OF_WAY, "priority")),
            "paper": None,
            "ours": {
                "path": ours["path"],
                "psg_path": psg["path"],
                "path_of_psg": ours["path"]["mean"] / psg["path"]["mean"],
                "forwards": ours["forwards"],
                "psg_forwards": psg["forwards"],
                "forwards_of_psg": ours["forwards"]["mean"] / psg["forwards"]["mean"],
            },
        }


def beside_psg(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Pairs of ours and PSG-TBPS for the same topics, one for each reading."""
    ours = {place(row): row for row in rows if row["method"] == FAN and at_highest(row)}
    for row in rows:
        if row["method"] == PSG and at_highest(row) and place(row) in ours:
            yield ours[place(row)], row


def is_main(row: Row) -> bool:
    """Whether the row is of the main reading of PSG-TBPS."""
    wanted = (STRATEGY, SUPPORT, SUPPORT_FROM)
    return (row["strategy"], row["support"], row["support_from"]) == wanted


def at_highest(row: Row) -> bool:
    return bool(row["priority"] == HIGHEST)


# Checks of the reproduction: a sentence with the numbers behind it. Pure.


EXACTLY = 1e-9
LEAST_GAIN, MOST_GAIN = 0.5, 0.7  # what "up to about 60 % shorter" may be
MOST_LITTLE = 0.5  # of what large topics gain
ONE_HOP_UNTIL, SEVERAL_FROM = 50, 100  # subscribers
ABOUT_ONE = 1.05  # hops
MOST_ALIKE = 0.1
FAR_FEWER = 0.5
PATH_OF_PSG, FORWARDS_OF_PSG = 1.05, 0.3
OURS = "ours (fan-TBPS) at priority 5, patterns a to c"


def checks(topics: Sequence[Row], tables: Sequence[Row]) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured), and the numbers."""
    return [
        _same_at_priority_1(topics),
        _shorter_at_priority_5(topics),
        _little_in_small_topics(topics),
        _more_messages(topics),
        _one_hop(tables),
        _several_hops(tables),
        _alike(tables),
        _fewer_than_psg(tables),
        _ours_path(topics),
        _ours_messages(topics),
    ]


def _where(row: Row) -> str:
    return f"pattern {row['pattern']}, {row['nodes']:,} nodes"


def _of_sg(
    rows: Sequence[Row], value: str, wanted: Callable[[Row], bool]
) -> list[tuple[float, Row]]:
    """PSG-TBPS's value divided by SG-TBPS's with the same strategy."""
    base = base_paths(rows)
    return [
        (row[value]["mean"] / plain[value]["mean"], row)
        for row in rows
        if row["method"] == PSG
        and wanted(row)
        and (plain := base.get((*place(row), row["strategy"])))
    ]


def _same_at_priority_1(rows: Sequence[Row]) -> dict[str, Any]:
    ratios = [
        (abs(ratio - 1), f"{value}, {_where(row)}")
        for value in ("path", "forwards")
        for ratio, row in _of_sg(rows, value, lambda row: row["priority"] == 1)
    ]
    name = "PSG-TBPS at priority 1 is SG-TBPS: path and messages differ by nothing"
    return all_hold(name, ratios, lambda ratio: ratio < EXACTLY)


def _gains(rows: Sequence[Row], patterns: Sequence[str]) -> dict[str, float]:
    """The largest reduction of the path at priority 5, for each reading of PSG-TBPS."""
    found = _of_sg(rows, "path", lambda row: at_highest(row) and row["pattern"] in patterns)
    return {
        way: max(1 - ratio for ratio, row in found if title(row) == way)
        for way in titles(row for _, row in found)
    }


def _shorter_at_priority_5(rows: Sequence[Row]) -> dict[str, Any]:
    gains = _gains(rows, LARGE)
    name = (
        "at priority 5 paths are up to about 60 % shorter than with SG-TBPS: "
        "50 to 70 % in one reading of the text at least"
    )
    text = "; ".join(f"{_reading(way)} {gain:.0%}" for way, gain in gains.items())
    near = any(LEAST_GAIN <= gain <= MOST_GAIN for gain in gains.values())
    return check(name, near if gains else None, text or NOT_MEASURED)


def _little_in_small_topics(rows: Sequence[Row]) -> dict[str, Any]:
    """The readings in which publishers help are judged; the others are reported."""
    large, small = _gains(rows, LARGE), _gains(rows, SMALL)
    name = (
        "where publishers help, topics of 10 nodes gain at most half of what topics of 1,000 gain"
    )
    text = "; ".join(
        f"{_reading(way)} {small[way]:.0%} of {gain:.0%}"
        for way, gain in large.items()
        if way in small
    )
    judged = [
        small[way] <= MOST_LITTLE * gain
        for way, gain in large.items()
        if way in small and SUPPORT_FROM in way
    ]
    return check(name, all(judged) if judged else None, text or NOT_MEASURED)


def _reading(way: str) -> str:
    return way.split(", ", 1)[-1]


def _more_messages(rows: Sequence[Row]) -> dict[str, Any]:
    name = "at priority 5 messages grow with the number of publishers (patterns a < b < c, of SG-TBPS's)"
    found = _of_sg(rows, "forwards", lambda row: at_highest(row) and is_main(row))
    sizes = sorted({row["nodes"] for _, row in found})
    grow = {
        nodes: [ratio for ratio, row in found if row["nodes"] == nodes and row["pattern"] in LARGE]
        for nodes in sizes
    }
    whole = {nodes: ratios for nodes, ratios in grow.items() if len(ratios) == len(LARGE)}
    text = "; ".join(
        f"{nodes:,} nodes: " + ", ".join(f"{ratio:.3g} x" for ratio in ratios)
        for nodes, ratios in whole.items()
    )
    ok = all(ratios == sorted(ratios) and ratios[0] > 1 for ratios in whole.values())
    return check(name, ok if whole else None, text or NOT_MEASURED)


def _one_hop(rows: Sequence[Row]) -> dict[str, Any]:
    paths = [
        (row["path"]["mean"], f"{row['method']}, {row['subscribers']} subscribers")
        for row in rows
        if row["method"] in (ATM, PATM) and row["subscribers"] <= ONE_HOP_UNTIL
    ]
    name = "ATM- and PATM-TBPS take about one hop up to 50 subscribers"
    return all_hold(name, paths, lambda path: path <= ABOUT_ONE)


def _several_hops(rows: Sequence[Row]) -> dict[str, Any]:
    paths = [
        (row["path"]["mean"], f"{row['method']}, {row['subscribers']} subscribers")
        for row in rows
        if row["method"] in (ATM, PATM) and row["subscribers"] >= SEVERAL_FROM
    ]
    name = "and several hops beyond 100"
    return all_hold(name, paths, lambda path: path > ABOUT_ONE, worst="smallest")


def _pairs(rows: Sequence[Row], value: str, method: str, other: str) -> list[tuple[float, str]]:
    """One method's value divided by another's, at the highest priority of each."""
    urgent = {
        (row["method"], row["subscribers"]): row
        for row in sorted(rows, key=lambda row: row["priority"])
    }
    return [
        (row[value]["mean"] / beside[value]["mean"], f"{subscribers} subscribers")
        for (name, subscribers), row in urgent.items()
        if name == method and (beside := urgent.get((other, subscribers)))
    ]


def _alike(rows: Sequence[Row]) -> dict[str, Any]:
    ratios = [(abs(ratio - 1), where) for ratio, where in _pairs(rows, "path", PATM, ATM)]
    name = "paths of PATM-TBPS at priority 5 and of ATM-TBPS differ by at most 10 %"
    return all_hold(name, ratios, lambda ratio: ratio <= MOST_ALIKE)


def _fewer_than_psg(rows: Sequence[Row]) -> dict[str, Any]:
    name = "PATM-TBPS forwards at most half of PSG-TBPS's messages"
    return all_hold(name, _pairs(rows, "forwards", PATM, PSG), lambda ratio: ratio <= FAR_FEWER)


def _ours_path(rows: Sequence[Row]) -> dict[str, Any]:
    name = f"{OURS}: path at most {PATH_OF_PSG} x PSG-TBPS's, however that is read"
    ratios = [*_of_psg(rows, "path", SUPPORT), *_of_psg(rows, "path", OTHER_SUPPORT)]
    return all_hold(name, ratios, lambda ratio: ratio <= PATH_OF_PSG)


def _ours_messages(rows: Sequence[Row]) -> dict[str, Any]:
    """At least one message for each subscriber is needed: no goal where PSG-TBPS itself needs little more."""
    name = f"{OURS}: messages at most {FORWARDS_OF_PSG} x PSG-TBPS's, every slot filled"
    found = all_hold(
        name, _of_psg(rows, "forwards", SUPPORT), lambda ratio: ratio <= FORWARDS_OF_PSG
    )
    other = max(_of_psg(rows, "forwards", OTHER_SUPPORT), default=None)
    if other is None:
        return found
    return {
        **found,
        "found": f"{found['found']}; empty slots left out: {other[0]:.3g} ({other[1]})",
    }


def _of_psg(rows: Sequence[Row], value: str, support: str) -> list[tuple[float, str]]:
    return [
        (ours[value]["mean"] / psg[value]["mean"], f"{_where(psg)}; {_reading(title(psg))}")
        for ours, psg in beside_psg(rows)
        if psg["pattern"] in LARGE and psg["support"] == support
    ]
