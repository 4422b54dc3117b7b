"""Reads captures, traces and logs of a run in parallel: the only stage that reads them.

Each task writes the big tables itself. It passes on the records of single messages to the task that follows the message
(`analysis.follow`), and sums to the driver.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.captures.clock import Clock
from analysis.captures.packets import PACKET_SCHEMA, as_table, check_file, read_windows
from analysis.captures.parquet import GrowingFile
from analysis.errors import AnalysisError
from analysis.inputs.clocks import Clocks, read_clocks
from analysis.inputs.logs import LogRange, read_range, timed_by
from analysis.inputs.logs import distribute as distribute_logs
from analysis.inputs.run_folder import Run
from analysis.metrics import control, datagrams, events, forwards, hops, load, messages, mqtt
from analysis.metrics.link_utilization import count_utilization, summed
from analysis.metrics.publications import RECORDED
from analysis.protocols.link import LinkReader
from analysis.protocols.messages import LinkPlace
from analysis.spark.blobs import FOR_DRIVER, Collector, Item, by_name, pack

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession


# Large tables: each task writes its rows itself, so they do not pass through Java.
WRITTEN = {"messages": messages.SCHEMA, "mqtt": mqtt.SCHEMA, "datagrams": datagrams.SCHEMA}
# Rows that go to the bucket of their message: sightings on links, and records of logs.
SIGHTINGS, RECORDS = "sightings", "records"
# Rows that go to the driver; totals also go to every bucket, and connects and the last message only there.
TOTALS, UTILIZATION, EVENTS = "totals", "link_utilization", "events"
CONNECTS, LAST = "connects", "last"
CONTROL, PACKETS, LOAD, PARTICIPANTS = "control", "packets", "load", "participants"
SMALLEST_SHARE = 1 << 22  # bytes; splitting a smaller file costs more than it gains


@dataclass(frozen=True, slots=True)
class Job:
    """A capture file, or a shard of its connections, for one task."""

    path: Path
    place: LinkPlace
    size: float
    shard: int = 0
    shards: int = 1
    clock: Clock | None = None  # that stamped the packets; None: the lab machine's


@dataclass(slots=True)
class Share:
    """What one task reads."""

    captures: list[Job] = field(default_factory=list)
    traces: list[tuple[Path, int]] = field(default_factory=list)  # a file, and a row group of it
    logs: list[LogRange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scan:
    """What all tasks need to know."""

    folder: Path  # of the tables, which the workers of a cluster must see
    buckets: int
    brokers: Collection[str]
    clocks: Clocks
    unit_ns: int
    from_ns: int  # publications before do not count
    played: tuple[int, int] | None  # begin and end of the scenario


def jobs_of(run: Run) -> list[Job]:
    """One job for each captured link; AnalysisError if a file is no capture."""
    names = {node.address: node.name for node in run.nodes}
    numbers = {node.number: node.name for node in run.nodes}
    clocks = read_clocks(run.clocks)
    by_number = {
        node.number: clock for node in run.nodes if (clock := clocks.get(node.name)) is not None
    }
    jobs = []
    for node in run.captured():
        path = run.pcap(node)
        check_file(path)
        shared = node.kind == "router"
        place = LinkPlace(node.name, node.address, node.mac, names, numbers, shared, by_number)
        jobs.append(Job(path, place, path.stat().st_size, clock=clocks.get(node.name)))
    return jobs


def distribute(jobs: Iterable[Job], tasks: int) -> list[list[Job]]:
    """Distribute the jobs over tasks, the largest first to the least loaded; files too big for one task are divided."""
    whole = list(jobs)
    share = max(sum(job.size for job in whole) / tasks, SMALLEST_SHARE)
    parts = []
    for job in whole:
        shards = max(1, min(tasks, round(job.size / share)))
        parts += [
            replace(job, size=job.size / shards, shard=shard, shards=shards)
            for shard in range(shards)
        ]
    loads: list[list[Job]] = [[] for _ in range(tasks)]
    for job in sorted(parts, key=lambda job: (-job.size, job.place.name, job.shard)):
        min(loads, key=lambda load: sum(other.size for other in load)).append(job)
    return loads


# The traces of a simulated run, in the tables that a scan of captures gives.


TRACES = ("messages.parquet", "links.parquet", "link_utilization.parquet")


def trace_files(run: Run) -> list[Path]:
    """The paths of the three tables; AnalysisError if one is missing."""
    files = [run.trace / name for name in TRACES]
    for file in files:
        if not file.is_file():
            raise AnalysisError(
                f"{file} is missing.", "The run did not end well; simulate it again."
            )
    return files


def shares_of(run: Run, tasks: int) -> list[Share]:
    """What each of so many tasks reads."""
    shares = [Share(logs=logs) for logs in distribute_logs(run.log_files(), tasks)]
    if run.simulated:
        file = trace_files(run)[0]
        for number in range(pq.ParquetFile(file).num_row_groups):
            shares[number % tasks].traces.append((file, number))
    else:
        for share, jobs in zip(shares, distribute(jobs_of(run), tasks), strict=True):
            share.captures = jobs
    return shares


def scan_of(run: Run, folder: Path, buckets: int, unit_s: float = load.UNIT_S) -> Scan:
    """What the tasks need to know of this run."""
    return Scan(
        folder,
        buckets,
        run.brokers,
        read_clocks(run.clocks),
        round(unit_s * 1e9),
        run.measured_from_ns,
        run.played,
    )


def read_all(context: "SparkContext", run: Run, scan: Scan) -> "RDD[Item]":
    """Read the run with all cores: the first stage of a job."""
    for name in WRITTEN:
        table_path(scan.folder, name).mkdir(parents=True)
    shares = [*enumerate(shares_of(run, context.defaultParallelism))]
    return context.parallelize(shares, len(shares)).mapPartitions(partial(_read_shares, scan))


def scan_alone(context: "SparkContext", run: Run, folder: Path) -> dict[str, pa.Table]:
    """Write the tables of `WRITTEN`, and return the sums of all tasks; messages are not followed."""
    items = read_all(context, run, scan_of(run, folder, buckets=1))
    return by_name(items.filter(_is_for_driver).values().collect())


def _is_for_driver(item: Item) -> bool:
    return item[0] == FOR_DRIVER


def _read_shares(scan: Scan, shares: Iterable[tuple[int, Share]]) -> Iterator[Item]:
    for number, share in shares:
        yield from read(scan, number, share)


def table_path(folder: Path, name: str) -> Path:
    """The path of a table."""
    return folder / f"{name}.parquet"


def read(scan: Scan, number: int, share: Share) -> Iterator[Item]:
    """Read a share: write its part of the tables of `WRITTEN`, and pass on what others need."""
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(
                GrowingFile(table_path(scan.folder, name) / f"part-{number:05}.parquet", schema)
            )
            for name, schema in WRITTEN.items()
        }
        task = _Task(scan, files)
        for job in share.captures:
            yield from task.read_link(job)
        for file, group in share.traces:
            rows = pq.ParquetFile(file).read_row_group(group)
            yield from task.add_messages(_as_messages(rows))
        for log_range in share.logs:
            yield from task.read_log(log_range)
        yield from task.end()


class _Task:
    """The state of a task: open files, and what it has not passed on yet."""

    def __init__(self, scan: Scan, files: dict[str, GrowingFile]) -> None:
        self._scan = scan
        self._files = files
        self._by_message = Collector(scan.buckets)
        self._sums: dict[str, list[pa.Table]] = {}
        self._last_ns = 0

    def read_link(self, job: Job) -> Iterator[Item]:
        reader = LinkReader(job.place, job.shard, job.shards)
        origin_ns = self._scan.played[0] if self._scan.played else 0
        used = []
        for window in read_windows(job.path):
            found = window.timed_by(job.clock)
            reader.add(found)
            reader.end_window()
            if job.shard == 0:
                used.append(count_utilization(found, job.place, self._scan.unit_ns, origin_ns))
            sightings, packets = reader.read_so_far()
            self._write("mqtt", _rows(packets))
            yield from self.add_messages(_rows(sightings))
        rest = reader.finish()
        self._write("mqtt", _rows(rest.mqtt))
        self._write("datagrams", _rows(rest.datagrams))
        yield from self.add_messages(_rows(rest.sightings))
        self._sum(TOTALS, _rows(rest.totals))
        self._sum(UTILIZATION, _rows(summed(used)))

    def add_messages(self, rows: pa.Table) -> Iterator[Item]:
        """Write sightings, count them, and pass those of publications on."""
        if not rows.num_rows:
            return
        self._write("messages", rows)
        self._last_ns = max(self._last_ns, pc.max(rows["last_ns"]).as_py())
        for name, counted in count_messages(self._scan, rows).items():
            self._sum(name, counted)
        sightings = hops.published(rows, self._scan.from_ns)
        yield from self._by_message.add(SIGHTINGS, sightings, ["id"])

    def read_log(self, log_range: LogRange) -> Iterator[Item]:
        """Pass the records of messages on, and keep the events."""
        clock = self._scan.clocks.get(log_range.node)
        for batch in read_range(log_range):
            rows = pa.Table.from_batches([timed_by(clock, batch)])
            self._sum(EVENTS, events.events(rows))
            recorded = pc.field("event").isin(RECORDED) & pc.field("id").is_valid()
            yield from self._by_message.add(RECORDS, rows.filter(recorded), ["id"])

    def end(self) -> Iterator[Item]:
        """Pass on all that is left."""
        yield from self._by_message.end(["id"])
        sums = {name: pa.concat_tables(parts) for name, parts in self._sums.items()}
        yield from ((FOR_DRIVER, (name, pack(rows))) for name, rows in sums.items())
        for_all = {LAST: pa.table({"last_ns": [self._last_ns]})}
        if EVENTS in sums:
            for_all[CONNECTS] = sums[EVENTS].filter(pc.field("event") == "connect")
        if TOTALS in sums:
            for_all[TOTALS] = sums[TOTALS]
        for name, rows in for_all.items():
            blob = pack(rows)
            yield from ((bucket, (name, blob)) for bucket in range(self._scan.buckets))

    def _write(self, name: str, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            self._files[name].write(batch)

    def _sum(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            self._sums.setdefault(name, []).append(rows)


def count_messages(scan: Scan, rows: pa.Table) -> dict[str, pa.Table]:
    """What metrics count of these messages; of a run without a scenario only what does not depend on its time."""
    found = {PARTICIPANTS: forwards.participants(rows)}
    if scan.played is not None:
        counted = control.count_control(rows, scan.brokers, *scan.played)
        found |= {CONTROL: counted.control, PACKETS: counted.packets}
        found[LOAD] = load.count_load(rows, *scan.played, scan.unit_ns / 1e9)
    return found


def _rows(column: pa.StructArray) -> pa.Table:
    return pa.Table.from_struct_array(column)


def _as_messages(rows: pa.Table) -> pa.Table:
    """The rows of a trace with all columns: earlier versions did not write all of them."""
    columns = [
        rows[one.name].cast(one.type)
        if one.name in rows.schema.names
        else pa.nulls(len(rows), one.type)
        for one in messages.SCHEMA
    ]
    return pa.table(columns, schema=messages.SCHEMA)


def packets(spark: "SparkSession", run: Run) -> "DataFrame":
    """All packets on all links as PACKET_SCHEMA: a starting point for new metrics."""
    from pyspark.sql.pandas.types import from_arrow_schema

    tasks = spark.sparkContext.defaultParallelism
    shares = distribute(jobs_of(run), tasks)

    def read_shares(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _packets(shares[number])

    numbers = spark.range(0, tasks, 1, tasks)
    return numbers.mapInArrow(read_shares, from_arrow_schema(PACKET_SCHEMA))


def _packets(jobs: Sequence[Job]) -> Iterator[pa.RecordBatch]:
    for job in jobs:
        if job.shard == 0:
            for found in read_windows(job.path):
                timed = found.timed_by(job.clock)
                yield from as_table(timed, job.place.name).to_batches()
