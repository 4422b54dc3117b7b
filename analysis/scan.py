"""Reads all captures of a run in parallel: the only stage that reads pcap files."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from analysis.captures.clock import Clock
from analysis.captures.packets import PACKET_SCHEMA, as_table, check_file, read_windows
from analysis.captures.parquet import GrowingFile
from analysis.inputs.clocks import read_clocks
from analysis.inputs.run_folder import Run
from analysis.metrics.link_utilization import UTILIZATION, count_utilization, summed
from analysis.metrics.load import UNIT_S
from analysis.protocols.link import TOTALS, LinkReader
from analysis.protocols.messages import SIGHTING, LinkPlace
from analysis.protocols.mqtt import MQTT
from analysis.protocols.udp import DATAGRAMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Large tables: each task writes its rows itself, so they do not pass through Java. Table -> row type.
WRITTEN = {"messages": SIGHTING, "mqtt": MQTT, "datagrams": DATAGRAMS}
# The result of a task: a row has totals of a link, or its utilization in a unit of time; the other column is null.
TASK_RESULT = pa.schema([("totals", TOTALS), ("link_utilization", UTILIZATION)])
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


@dataclass(frozen=True, slots=True)
class Scanned:
    """The results of all tasks: totals of each link (of each shard of its file), and its utilization."""

    totals: pa.Table
    link_utilization: pa.Table


def scan(spark: "SparkSession", run: Run, folder: Path, unit_s: float = UNIT_S) -> Scanned:
    """Write the tables of `WRITTEN` to this folder, which the workers of a cluster must see.

    `unit_s`: the unit of time of link utilization.
    """
    origin_ns = run.played[0] if run.played else 0
    for name in WRITTEN:
        table_path(folder, name).mkdir(parents=True)
    decode = partial(_decode, folder=folder, unit_ns=round(unit_s * 1e9), origin_ns=origin_ns)
    results = _over_files(spark, run, TASK_RESULT, decode).toArrow()
    return Scanned(*(_of_struct(results[name]) for name in TASK_RESULT.names))


def table_path(folder: Path, name: str) -> Path:
    """The path of a table."""
    return folder / f"{name}.parquet"


def _of_struct(column: pa.ChunkedArray) -> pa.Table:
    """The rows of a struct column that are not null."""
    return pa.Table.from_struct_array(column.drop_null())


def packets(spark: "SparkSession", run: Run) -> "DataFrame":
    """All packets on all links as PACKET_SCHEMA: a starting point for new metrics."""
    return _over_files(spark, run, PACKET_SCHEMA, _packets)


def _over_files(
    spark: "SparkSession",
    run: Run,
    schema: pa.Schema,
    read: Callable[[list[Job], int], Iterator[pa.RecordBatch]],
) -> "DataFrame":
    """Apply `read` to the jobs and the number of each task."""
    from pyspark.sql.pandas.types import from_arrow_schema

    tasks = spark.sparkContext.defaultParallelism
    shares = distribute(jobs_of(run), tasks)

    def read_shares(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read(shares[number], number)

    numbers = spark.range(0, tasks, 1, tasks)
    return numbers.mapInArrow(read_shares, from_arrow_schema(schema))


def _decode(
    jobs: list[Job], number: int, *, folder: Path, unit_ns: int, origin_ns: int
) -> Iterator[pa.RecordBatch]:
    with ExitStack() as stack:
        tables = _Tables(
            {
                name: stack.enter_context(
                    GrowingFile(
                        table_path(folder, name) / f"part-{number:05}.parquet",
                        pa.schema(list(kind)),
                    )
                )
                for name, kind in WRITTEN.items()
            }
        )
        for job in jobs:
            yield from _read_link(job, tables, unit_ns, origin_ns)


class _Tables:
    """The files that one task writes."""

    def __init__(self, files: dict[str, GrowingFile]) -> None:
        self._files = files

    def add(self, **kinds: pa.StructArray) -> None:
        """Append rows to these tables."""
        for name, rows in kinds.items():
            if len(rows):
                self._files[name].write(pa.RecordBatch.from_struct_array(rows))


def _read_link(job: Job, tables: _Tables, unit_ns: int, origin_ns: int) -> Iterator[pa.RecordBatch]:
    reader = LinkReader(job.place, job.shard, job.shards)
    used = []
    for window in read_windows(job.path):
        found = window.timed_by(job.clock)
        reader.add(found)
        reader.end_window()
        if job.shard == 0:
            used.append(count_utilization(found, job.place, unit_ns, origin_ns))
        sightings, mqtt = reader.read_so_far()
        tables.add(messages=sightings, mqtt=mqtt)
    read = reader.finish()
    tables.add(messages=read.sightings, mqtt=read.mqtt, datagrams=read.datagrams)
    yield from _task_result(read.totals, summed(used))


def _task_result(*results: pa.StructArray) -> Iterator[pa.RecordBatch]:
    """Batches with each result in its own column, in the order of `TASK_RESULT`."""
    for own, rows in zip(TASK_RESULT, results, strict=True):
        if len(rows):
            columns = [
                rows if field.name == own.name else pa.nulls(len(rows), field.type)
                for field in TASK_RESULT
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=TASK_RESULT)


def _packets(jobs: list[Job], _number: int) -> Iterator[pa.RecordBatch]:
    for job in jobs:
        if job.shard == 0:
            for found in read_windows(job.path):
                timed = found.timed_by(job.clock)
                yield from as_table(timed, job.place.name).to_batches()
