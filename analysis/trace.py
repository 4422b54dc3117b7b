"""The traces of a simulated run: what was seen on its links, in the tables that a scan of captures gives."""

from pathlib import Path
from typing import TYPE_CHECKING

from analysis.errors import AnalysisError
from analysis.runfolder import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES, LINKS, USE = "messages.parquet", "links.parquet", "use.parquet"


def trace_files(run: Run) -> list[Path]:
    """Both tables; AnalysisError if one is missing."""
    files = [run.trace / name for name in (MESSAGES, LINKS)]
    for file in files:
        if not file.is_file():
            raise AnalysisError(
                f"{file} is missing.", "The run did not end well; simulate it again."
            )
    return files


def read_trace(spark: "SparkSession", run: Run) -> "tuple[DataFrame, DataFrame, DataFrame]":
    """The sightings of messages, the totals of links, and their use, of which earlier versions' traces have nothing."""
    from analysis.metrics import messages, overhead, use
    from analysis.metrics.nothing import nothing

    seen, links = trace_files(run)
    used = run.trace / USE
    return (
        spark.read.schema(messages.SCHEMA).parquet(str(seen)),
        spark.read.schema(overhead.LINKS_SCHEMA).parquet(str(links)),
        spark.read.schema(use.COUNTED).parquet(str(used))
        if used.exists()
        else nothing(spark, use.COUNTED),
    )
