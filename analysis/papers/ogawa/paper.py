"""Ogawa's map: tables, figures, checks and texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers.ogawa.figures import (
    AFTER,
    BEFORE,
    E_OF,
    GIVE,
    READING,
    VALUES,
    checks,
    figures,
    usual_reading,
)
from analysis.papers.reproduction import PageTexts, Paper, Results
from analysis.papers.tables import means, read_table
from analysis.report import interval_charts
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The figures of Ogawa's map as charts.


Figure = Mapping[str, Any]
Cell = Mapping[str, Any]
WAYS = {BEFORE: "before levelling", AFTER: "after"}
EFFECTS = {"largest": "largest load", "fairness": "fairness (Jain's index)", "moves": "moves"}


def drawings(figures: Iterable[Figure]) -> dict[str, Drawing]:
    """The chart of each figure that has one, by its name."""
    drawers: Mapping[str, Callable[[Sequence[Cell], str], Drawing]] = {
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


def _load(cells: Sequence[Cell], label: str) -> Drawing:
    points = [
        _point(cell, "load", WAYS[cell["when"]], cell["from_node"], GIVE[cell["give"]])
        for cell in sorted(cells, key=lambda cell: list(WAYS).index(cell["when"]))
    ]
    axes = ("nodes in the order of their ids", "events x subscriptions, mean of 10")
    return interval_charts.lines(points, list(GIVE.values()), axes, "load", label, with_zero=True)


def _histogram(cells: Sequence[Cell], label: str) -> Drawing:
    points = [
        _point(cell, "nodes_in", WAYS[cell["when"]], cell["from_load"], GIVE[cell["give"]])
        for cell in sorted(cells, key=lambda cell: list(WAYS).index(cell["when"]))
    ]
    axes = ("load of a node, in steps of 50", "nodes")
    return interval_charts.bars(points, list(GIVE.values()), axes, "histogram", label)


def _rounds(cells: Sequence[Cell], label: str) -> Drawing:
    return interval_charts.apart(
        [
            _point(cell, value, GIVE[cell["give"]], cell["round"], panel)
            for value, panel in EFFECTS.items()
            for cell in cells
        ],
        dict.fromkeys(EFFECTS.values(), "rounds"),
        "rounds",
        label,
    )


def _e(cells: Sequence[Cell], label: str) -> Drawing:
    """Largest load and fairness, for each of the two things that e may be."""
    panels = {
        (value, kind): f"{value_title}, {kind_title}"
        for value, value_title in {"largest": "largest load", "fairness": "fairness"}.items()
        for kind, kind_title in {"mean": "e x mean", "load": "e absolute"}.items()
    }
    return interval_charts.apart(
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


def _k(cells: Sequence[Cell], label: str) -> Drawing:
    return interval_charts.apart(
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


TEXTS = PageTexts(
    title="Ogawa, Nakamura, Saito, reproduced",
    heading="A Publish/Subscribe map over Z-order keys, levelled by load: Ogawa, Nakamura, Saito, reproduced",
    notes=(
        "Each node owns a stretch of the Z-order curve through a space; its load is the number of events in its area"
        " times the number of subscriptions whose boxes meet it. A round: five nodes are sampled, and the lightest of"
        " them leaves its area and takes half of the heaviest one's, if they are far enough from the mean.",
        "The text says neither how many events a sensor sends, nor how far from the centre things lie, nor how large"
        " boxes are: these were chosen so that what it says of the load before levelling holds.",
    ),
)


def measure(spark: "SparkSession", folder: Path) -> Results:
    """Compute means over trials with Spark, and figures and checks from them."""
    totals = means(
        _with_clear_trials(read_table(spark, folder, "levelling")), (*READING, "when"), VALUES
    )
    nodes = means(
        read_table(spark, folder, "levelling_nodes"),
        ("give", "when", "from_node"),
        ("load", "largest"),
    )
    histogram = means(
        read_table(spark, folder, "levelling_histogram"),
        ("give", "when", "from_load"),
        ("nodes_in",),
    )
    moments = means(
        _with_clear_trials(read_table(spark, folder, "levelling_moments")),
        (*READING, "round"),
        VALUES,
    )
    return Results(
        figures(totals, nodes, histogram, moments), checks(totals, usual_reading(moments))
    )


def _with_clear_trials(frame: "DataFrame") -> "DataFrame":
    """Add 1 for each trial in which no node has a load of 500 or more."""
    from pyspark.sql import functions as sf

    return frame.withColumn("none_from_500", (sf.col("from_500") == 0).cast("double"))


OGAWA = Paper("ogawa", TEXTS, measure, drawings)
