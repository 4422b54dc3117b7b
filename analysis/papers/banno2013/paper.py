"""Banno 2013 for the analysis: its tables, figures, checks and words."""

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.papers.banno2013 import stopping
from analysis.papers.banno2013.checks import checks
from analysis.papers.banno2013.drawings import drawings
from analysis.papers.banno2013.figures import LOADS, OF_TOPIC, figures
from analysis.papers.page import Words
from analysis.papers.reproduction import Findings, Paper
from analysis.papers.spread import means
from analysis.papers.tables import read_table
from analysis.papers.ways import OF_WAY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS = Words(
    title="Banno 2013, reproduced",
    heading="Topic pub/sub on a Skip Graph, with Scribe beside it: Banno 2013, reproduced",
    notes=(
        "Overlays are built as they are when nobody joins or leaves, and every publication of every topic is followed."
        " Path: hops to the first copy that arrives. Messages: all that nodes send each other for one publication,"
        " duplicates included.",
        "Stopping: both methods by their own protocols in virtual time, each message 10 ms under way.",
    ),
)


def measure(spark: "SparkSession", folder: Path) -> Findings:
    """Means over trials, by Spark; from them figures and checks."""
    topics = means(read_table(spark, folder, "topics"), (*OF_TOPIC, *OF_WAY), ("path", "forwards"))
    load = means(read_table(spark, folder, "load"), ("method", "node_rank_group"), LOADS)
    totals = means(
        read_table(spark, folder, "load_totals"),
        ("method", "nodes"),
        ("correlation", "without_forwards"),
    )
    moments, stopped = stopping.read(spark, folder)
    return Findings(
        [*figures(topics, load, totals), stopping.figure(moments)],
        [*checks(topics, totals), *stopping.checks(moments, stopped)],
    )


BANNO2013 = Paper("banno2013", WORDS, measure, drawings)
