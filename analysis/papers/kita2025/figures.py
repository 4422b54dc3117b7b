"""The thesis' figures as plain values: cells with what the thesis says (`paper`) and what was measured (`ours`).

The text that we have tells of its figures in words, with few numbers; where it is silent, `paper` is null.
Pure: means over trials in, JSON out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.papers.ways import OF_WAY

Row = Mapping[str, Any]
PRIORITIES = (1, 2, 3, 4, 5)
HIGHEST = 5
LARGE, SMALL = ("a", "b", "c"), ("d", "e", "f")  # topics of 1,000 and of 10 nodes
SG, PSG, FAN, ATM, PATM = "sg-tbps", "psg-tbps", "fan-tbps", "atm-tbps", "patm-tbps"
# How the thesis is read where it can be read in several ways; the others are shown beside.
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


def _said(statement: str | None) -> dict[str, str] | None:
    return None if statement is None else {"statement": statement}


def of_priority(rows: Iterable[Row], priority: int) -> Iterator[Row]:
    """The thesis' methods at this priority; SG-TBPS knows none, it is the same at all."""
    for row in rows:
        if row["method"] == PSG and row["priority"] == priority:
            yield row
        elif row["method"] == SG:
            yield {**row, "priority": priority}


def place(row: Row) -> tuple[Any, ...]:
    """Which topics."""
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
            "paper": _said(_of_path(row)),
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
            "paper": _said(said(row)),
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
            "paper": _said(said.get(row["method"])),
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
    """Ours and PSG-TBPS for the same topics, once for each reading."""
    ours = {place(row): row for row in rows if row["method"] == FAN and at_highest(row)}
    for row in rows:
        if row["method"] == PSG and at_highest(row) and place(row) in ours:
            yield ours[place(row)], row


def is_main(row: Row) -> bool:
    """Whether PSG-TBPS is read here as in this row."""
    wanted = (STRATEGY, SUPPORT, SUPPORT_FROM)
    return (row["strategy"], row["support"], row["support_from"]) == wanted


def at_highest(row: Row) -> bool:
    return bool(row["priority"] == HIGHEST)
