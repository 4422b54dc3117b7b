"""Many independent cells of work, computed by Spark: here on all cores, or on a cluster.

Each cell is a partition of its own and they are begun in the order given, so put the heaviest first. What a cell
gives are rows of named tables; they come back as text, as tables differ in their columns, and are few.
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
Progress = Callable[[int, int], None]  # cells done, of how many
SCHEMA = "name string, row string"
POLL_S = 0.25


def fan_out(
    spark: "SparkSession", work: Work, cells: Sequence[Cell], progress: Progress
) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table. `work` is a function of a module, which the workers import."""
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
    """The Spark job. The main thread only looks on, and so hears of Ctrl-C at once."""

    def __init__(self, spark: "SparkSession", work: Work, cells: Sequence[Cell]) -> None:
        super().__init__(daemon=True)
        self.group = f"cells-{id(self)}"  # by which Spark knows the job
        self._spark, self._work, self._cells = spark, work, cells
        self._table: pa.Table | None = None
        self._trouble: Exception | None = None

    def run(self) -> None:
        try:
            self._spark.sparkContext.setJobGroup(self.group, "cells", interruptOnCancel=True)
            places = self._spark.range(0, len(self._cells), 1, len(self._cells))
            self._table = places.mapInArrow(_mapper(self._work, self._cells), SCHEMA).toArrow()
        except Exception as trouble:  # noqa: BLE001 - whatever it is, the main thread tells it
            self._trouble = trouble

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        if self._table is None:
            raise AnalysisError(
                f"The cells could not be computed: {_error_line(self._trouble)}",
                "The workers need the Python of this machine (same version) with numpy and pyarrow; "
                "for kawakami2016 also websockets.",
            ) from self._trouble
        tables: dict[str, list[dict[str, Any]]] = {}
        for name, row in zip(*(column.to_pylist() for column in self._table.columns), strict=True):
            tables.setdefault(name, []).append(json.loads(row))
        return tables


def _mapper(work: Work, cells: Sequence[Cell]) -> Callable[[Any], Iterator[Any]]:
    """Runs on the workers; which of the cells is theirs, their rows say."""

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


def _error_line(trouble: Exception | None) -> str:
    """Of a long trace the line that says what is wrong."""
    lines = [line.strip() for line in str(trouble).splitlines() if line.strip()]
    errors = [
        line for line in lines if "Error" in line.split(":")[0] and not line.startswith("at ")
    ]
    return (errors or lines or [repr(trouble)])[-1]
