"""Counts the packets of captures of any origin, writes them as Parquet, and lists what could not be read."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analysis.captures.columns import PROBLEMS, SCHEMA
from analysis.captures.files import find_files
from analysis.captures.parquet import KINDS, sum_kinds, write_packets
from analysis.captures.pieces import TASKS_PER_CORE, group_pieces, piece_size, split_files
from analysis.captures.storage import size_of
from analysis.errors import AnalysisError
from analysis.pipeline import STARTING
from analysis.spark.progress import Progress, watched
from analysis.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
READING = "reading the packets"
# The result of a task: a row counts the packets of a kind, or is a problem; the other column is null.
TASK_RESULT = pa.schema([("kind", pa.struct(list(KINDS))), ("problem", pa.struct(list(PROBLEMS)))])


def read_packets(
    paths: Iterable[str], target: Path | None, emit: Progress, master: str = "local[*]"
) -> dict[str, Any]:
    """Count the packets of these captures; with a `target`, write them as Parquet."""
    files = find_files(paths)  # reports wrong names before Spark starts
    if target is not None and target.exists():
        raise AnalysisError(f"{target} exists already", "name another, or remove it first.")
    emit(STARTING, 0, 1)
    with open_session(master) as spark:
        emit(STARTING, 1, 1)
        return count_packets(spark, files, target, emit)


def count_packets(
    spark: "SparkSession", files: list[str], target: Path | None, emit: Progress
) -> dict[str, Any]:
    """The same in an open session."""
    with watched(spark.sparkContext, [READING], emit):
        kinds, problems = write_parquet(spark, files, target)
    return {
        "files": len(files),
        "packets": sum(row["packets"] for row in kinds),
        "wire_bytes": sum(row["wire_bytes"] for row in kinds),
        "first_ns": min((row["first_ns"] for row in kinds if row["first_ns"]), default=None),
        "last_ns": max((row["last_ns"] for row in kinds if row["last_ns"]), default=None),
        "kinds": [{name: row[name] for name in ("kind", "packets", "wire_bytes")} for row in kinds],
        "problems": problems,
        "parquet": None if target is None else str(target),
    }


def write_parquet(
    spark: "SparkSession",
    files: Sequence[str],
    target: Path | None,
    columns: Sequence[str] = tuple(SCHEMA.names),
) -> tuple[list[Row], list[Row]]:
    """Each task writes the packets that it reads, so they do not pass through Java; returns kinds and problems.

    The folder appears when it is complete. The workers of a cluster must see it.
    """
    if target is None:
        return _read(spark, files, None, columns)
    unfinished = target.with_name(target.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        found = _read(spark, files, unfinished.resolve(), columns)
    except BaseException:  # also on an interrupt: remove incomplete results
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    unfinished.rename(target)
    return found


def _read(
    spark: "SparkSession", files: Sequence[str], folder: Path | None, columns: Sequence[str]
) -> tuple[list[Row], list[Row]]:
    from pyspark.sql.pandas.types import from_arrow_schema

    tasks = TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    size = piece_size(sum(map(size_of, files)), tasks)
    shares = group_pieces(split_files(files, size), size)

    def read_shares(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part = None if folder is None else folder / f"part-{number:05}.parquet"
                kinds, problems = write_packets(shares[number], part, columns)
                rows = [{"kind": row} for row in kinds.to_pylist()]
                rows += [
                    {"problem": dict(zip(PROBLEMS.names, (path, *one), strict=True))}
                    for path, one in problems
                ]
                yield from pa.Table.from_pylist(rows, TASK_RESULT).to_batches()

    numbers = spark.range(0, len(shares), 1, len(shares))
    results = numbers.mapInArrow(read_shares, from_arrow_schema(TASK_RESULT)).toArrow().to_pylist()
    kinds = _summed([row["kind"] for row in results if row["kind"]])
    problems = [row["problem"] for row in results if row["problem"]]
    return kinds, sorted(problems, key=lambda row: (row["path"], row["offset"]))


def _summed(rows: list[Row]) -> list[Row]:
    """One row for each kind, the most frequent first."""
    summed = sum_kinds([pa.Table.from_pylist(rows, KINDS)]).to_pylist()
    return sorted(summed, key=lambda row: (-row["packets"], row["kind"]))
