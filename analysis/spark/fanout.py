"""Computes many independent cells with Spark: on all local cores, or on a cluster.

Each cell is a partition, started in the order given, so put the heaviest first. A cell yields rows of named tables,
which are returned as JSON text, because tables have different columns; there are few rows.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.errors import AnalysisError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Cell = Mapping[str, Any]  # plain values
Row = Mapping[str, Any]
Work = Callable[[Cell], Iterable[tuple[str, Row]]]  # rows, each with the name of its table
Progress = Callable[[int, int], None]  # cells done, cells in total
SCHEMA = "name string, row string"
POLL_S = 0.25


def fan_out(
    spark: "SparkSession", work: Work, cells: Sequence[Cell], progress: Progress
) -> dict[str, list[dict[str, Any]]]:
    """Compute the cells; returns the rows of each table. `work`: a function of a module, which the workers import."""
    progress(0, len(cells))
    job = _Job(spark, work, cells)
    job.start()
    while job.is_alive():
        job.join(POLL_S)
        progress(min(_done(spark, job.group), len(cells) - 1), len(cells))
    rows = job.rows()
    progress(len(cells), len(cells))
    return rows


class _Job(threading.Thread):
    """The Spark job in a thread, so that the main thread receives Ctrl-C at once."""

    def __init__(self, spark: "SparkSession", work: Work, cells: Sequence[Cell]) -> None:
        super().__init__(daemon=True)
        self.group = f"cells-{id(self)}"  # Spark's job group
        self._spark, self._work, self._cells = spark, work, cells
        self._table: pa.Table | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        try:
            self._spark.sparkContext.setJobGroup(self.group, "cells", interruptOnCancel=True)
            places = self._spark.range(0, len(self._cells), 1, len(self._cells))
            self._table = places.mapInArrow(_mapper(self._work, self._cells), SCHEMA).toArrow()
        except Exception as error:  # noqa: BLE001 - the main thread reports any error
            self._error = error

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        if self._table is None:
            raise AnalysisError(
                f"The cells could not be computed: {error_line(self._error)}",
                "The workers need the Python of this machine (same version) with numpy and pyarrow; "
                "for kawakami2016 also websockets.",
            ) from self._error
        tables: dict[str, list[dict[str, Any]]] = {}
        for name, row in zip(*(column.to_pylist() for column in self._table.columns), strict=True):
            tables.setdefault(name, []).append(json.loads(row))
        return tables


def _mapper(work: Work, cells: Sequence[Cell]) -> Callable[[Any], Iterator[Any]]:
    """A function for the workers; their rows are the numbers of cells."""

    def compute(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for place in batch.column(0).to_pylist():
                found = [(name, json.dumps(row)) for name, row in work(cells[place])]
                columns = [pa.array([pair[side] for pair in found], pa.string()) for side in (0, 1)]
                yield pa.RecordBatch.from_arrays(columns, names=["name", "row"])

    return compute


def _done(spark: "SparkSession", group: str) -> int:
    tracker = spark.sparkContext.statusTracker()
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
    stages = (tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
    return sum(stage.numCompletedTasks for stage in stages if stage)


def error_line(error: Exception | None) -> str:
    """The last line of a long trace that names an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [
        line for line in lines if "Error" in line.split(":")[0] and not line.startswith("at ")
    ]
    return (errors or lines or [repr(error)])[-1]
