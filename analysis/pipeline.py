"""Measures a run folder: packets -> streams -> messages -> hops -> deliveries -> summary.

A simulated run has no packets: its traces contain the messages.

One Spark job of three stages reads everything (`scan`), follows each message (`follow`), and judges the order of
deliveries. Its tasks write the large tables. The driver makes all other tables from the sums that tasks return.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis import follow, scan
from analysis.captures.parquet import COMPRESSION
from analysis.errors import AnalysisError
from analysis.inputs.clocks import read_clocks
from analysis.inputs.link_settings import paths_to_core, settings_of_links
from analysis.inputs.manifest import downtimes
from analysis.inputs.run_folder import Run, read_run, refuse_removed_captures
from analysis.inputs.subscriptions import subscriptions_of
from analysis.metrics import (
    control,
    delay,
    events,
    forwards,
    link_utilization,
    load,
    mqtt,
    overhead,
    repair,
)
from analysis.metrics.tables import conform
from analysis.scan import count_messages, jobs_of, read_all, scan_of, table_path, trace_files
from analysis.spark.blobs import bucket_of, by_name
from analysis.spark.fanout import error_line
from analysis.spark.local_java import LocalJava
from analysis.spark.progress import Progress, watched
from analysis.spark.session import LOCAL, open_context
from analysis.summary import summarize

if TYPE_CHECKING:
    from pyspark import SparkContext

BUCKET_BYTES = 32_000_000  # of captures; the records of a bucket must fit into a task's memory
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
    master: str = LOCAL,
    java: LocalJava | None = None,
    load_unit_s: float = load.UNIT_S,
    deadlines: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """Measure a run: writes metrics/*.parquet and summary.json, returns the summary.

    `master`, `java`: as of `open_context`.
    `load_unit_s`: the unit of time of the momentary load of nodes and of link utilization.
    `deadlines`: level -> seconds; they override those of the manifest.
    """
    run = read_run(Path(run_dir).resolve())
    check_files(run)  # before Spark starts
    emit(STARTING, 0, 1)
    with open_context(master, java=java) as context:
        emit(STARTING, 1, 1)
        return measure(context, run, emit, load_unit_s, deadlines)


def measure(
    context: "SparkContext",
    run: Run,
    emit: Progress = _ignore,
    load_unit_s: float = load.UNIT_S,
    deadlines: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """The same with Spark started. Earlier metrics stay until the new ones are complete."""
    unfinished = run.folder / "metrics.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        due = {**run.deadlines, **(deadlines or {})}
        measurement = _Measurement(run, unfinished, load_unit_s, due)
        sums = measurement.read_and_follow(context, emit)
        emit(SUMMING, 0, 1)
        summary = measurement.sum_up(sums)
    except BaseException:  # also on an interrupt: remove incomplete results
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    shutil.rmtree(run.metrics, ignore_errors=True)
    unfinished.rename(run.metrics)
    _write_json(run.summary, summary)
    emit(SUMMING, 1, 1)
    return summary


def check_files(run: Run) -> None:
    """AnalysisError if a file is not a capture or trace."""
    size_of(run)


def size_of(run: Run) -> float:
    """Bytes of captures or traces; AnalysisError if they were removed, or if a file is none."""
    refuse_removed_captures(run)
    if run.simulated:
        return sum(file.stat().st_size for file in trace_files(run))
    return sum(job.size for job in jobs_of(run))


class _Measurement:
    """The measurement of one run."""

    def __init__(
        self, run: Run, folder: Path, load_unit_s: float, deadlines: Mapping[int, float]
    ) -> None:
        self.run = run
        self.folder = folder
        self.load_unit_s = load_unit_s
        self.deadlines = deadlines
        self.clocks = read_clocks(run.clocks)
        self.settings = settings_of_links(run.manifest)

    # The job of Spark

    def read_and_follow(self, context: "SparkContext", emit: Progress) -> dict[str, pa.Table]:
        """Write the large tables, and return the sums of all tasks."""
        from py4j.protocol import Py4JJavaError, Py4JNetworkError
        from pyspark.errors import PySparkException

        buckets = max(context.defaultParallelism, int(size_of(self.run) // BUCKET_BYTES))
        for name in follow.WRITTEN:
            table_path(self.folder, name).mkdir(parents=True)
        reading_all = scan_of(self.run, self.folder, buckets, self.load_unit_s)
        known = self._following(buckets)
        items = (
            read_all(context, self.run, reading_all)
            .partitionBy(buckets + 1, bucket_of)  # the last one has what the driver collects
            .mapPartitionsWithIndex(partial(follow.follow, known))
            .partitionBy(buckets + 1, bucket_of)
            .mapPartitionsWithIndex(partial(follow.judge_order, known))
        )
        reading = TRACES if self.run.simulated else READING
        with watched(context, (reading, FOLLOWING, FOLLOWING), emit):
            try:
                return by_name(items.collect())
            except (Py4JNetworkError, ConnectionError) as error:
                raise AnalysisError(
                    f"Spark ended while {self.run.name} was measured.",
                    "Was it stopped, or is there too little memory? Otherwise try again.",
                ) from error
            except (Py4JJavaError, PySparkException) as error:  # a task failed
                raise AnalysisError(
                    f"{self.run.name} cannot be measured: {error_line(error)}.",
                    "Its files are damaged, or of another version; run it again.",
                ) from error

    def _following(self, buckets: int) -> follow.Following:
        run = self.run
        return follow.Following(
            self.folder,
            buckets,
            run.brokers,
            subscriptions_of({node.name: node.topics for node in run.nodes}),
            tuple(paths_to_core(run.manifest, self.settings)),
            overhead.header_bytes(self._traced_links()) if run.simulated else None,
            downtimes(run.manifest),
            self.deadlines,
            self.clocks,
            run.measured_from_ns,
            run.played[1] if run.played else None,
        )

    def _traced_links(self) -> pa.Table:
        return conform(pq.read_table(trace_files(self.run)[1]), overhead.LINKS_SCHEMA)

    # The other tables

    def sum_up(self, sums: Mapping[str, pa.Table]) -> dict[str, Any]:
        """Write the small tables, and return the summary."""

        def summed(name: str, schema: pa.Schema) -> pa.Table:
            found = sums.get(name)
            return schema.empty_table() if found is None else found

        if self.run.simulated:
            links = self._traced_links()
            used = pq.read_table(trace_files(self.run)[2])
        else:
            links = overhead.links(summed(scan.TOTALS, overhead.LINKS_SCHEMA))
            used = summed(scan.UTILIZATION, link_utilization.COUNTED)
        logged = self._write("events", summed(scan.EVENTS, events.SCHEMA).sort_by("t_ns"))
        self._write("links", links)
        self._write("overhead", overhead.overhead(links))
        self._write(
            "forwards",
            forwards.forwards(
                sums[follow.FORWARDS], summed(scan.PARTICIPANTS, forwards.PARTICIPANTS)
            ),
        )
        delivered = self._read("deliveries")
        self._write("delay", delay.delay(delivered))
        begin_ns, end_ns = self.run.played or self._seen_time()
        counted = sums if self.run.played else self._count_again(begin_ns, end_ns)
        self._write_traffic(counted, links, begin_ns, end_ns)
        self._write(
            "link_utilization",
            link_utilization.utilization(used, self.settings, begin_ns, self.load_unit_s),
        )
        last_sent = partial(repair.last_sent_ns, table_path(self.folder, "messages"))
        self._write(
            "repair",
            repair.repair(self.run, delivered, last_sent, events.listed(logged), self.run.brokers),
        )
        self._write("mqtt_deliveries", mqtt.deliveries(self._read("mqtt")))
        return summarize(
            self.run,
            self.folder,
            pc.sum(sums[follow.IGNORED]["messages"]).as_py(),
            (end_ns - begin_ns) / 1e9,
            self.load_unit_s,
            self.deadlines,
            self.clocks,
        )

    def _write_traffic(
        self, counted: Mapping[str, pa.Table], links: pa.Table, begin_ns: int, end_ns: int
    ) -> None:
        """Control messages and load; nothing was counted if nothing was seen."""
        sent, packets = counted.get(scan.CONTROL), counted.get(scan.PACKETS)
        self._write(
            "control",
            control.SCHEMA.empty_table()
            if sent is None or packets is None
            else control.control(control.Counted(sent, packets), links, begin_ns, end_ns),
        )
        loads = counted.get(scan.LOAD)
        self._write("load", load.SCHEMA.empty_table() if loads is None else load.load(loads))

    def _seen_time(self) -> tuple[int, int]:
        """From the first publication to the last message on any link, for a run without a scenario."""
        columns = ["kind", "published_ns", "last_ns"]
        seen = pq.read_table(table_path(self.folder, "messages"), columns=columns)
        begin = pc.min(seen.filter(pc.field("kind") == "PUBLISH")["published_ns"]).as_py()
        end = pc.max(seen["last_ns"]).as_py()
        return (begin or end or 0, end or 0)

    def _count_again(self, begin_ns: int, end_ns: int) -> dict[str, pa.Table]:
        """Count messages when the time that counts is known; tasks knew it only of a played scenario."""
        known = scan_of(self.run, self.folder, 1, self.load_unit_s)
        known = replace(known, played=(begin_ns, end_ns))
        parts: dict[str, list[pa.Table]] = {}
        for file in sorted(table_path(self.folder, "messages").glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches():
                for name, rows in count_messages(known, pa.Table.from_batches([batch])).items():
                    parts.setdefault(name, []).append(rows)
        return {name: pa.concat_tables(tables) for name, tables in parts.items()}

    def _write(self, name: str, rows: pa.Table) -> pa.Table:
        folder = table_path(self.folder, name)
        folder.mkdir(exist_ok=True)
        pq.write_table(rows, folder / "part-00000.parquet", compression=COMPRESSION)
        return rows

    def _read(self, name: str) -> pa.Table:
        return pq.read_table(table_path(self.folder, name))


def _write_json(path: Path, document: dict[str, Any]) -> None:
    """Write atomically."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(document, indent=2) + "\n")
    unfinished.replace(path)
