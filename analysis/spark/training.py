"""Makes the class archive: `python -m analysis.spark.training [--foreground]`.

It runs Spark once, as all commands together use it, and Java writes the archive when it ends by itself. That takes
about half a minute of processor time. `testbed` starts it in the background after the first session.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analysis.spark.archive import ClassArchive, State
from analysis.spark.local_java import LocalJava
from analysis.spark.session import open_session, stop_in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDING_S = 900.0  # for Java to write the archive, on a busy machine
KEYS = 3
NICE = 19
INTERRUPTED = 130


def main() -> int:
    """Make the archive if it is missing; 1 if that failed, 130 if it was interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _main()
    except KeyboardInterrupt:
        return INTERRUPTED


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m analysis.spark.training", description=__doc__)
    parser.add_argument(
        "--foreground", action="store_true", help="at full speed, and say what was done"
    )
    asked = parser.parse_args()
    if not asked.foreground:
        _yield_processors()
    java = LocalJava(archiving=True)
    archive = java.archive
    if archive.state() not in (State.MADE, State.OFF) and not archive.obstacle():
        with archive.locked() as alone:
            if alone:
                _make(java, archive)
    if asked.foreground:
        print(f"class archive for Java {archive.java.version}: {archive.describe()}")  # noqa: T201
    return archive.state() is State.FAILED


def _yield_processors() -> None:
    """Leave the processors to others, also where the kernel shares them by session."""
    os.nice(NICE)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICE))


def _make(java: LocalJava, archive: ClassArchive) -> None:
    archive.unfinished.unlink(missing_ok=True)  # of an attempt that was killed
    try:
        code = run_once(java)
        if code == 0 and archive.unfinished.is_file():
            archive.keep()
            archive.failure.unlink(missing_ok=True)
        else:
            archive.failure.write_text(f"Java ended with exit code {code}\n")
    except Exception as error:  # noqa: BLE001 - else each later command would try it again
        archive.failure.write_text(f"{type(error).__name__}: {error}\n")
    finally:
        archive.unfinished.unlink(missing_ok=True)


def run_once(java: LocalJava) -> int:
    """Exercise Spark in this Java, and let Java end by itself; returns its exit code."""
    with open_session(java=java) as spark:
        exercise(spark)
        return stop_in_order(spark.sparkContext, java, ENDING_S)


def exercise(spark: "SparkSession") -> None:
    """Use what measurements, queries and the pcap source use of Spark, on a few rows."""
    items = spark.sparkContext.parallelize(range(KEYS), 2).map(_item)
    for _ in range(2):
        items = items.partitionBy(KEYS, _same).mapPartitionsWithIndex(_passed_on)
    assert items.count() == KEYS
    folder = Path(tempfile.mkdtemp(prefix="testbed-training-"))
    try:
        rows = spark.range(0, 100, 1, 2).mapInArrow(_as_is, "id long")
        rows.selectExpr("id", "id % 3 AS kind", "CAST(id AS string) AS name").write.parquet(
            f"{folder}/rows.parquet"
        )
        spark.read.parquet(f"{folder}/rows.parquet").createOrReplaceTempView("training")
        found = spark.sql(
            "SELECT kind, count(*) AS n, avg(id) AS mean, percentile(id, 0.5) AS half "
            "FROM training JOIN (SELECT DISTINCT name FROM training) USING (name) "
            "WHERE name <> '1' GROUP BY kind ORDER BY n DESC, kind"
        )
        assert found.toArrow().num_rows == KEYS
        assert len(found.collect()) == KEYS
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _item(number: int) -> tuple[int, tuple[str, bytes]]:
    return number, ("rows", bytes(100))


def _same(key: int) -> int:
    return key


def _passed_on(_number: int, items: Iterable[Any]) -> Iterator[Any]:
    yield from items


def _as_is(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    sys.exit(main())
