"""Banno 2013: tables, figures, checks and texts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers.banno2013 import stopping
from analysis.papers.banno2013.figures import LOADS, OF_TOPIC, checks, figures
from analysis.papers.methods import METHODS, OF_WAY, PATTERN, by_pattern, nodes_panels
from analysis.papers.reproduction import PageTexts, Paper, Results
from analysis.papers.tables import means, read_table
from analysis.report import interval_charts
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The figures of Banno 2013 as charts.


Figure = Mapping[str, Any]
Cell = Mapping[str, Any]
OF_TOPICS = {"path": "hops, mean", "forwards": "messages for one publication"}


def drawings(figures: Iterable[Figure]) -> dict[str, Drawing]:
    """The chart of each figure that has one, by its name."""
    drawn = {}
    for figure in figures:
        name, label, cells = figure["figure"], figure["title"], figure["cells"]
        if cells and name in OF_TOPICS:
            axes = (PATTERN, OF_TOPICS[name])
            found = by_pattern(cells, name)
            drawn[name] = interval_charts.dots(found, nodes_panels(cells), axes, name, label)
        if cells and name == "load":
            drawn[name] = _load(cells, name, label)
        if cells and name == stopping.NAME:
            drawn[name] = stopping.drawing(cells, label)
    return drawn


def _load(cells: Sequence[Cell], name: str, label: str) -> Drawing:
    points = [
        {
            "way": value,
            "at": cell["from_node"],
            "panel": METHODS[cell["method"]],
            **{side: cell["ours"][value][side] for side in ("mean", "low", "high")},
        }
        for value in LOADS
        for cell in cells
    ]
    axes = ("nodes, those with most forwards first", "messages of a node, mean")
    return interval_charts.lines(points, list(METHODS.values()), axes, name, label)


TEXTS = PageTexts(
    title="Banno 2013, reproduced",
    heading="Topic pub/sub on a Skip Graph, with Scribe beside it: Banno 2013, reproduced",
    notes=(
        "Overlays are built as they are when nobody joins or leaves, and every publication of every topic is followed."
        " Path: hops to the first copy that arrives. Messages: all that nodes send each other for one publication,"
        " duplicates included.",
        "Stopping: both methods by their own protocols in virtual time, each message 10 ms under way.",
    ),
)


def measure(spark: "SparkSession", folder: Path) -> Results:
    """Compute means over trials with Spark, and figures and checks from them."""
    topics = means(read_table(spark, folder, "topics"), (*OF_TOPIC, *OF_WAY), ("path", "forwards"))
    load = means(read_table(spark, folder, "load"), ("method", "node_rank_group"), LOADS)
    totals = means(
        read_table(spark, folder, "load_totals"),
        ("method", "nodes"),
        ("correlation", "without_forwards"),
    )
    moments, stopped = stopping.read(spark, folder)
    return Results(
        [*figures(topics, load, totals), stopping.figure(moments)],
        [*checks(topics, totals), *stopping.checks(moments, stopped)],
    )


BANNO2013 = Paper("banno2013", TEXTS, measure, drawings)
