"""The settings of Spark, and the options of its Java."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.spark.java import JavaHome
from analysis.spark.shipping import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
WORKERS = "analysis.workers"  # the process from which Spark forks its Python workers
LOGGING = """
rootLogger.level = error
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %p %c{1}: %m%n
"""
# Without its optimising compiler, Java reserves only 48 MB for compiled code; Spark fills them with a few runs.
SHORT = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
# Spark compiles each of its queries to Java. A run has more than the 100 that Spark remembers by default, so without
# this the next run of a session compiled them all again.
REMEMBERED_QUERIES = "5000"
# Settings of our queries in any session.
QUERIES = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # With less than this maximum Spark sums the size of a batch again for each row, which dominates for wide tables.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.adaptive.enabled": "false",  # few partitions from the start; nothing to adapt
    # Rows stay partitioned by message id: joins on the id and other columns need no second shuffle, and no sorting.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.join.preferSortMergeJoin": "false",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
    "spark.sql.parquet.compression.codec": "zstd",
}
# Variables of other sessions, which would change ours.
FOREIGN = (
    *("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"),
    *("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"),
)


def prepare(spark: "SparkSession") -> None:
    """Configure a session of another program for our queries: one shuffle partition for each core."""
    for name, value in QUERIES.items():
        spark.conf.set(name, value)
    partitions = max(2, spark.sparkContext.defaultParallelism)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def java_options(folder: Path, *, short: bool) -> list[str]:
    """The options of Java, whose temporary files go to this folder, also the report on a crash of Java."""
    return [
        f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        f"-Djava.io.tmpdir={folder}",
        f"-XX:ErrorFile={folder / 'java-error.log'}",
        "-XX:-CreateCoredumpOnCrash",
        *_quick(short),
    ]


def _quick(short: bool) -> list[str]:
    """The options of any Java of Spark."""
    return ["-XX:-UsePerfData", "-XX:+UseParallelGC", *(SHORT if short else ())]


def write_log_settings(folder: Path) -> None:
    """Write the file that `java_options` names: only errors are logged."""
    (folder / "log4j2.properties").write_text(LOGGING)


def spark_settings(
    folder: Path, master: str, options: Sequence[str], executors: Sequence[str], *, short: bool
) -> dict[str, str]:
    """The settings of Spark, whose temporary files go to this folder.

    `options`: of its Java; `executors`: more options for the Javas of a cluster's executors.
    """
    ours = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
    settings = {
        "spark.app.name": "testbed",
        "spark.driver.memory": f"{memory_mib()}m",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.sql.codegen.cache.maxEntries": REMEMBERED_QUERIES,
        **QUERIES,
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    }
    if is_local(master):
        settings |= {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.executorEnv.PYTHONPATH": path,
            "spark.python.daemon.module": WORKERS,
            # A busy machine answers late. Nothing of Spark can be lost here without this process.
            "spark.python.authenticate.socketTimeout": "120s",
            "spark.network.timeout": "600s",
            "spark.executor.heartbeatInterval": "60s",
        }
    else:
        settings["spark.executor.extraJavaOptions"] = " ".join([*_quick(short), *executors])
    return settings


def memory_mib() -> int:
    """A twelfth of the memory, between 1 and 8 GiB, because Python's workers need memory, too."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(1024, min(8192, total // 12))


def python_variables(java: JavaHome) -> dict[str, str]:
    """The variables by which Spark finds Java and Python."""
    return {
        "JAVA_HOME": str(java.path),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@contextmanager
def environment(wanted: dict[str, str], unwanted: tuple[str, ...] = FOREIGN) -> Iterator[None]:
    """Set these variables inside the block, and unset the others."""
    before = {name: os.environ.get(name) for name in (*wanted, *unwanted)}
    for name in unwanted:
        os.environ.pop(name, None)
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
