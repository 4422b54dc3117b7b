"""Measures a run folder: packets -> streams -> messages -> hops -> deliveries -> summary.

A simulated run has no packets: its traces contain the messages.

Each metric is written as Parquet and read back by the next one.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.errors import AnalysisError
from analysis.inputs.clocks import read_clocks
from analysis.inputs.link_settings import SettingsOfLinks, paths_to_core, settings_of_links
from analysis.inputs.logs import write_logs
from analysis.inputs.manifest import downtimes
from analysis.inputs.run_folder import Run, read_run
from analysis.inputs.subscriptions import subscriptions_of
from analysis.metrics.delay_parts import packet_bytes
from analysis.metrics.events import Event, connected, read_events
from analysis.metrics.load import UNIT_S
from analysis.scan import jobs_of, scan, table_path
from analysis.spark.session import open_session
from analysis.summary import summarize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# The traces of a simulated run, in the tables that a scan of captures gives.


MESSAGES, LINKS, LINK_UTILIZATION = "messages.parquet", "links.parquet", "link_utilization.parquet"


def trace_files(run: Run) -> list[Path]:
    """The paths of the three tables; AnalysisError if one is missing."""
    files = [run.trace / name for name in (MESSAGES, LINKS, LINK_UTILIZATION)]
    for file in files:
        if not file.is_file():
            raise AnalysisError(
                f"{file} is missing.", "The run did not end well; simulate it again."
            )
    return files


def read_trace(spark: "SparkSession", run: Run) -> "tuple[DataFrame, DataFrame, DataFrame]":
    """Sightings, totals of links, and link utilization."""
    from analysis.metrics import link_utilization, messages, overhead

    seen, links, used = trace_files(run)
    return (
        spark.read.schema(messages.SCHEMA).parquet(str(seen)),
        spark.read.schema(overhead.LINKS_SCHEMA).parquet(str(links)),
        spark.read.schema(link_utilization.COUNTED).parquet(str(used)),
    )


Progress = Callable[[str, int, int], None]
LOGS = "logs"  # an intermediate table, deleted at the end
SHORT_BYTES = 200_000_000  # of captures; for less data Java's optimising compiler does not pay off
STARTING, READING, TRACES, FOLLOWING, SUMMING = (
    "starting Spark",
    "reading the captures",
    "reading the traces",
    "following the messages",
    "summing up",
)


def _ignore(_stage: str, _done: int, _total: int) -> None:
    """Ignore progress."""


def analyze(
    run_dir: Path,
    *,
    emit: Progress = _ignore,
    master: str = "local[*]",
    load_unit_s: float = UNIT_S,
    deadlines: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """Measure a run: writes metrics/*.parquet and summary.json, returns the summary.

    `load_unit_s`: the unit of time of the momentary load of nodes and of link utilization.
    `deadlines`: level -> seconds; they override those of the manifest.
    """
    run = read_run(Path(run_dir).resolve())
    size = size_of(run)  # reports wrong files before Spark starts
    emit(STARTING, 0, 1)
    with open_session(master, short=size < SHORT_BYTES) as spark:
        emit(STARTING, 1, 1)
        return measure(spark, run, emit, load_unit_s, deadlines)


def measure(
    spark: "SparkSession",
    run: Run,
    emit: Progress = _ignore,
    load_unit_s: float = UNIT_S,
    deadlines: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """The same in an open session. Earlier metrics stay until the new ones are complete."""
    unfinished = run.folder / "metrics.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        due = {**run.deadlines, **(deadlines or {})}
        summary = _Measurement(spark, run, unfinished, emit, load_unit_s, due).measure()
    except BaseException:  # also on an interrupt: remove incomplete results
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    shutil.rmtree(table_path(unfinished, LOGS), ignore_errors=True)
    shutil.rmtree(run.metrics, ignore_errors=True)
    unfinished.rename(run.metrics)
    _write_json(run.summary, summary)
    return summary


def size_of(run: Run) -> float:
    """Bytes of captures or traces; AnalysisError if a file is not a capture or trace."""
    if run.simulated:
        return sum(file.stat().st_size for file in trace_files(run))
    return sum(job.size for job in jobs_of(run))


class _Measurement:
    """The measurement of one run in one session."""

    def __init__(
        self,
        spark: "SparkSession",
        run: Run,
        folder: Path,
        emit: Progress,
        load_unit_s: float,
        deadlines: Mapping[int, float],
    ) -> None:
        self.spark = spark
        self.run = run
        self.folder = folder
        self.emit = emit
        self.load_unit_s = load_unit_s
        self.deadlines = deadlines
        self.clocks = read_clocks(run.clocks)

    def measure(self) -> dict[str, Any]:
        from analysis.metrics import (
            delay,
            deliveries,
            events,
            hops,
            link_utilization,
            overhead,
            publications,
        )

        reading = TRACES if self.run.simulated else READING
        self.emit(reading, 0, 3)
        seen, links, used = self._traced() if self.run.simulated else self._scanned()
        self._keep("overhead", overhead.overhead(links), overhead.SCHEMA)
        self.emit(reading, 2, 3)
        logs = self._logs()
        from_ns = self.run.measured_from_ns
        published = self._keep(
            "publications", publications.publications(logs, from_ns), publications.SCHEMA
        )
        ignored = publications.count_before(logs, from_ns) if from_ns else 0
        self.emit(reading, 3, 3)

        self.emit(FOLLOWING, 0, 2)
        settings = settings_of_links(self.run.manifest)
        crossed = self._keep(
            "hops", hops.hops(seen, from_ns, self._paths_to_core(settings)), hops.SCHEMA
        )
        self.emit(FOLLOWING, 1, 2)
        self._keep("events", events.events(logs), events.SCHEMA)
        logged = read_events(self.folder)
        received, dropped = publications.receptions(logs), publications.drops(logs)
        delivered = self._keep(
            "deliveries",
            deliveries.deliveries(
                published,
                crossed,
                received,
                dropped,
                subscriptions_of({node.name: node.topics for node in self.run.nodes}),
                self.run.brokers,
                connected(logged, self.run.brokers),
                downtimes(self.run.manifest),
                self.deadlines,
                self.clocks,
            ),
            deliveries.SCHEMA,
        )
        self.emit(FOLLOWING, 2, 2)

        self.emit(SUMMING, 0, 3)
        self._keep("delay", delay.delay(delivered), delay.SCHEMA)
        self.emit(SUMMING, 1, 3)
        begin_ns, end_ns = self.run.played or _seen_time(seen)
        self._measure_overlay(seen, links, delivered, logged, begin_ns, end_ns)
        self._keep(
            "link_utilization",
            link_utilization.utilization(used, settings, begin_ns, self.load_unit_s),
            link_utilization.SCHEMA,
        )
        self.emit(SUMMING, 2, 3)
        seconds = (end_ns - begin_ns) / 1e9
        summary = summarize(
            self.run, self.folder, ignored, seconds, self.load_unit_s, self.deadlines, self.clocks
        )
        self.emit(SUMMING, 3, 3)
        return summary

    def _measure_overlay(
        self,
        seen: "DataFrame",
        links: "DataFrame",
        delivered: "DataFrame",
        logged: list[Event],
        begin_ns: int,
        end_ns: int,
    ) -> None:
        """Measure forwards, control traffic, load and repairs in this time."""
        from analysis.metrics import control, forwards, load, repair

        run = self.run
        by_topic = forwards.forwards_by_topic(self.spark, table_path(self.folder, "hops"))
        self._keep("forwards", forwards.forwards(by_topic, seen), forwards.SCHEMA)
        self._keep(
            "control",
            control.control(seen, links, run.brokers, begin_ns, end_ns),
            control.SCHEMA,
        )
        self._keep("load", load.load(seen, begin_ns, end_ns, self.load_unit_s), load.SCHEMA)
        self._keep(
            "repair", repair.repair(run, delivered, seen, logged, run.brokers), repair.SCHEMA
        )

    def _paths_to_core(self, settings: SettingsOfLinks) -> "DataFrame":
        """The link settings of each node's path to the core, and the size of packet headers there."""
        from analysis.metrics.delay_parts import paths_frame

        paths = paths_to_core(self.run.manifest, settings)
        return paths_frame(self.spark, paths, packet_bytes(self.folder))

    def _scanned(self) -> "tuple[DataFrame, DataFrame, DataFrame]":
        """Messages, totals of links and utilization from the captures."""
        from analysis.metrics import messages, mqtt, overhead

        scanned = scan(self.spark, self.run, self.folder, self.load_unit_s)
        self.emit(READING, 1, 3)
        totals, used = map(self.spark.createDataFrame, (scanned.totals, scanned.link_utilization))
        self._keep_mqtt_deliveries(self._read("mqtt", mqtt.SCHEMA))
        return (
            self._read("messages", messages.SCHEMA),
            self._keep("links", overhead.links(totals), overhead.LINKS_SCHEMA),
            used,
        )

    def _traced(self) -> "tuple[DataFrame, DataFrame, DataFrame]":
        """The same from the traces of a simulated run, which has no MQTT and no datagrams."""
        from analysis.metrics import datagrams, messages, mqtt, overhead
        from analysis.metrics.empty import empty_table

        seen, links, used = read_trace(self.spark, self.run)
        self._keep("datagrams", empty_table(self.spark, datagrams.SCHEMA), datagrams.SCHEMA)
        packets = self._keep("mqtt", empty_table(self.spark, mqtt.SCHEMA), mqtt.SCHEMA)
        self._keep_mqtt_deliveries(packets)
        return (
            self._keep("messages", seen, messages.SCHEMA),
            self._keep("links", links, overhead.LINKS_SCHEMA),
            used,
        )

    def _keep_mqtt_deliveries(self, packets: "DataFrame") -> None:
        from analysis.metrics import mqtt
        from analysis.metrics.empty import empty_table

        silent = packets.isEmpty()
        found = (
            empty_table(self.spark, mqtt.DELIVERIES_SCHEMA) if silent else mqtt.deliveries(packets)
        )
        self._keep("mqtt_deliveries", found, mqtt.DELIVERIES_SCHEMA)

    def _keep(self, name: str, frame: "DataFrame", schema: str) -> "DataFrame":
        """Write a metric and read it back."""
        frame.write.parquet(str(table_path(self.folder, name)))
        return self._read(name, schema)

    def _read(self, name: str, schema: str) -> "DataFrame":
        return self.spark.read.schema(schema).parquet(str(table_path(self.folder, name)))

    def _logs(self) -> "DataFrame":
        from analysis.metrics.publications import LOG_SCHEMA

        write_logs(self.spark, self.run.log_files(), table_path(self.folder, LOGS), self.clocks)
        return self._read(LOGS, LOG_SCHEMA)


def _seen_time(seen: "DataFrame") -> tuple[int, int]:
    """From the first publication to the last message on any link, for a run without a scenario."""
    from pyspark.sql import functions as sf

    published = sf.min(sf.when(sf.col("kind") == "PUBLISH", sf.col("published_ns")))
    (row,) = seen.agg(published.alias("begin"), sf.max("last_ns").alias("end")).collect()
    return (row.begin or row.end or 0, row.end or 0)


def _write_json(path: Path, document: dict[str, Any]) -> None:
    """Write atomically."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(document, indent=2) + "\n")
    unfinished.replace(path)
