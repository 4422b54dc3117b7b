"""The figures of Ogawa's map as charts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from analysis.papers import charts
from analysis.papers.ogawa.figures import AFTER, BEFORE, E_OF, GIVE

Figure = Mapping[str, Any]
Cell = Mapping[str, Any]
WAYS = {BEFORE: "before levelling", AFTER: "after"}
EFFECTS = {"largest": "largest load", "fairness": "fairness (Jain's index)", "moves": "moves"}


def drawings(figures: Iterable[Figure]) -> dict[str, str]:
    """The chart of each figure that has one, by its name."""
    drawers: Mapping[str, Callable[[Sequence[Cell], str], str]] = {
        "load": _load,
        "histogram": _histogram,
        "rounds": _rounds,
        "e": _e,
        "k": _k,
    }
    return {
        name: drawers[name](figure["cells"], figure["title"])
        for figure in figures
        if (name := figure["figure"]) in drawers and figure["cells"]
    }


def _load(cells: Sequence[Cell], label: str) -> str:
    points = [
        _point(cell, "load", WAYS[cell["when"]], cell["from_node"], GIVE[cell["give"]])
        for cell in sorted(cells, key=lambda cell: list(WAYS).index(cell["when"]))
    ]
    axes = ("nodes in the order of their ids", "events x subscriptions, mean of 10")
    return charts.lines(points, list(GIVE.values()), axes, "load", label, with_zero=True)


def _histogram(cells: Sequence[Cell], label: str) -> str:
    points = [
        _point(cell, "nodes_in", WAYS[cell["when"]], cell["from_load"], GIVE[cell["give"]])
        for cell in sorted(cells, key=lambda cell: list(WAYS).index(cell["when"]))
    ]
    axes = ("load of a node, in steps of 50", "nodes")
    return charts.bars(points, list(GIVE.values()), axes, "histogram", label)


def _rounds(cells: Sequence[Cell], label: str) -> str:
    return charts.apart(
        [
            _point(cell, value, GIVE[cell["give"]], cell["round"], panel)
            for value, panel in EFFECTS.items()
            for cell in cells
        ],
        dict.fromkeys(EFFECTS.values(), "rounds"),
        "rounds",
        label,
    )


def _e(cells: Sequence[Cell], label: str) -> str:
    """Largest load and fairness, for each of the two things that e may be."""
    panels = {
        (value, kind): f"{told}, {words}"
        for value, told in {"largest": "largest load", "fairness": "fairness"}.items()
        for kind, words in {"mean": "e x mean", "load": "e absolute"}.items()
    }
    return charts.apart(
        [
            _point(cell, value, "after levelling", cell["e"], panel)
            for (value, kind), panel in panels.items()
            for cell in cells
            if cell["e_of"] == kind
        ],
        {panel: f"e, {E_OF[kind]}" for (_, kind), panel in panels.items()},
        "e",
        label,
    )


def _k(cells: Sequence[Cell], label: str) -> str:
    return charts.apart(
        [
            _point(cell, value, "after levelling", cell["k"], panel)
            for value, panel in EFFECTS.items()
            for cell in cells
        ],
        dict.fromkeys(EFFECTS.values(), "k, nodes in a sample"),
        "k",
        label,
    )


def _point(cell: Cell, value: str, way: str, at: Any, panel: str) -> dict[str, Any]:
    found = cell["ours"][value]
    sides = {side: found[side] for side in ("mean", "low", "high")}
    return {"way": way, "at": at, "panel": panel, **sides}
