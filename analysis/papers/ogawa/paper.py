"""Ogawa's map for the analysis: its tables, figures, checks and words."""

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.papers.ogawa.checks import checks
from analysis.papers.ogawa.drawings import drawings
from analysis.papers.ogawa.figures import READING, VALUES, figures, usual_reading
from analysis.papers.page import Words
from analysis.papers.reproduction import Findings, Paper
from analysis.papers.spread import means
from analysis.papers.tables import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORDS = Words(
    title="Ogawa, Nakamura, Saito, reproduced",
    heading="A Publish/Subscribe map over Z-order keys, levelled by load: Ogawa, Nakamura, Saito, reproduced",
    notes=(
        "Each node owns a stretch of the Z-order curve through a space; its load is the number of events in its area"
        " times the number of subscriptions whose boxes meet it. A round: five nodes are sampled, and the lightest of"
        " them leaves its area and takes half of the heaviest one's, if they are far enough from the mean.",
        "The text tells neither how many events a sensor sends, nor how far from the centre things lie, nor how large"
        " boxes are: these were chosen so that what it says of the load before levelling holds.",
    ),
)


def measure(spark: "SparkSession", folder: Path) -> Findings:
    """Means over trials, by Spark; from them figures and checks."""
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
    return Findings(
        figures(totals, nodes, histogram, moments), checks(totals, usual_reading(moments))
    )


def _with_clear_trials(frame: "DataFrame") -> "DataFrame":
    """1 for each trial in which no node has a load of 500 or more."""
    from pyspark.sql import functions as sf

    return frame.withColumn("none_from_500", (sf.col("from_500") == 0).cast("double"))


OGAWA = Paper("ogawa", WORDS, measure, drawings)
