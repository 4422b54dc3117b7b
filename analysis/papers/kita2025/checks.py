"""What must be true of a reproduction of Kita 2025, each as one sentence with the numbers behind it. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analysis.papers.judging import NOT_MEASURED, all_hold, check
from analysis.papers.kita2025.figures import (
    ATM,
    LARGE,
    OTHER_SUPPORT,
    PATM,
    PSG,
    SMALL,
    SUPPORT,
    SUPPORT_FROM,
    at_highest,
    base_paths,
    beside_psg,
    is_main,
    place,
)
from analysis.papers.ways import title, titles

Row = Mapping[str, Any]
EXACTLY = 1e-9
LEAST_GAIN, MOST_GAIN = 0.5, 0.7  # what "up to about 60 % shorter" may be
LITTLE = 0.5  # of what large topics gain
ONE_HOP_UNTIL, SEVERAL_FROM = 50, 100  # subscribers
ABOUT_ONE = 1.05  # hops
ALIKE = 0.1
FAR_FEWER = 0.5
PATH_OF_PSG, FORWARDS_OF_PSG = 1.05, 0.3
OURS = "ours (fan-TBPS) at priority 5, patterns a to c"


def checks(topics: Sequence[Row], tables: Sequence[Row]) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured here), and the numbers."""
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
    """PSG-TBPS's value as a part of SG-TBPS's with the same strategy."""
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
    """By how much of the path each reading of PSG-TBPS is shorter at priority 5 where it gains most."""
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
    told = "; ".join(f"{_reading(way)} {gain:.0%}" for way, gain in gains.items())
    near = any(LEAST_GAIN <= gain <= MOST_GAIN for gain in gains.values())
    return check(name, near if gains else None, told or NOT_MEASURED)


def _little_in_small_topics(rows: Sequence[Row]) -> dict[str, Any]:
    """Judged for the readings in which publishers help; the others are told."""
    large, small = _gains(rows, LARGE), _gains(rows, SMALL)
    name = (
        "where publishers help, topics of 10 nodes gain at most half of what topics of 1,000 gain"
    )
    told = "; ".join(
        f"{_reading(way)} {small[way]:.0%} of {gain:.0%}"
        for way, gain in large.items()
        if way in small
    )
    judged = [
        small[way] <= LITTLE * gain
        for way, gain in large.items()
        if way in small and SUPPORT_FROM in way
    ]
    return check(name, all(judged) if judged else None, told or NOT_MEASURED)


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
    told = "; ".join(
        f"{nodes:,} nodes: " + ", ".join(f"{ratio:.3g} x" for ratio in ratios)
        for nodes, ratios in whole.items()
    )
    ok = all(ratios == sorted(ratios) and ratios[0] > 1 for ratios in whole.values())
    return check(name, ok if whole else None, told or NOT_MEASURED)


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
    """One method's value as a part of another's, at the highest priority that each has."""
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
    return all_hold(name, ratios, lambda ratio: ratio <= ALIKE)


def _fewer_than_psg(rows: Sequence[Row]) -> dict[str, Any]:
    name = "PATM-TBPS forwards at most half of PSG-TBPS's messages"
    return all_hold(name, _pairs(rows, "forwards", PATM, PSG), lambda ratio: ratio <= FAR_FEWER)


def _ours_path(rows: Sequence[Row]) -> dict[str, Any]:
    name = f"{OURS}: path at most {PATH_OF_PSG} x PSG-TBPS's, however that is read"
    ratios = [*_of_psg(rows, "path", SUPPORT), *_of_psg(rows, "path", OTHER_SUPPORT)]
    return all_hold(name, ratios, lambda ratio: ratio <= PATH_OF_PSG)


def _ours_messages(rows: Sequence[Row]) -> dict[str, Any]:
    """Nobody can send less than one message to each subscriber: not a goal where PSG-TBPS itself does little more."""
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
