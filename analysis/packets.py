"""Anybody's captures in one go: counted, written as Parquet if wanted, and what could not be read."""

import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.captures.files import find_files
from analysis.captures.pieces import size_of
from analysis.errors import AnalysisError
from analysis.pipeline import SHORT_BYTES, STARTING, Progress
from analysis.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECKING, READING = "following the records", "reading the packets"
COUNTED = "kind,wirelen,ts_ns"
LOOK_EVERY_S = 0.3
STEPS = 100  # of a bar, however many tasks there are


def read_packets(
    paths: Iterable[str], target: Path | None, emit: Progress, master: str = "local[*]"
) -> dict[str, Any]:
    """What is in these captures, as a document; all their packets go to `target` as Parquet."""
    files = find_files(paths)  # and wrong names are found before Spark is started
    if target is not None and target.exists():
        raise AnalysisError(f"{target} exists already", "name another, or remove it first.")
    short = sum(map(size_of, files)) < SHORT_BYTES
    emit(STARTING, 0, 1)
    with open_session(master, short=short) as spark:
        emit(STARTING, 1, 1)
        return count_packets(spark, files, target, emit)


def count_packets(
    spark: "SparkSession", files: list[str], target: Path | None, emit: Progress
) -> dict[str, Any]:
    """The same in a session that is open already."""
    from analysis.source import register

    register(spark)
    with _watched(spark, CHECKING, emit):
        problems = spark.read.format("pcap-problems").load(files).collect()
    packets = spark.read.format("pcap").option("mode", "DROPMALFORMED")
    with _watched(spark, READING, emit):
        if target is None:
            frame = packets.option("columns", COUNTED).load(files)
        else:
            _write(packets.load(files), target)
            frame = spark.read.parquet(str(target))
        kinds = _counted(frame)
    return {
        "files": len(files),
        "packets": sum(row["packets"] for row in kinds),
        "wire_bytes": sum(row["wire_bytes"] for row in kinds),
        "first_ns": min((row["first_ns"] for row in kinds if row["first_ns"]), default=None),
        "last_ns": max((row["last_ns"] for row in kinds if row["last_ns"]), default=None),
        "kinds": [{name: row[name] for name in ("kind", "packets", "wire_bytes")} for row in kinds],
        "problems": [row.asDict() for row in sorted(problems)],
        "parquet": None if target is None else str(target),
    }


def _counted(frame: "DataFrame") -> list[dict[str, Any]]:
    from pyspark.sql import functions as sf

    counted = frame.groupBy("kind").agg(
        sf.count("*").alias("packets"),
        sf.sum("wirelen").alias("wire_bytes"),
        sf.min("ts_ns").alias("first_ns"),
        sf.max("ts_ns").alias("last_ns"),
    )
    return [row.asDict() for row in counted.orderBy(sf.desc("packets"), "kind").collect()]


def _write(frame: "DataFrame", target: Path) -> None:
    """All of it or nothing: the folder appears when it is whole."""
    unfinished = target.with_name(target.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        frame.write.parquet(str(unfinished))
    except BaseException:  # also when interrupted: what is half done is of no use
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    unfinished.rename(target)


@contextmanager
def _watched(spark: "SparkSession", stage: str, emit: Progress) -> Iterator[None]:
    """Tell how far Spark's tasks are, until the block ends."""
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, stage, emit, over), daemon=True)
    emit(stage, 0, STEPS)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    emit(stage, STEPS, STEPS)


def _watch(spark: "SparkSession", stage: str, emit: Progress, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    furthest = 0
    while not over.wait(LOOK_EVERY_S):
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        tasks = sum(one.numTasks for one in stages if one)
        done = sum(one.numCompletedTasks for one in stages if one)
        now = min(STEPS - 1, STEPS * done // tasks) if tasks else 0
        if now > furthest:
            furthest = now
            emit(stage, now, STEPS)
