"""The traces of a simulated run: what was seen on its links, in the tables that a scan of captures gives."""

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.errors import AnalysisError
from analysis.runfolder import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES, LINKS = "messages.parquet", "links.parquet"


def trace_files(run: Run) -> list[Path]:
    """Both tables; AnalysisError if one is missing."""
    files = [run.trace / name for name in (MESSAGES, LINKS)]
    for file in files:
        if not file.is_file():
            raise AnalysisError(
                f"{file} is missing.", "The run did not end well; simulate it again."
            )
    return files


def read_trace(spark: "SparkSession", run: Run) -> "tuple[DataFrame, DataFrame]":
    """The sightings of messages, and the totals of links."""
    from analysis.metrics import messages, overhead

    seen, links = trace_files(run)
    return (
        spark.read.schema(messages.SCHEMA).parquet(str(seen)),
        spark.read.schema(overhead.LINKS_SCHEMA).parquet(str(links)),
    )
