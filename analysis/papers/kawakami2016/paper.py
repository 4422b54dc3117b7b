"""Kawakami 2016: table, figures, checks and texts.

A further experiment is a module in this package that reads its own table and returns figures, checks and a chart; add
it to `measure` and `drawings`, as `banno2013.stopping`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.metrics.load import jain
from analysis.papers.kawakami2016 import waiting
from analysis.papers.kawakami2016.figures import FIGURES, OF_CELL, checks, figures, is_main
from analysis.papers.methods import points
from analysis.papers.reproduction import PageTexts, Paper, Results
from analysis.papers.tables import means, read_table
from analysis.report import interval_charts
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The figures as charts. Other readings of the text are in the tables only.


Figure = Mapping[str, Any]
ONLY_PANEL = ""


def drawings(figures: Iterable[Figure]) -> dict[str, Drawing]:
    """The chart of each figure, by its name."""
    known = {figure.name: figure for figure in FIGURES}
    drawn: dict[str, Drawing] = {}
    for figure in figures:
        name, label = figure["figure"], figure["title"]
        if name in waiting.FIGURES:
            drawn |= waiting.drawing(name, figure["cells"], label)
            continue
        cells = [cell for cell in figure["cells"] if is_main(cell)]
        if cells:
            found = points(
                cells,
                known[name].values[0],
                at=lambda cell: cell["nodes"],
                panel=lambda _: ONLY_PANEL,
            )
            axes = ("nodes, one of them the subscriber", known[name].axis)
            drawn[name] = interval_charts.lines(
                found, [ONLY_PANEL], axes, name, label, shares=name == "fairness"
            )
    return drawn


TEXTS = PageTexts(
    title="Kawakami 2016, reproduced",
    heading="Collecting periodic data over a Skip Graph: Kawakami 2016, reproduced",
    notes=(
        "One subscriber collects from all other nodes, whose periods are 1 to 10 units of time at random, for 2,520"
        " units of time. Load: messages received and sent. Ascending and descending: data is pushed over the links of a"
        " Skip Graph, whose keys begin with the period; descending has short periods next to the subscriber."
        " Aggregated: what a node has for the same time leaves as one message.",
        "Pull (SFB): the subscriber asks everybody in each unit of time, and answers are joined on their way back.",
        "Charts show lists that end (line). The tables also have lists that are rings, and rings in which half of the"
        " publishers sends the other way round (halves): then both orders are each other's mirror image.",
        "Waiting: brokers and gauges on 3G and MVNO lines, pushing in descending order with aggregation, once all"
        " periods are learnt. Ours: the paper has no delays. Real lines: labs in network namespaces on shaped links,"
        " measured from their captures; simulated, same seed: the same topology file in the simulator.",
    ),
)


def measure(spark: "SparkSession", folder: Path) -> Results:
    """Compute means over trials with Spark, and figures and checks from them."""
    trials = read_table(spark, folder, "collection")
    rows = means(
        trials.withColumn("fairness", jain(trials.load, trials.squares, trials.nodes)),
        OF_CELL,
        [value for figure in FIGURES for value in figure.values],
    )
    waited = waiting.read(spark, folder)
    return Results(
        [*figures(rows), *waiting.figures(waited)],
        [*checks(rows), *waiting.checks(waited)],
        {"runs": list(waited.runs)},
    )


KAWAKAMI2016 = Paper("kawakami2016", TEXTS, measure, drawings)
