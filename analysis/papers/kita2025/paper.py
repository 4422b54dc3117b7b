"""Kita 2025 for the analysis: its tables, figures, checks and words."""

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.papers.kita2025 import mixed
from analysis.papers.kita2025.checks import checks
from analysis.papers.kita2025.drawings import drawings
from analysis.papers.kita2025.figures import OF_TABLES, OF_TOPIC, figures
from analysis.papers.page import Words
from analysis.papers.reproduction import Findings, Paper
from analysis.papers.spread import means
from analysis.papers.tables import read_table
from analysis.papers.ways import OF_WAY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORDS = Words(
    title="Kita 2025, reproduced",
    heading="Urgent publications on a Skip Graph: Kita 2025, reproduced",
    notes=(
        "Overlays are built as they are when nobody joins or leaves, and every publication of every topic is followed."
        " Path: hops to the first copy that arrives. Messages: all that nodes send each other for one publication,"
        " duplicates included. Where the thesis can be read in several ways, each reading is a series of its own.",
    ),
)


def measure(spark: "SparkSession", folder: Path) -> Findings:
    """Means over trials, by Spark; from them figures and checks."""
    topics = means(
        read_table(spark, folder, "topics"),
        (*OF_TOPIC, *OF_WAY, "priority"),
        ("path", "forwards", "starts", "delay_ms"),
    )
    tables = means(
        read_table(spark, folder, "tables"),
        (*OF_TABLES, "method", "priority"),
        ("path", "forwards", "one_hop", "delay_ms"),
    )
    shared = mixed.read(spark, folder)
    return Findings(
        [*figures(topics, tables), mixed.figure(shared)],
        [*checks(topics, tables), *mixed.checks(shared)],
    )


KITA2025 = Paper("kita2025", WORDS, measure, drawings)
