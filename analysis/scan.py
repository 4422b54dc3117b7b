"""Reads all captures of a run in parallel: the only stage that touches pcap files."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from analysis.datagrams import DATAGRAMS
from analysis.link import LinkReader
from analysis.load import UNIT_S
from analysis.messages import SIGHTING, LinkPlace
from analysis.mqtt_rows import MQTT
from analysis.pcap import PACKET_SCHEMA, as_table, check_file, read_windows
from analysis.runfolder import Run
from analysis.totals import TOTALS
from analysis.use import USE, use_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A row is a message seen on a link, or what a link cost, or what it carried in a unit of time, or an MQTT packet, or a
# flow of datagrams; the other columns are null. One pass over the files gives all.
SCAN_SCHEMA = pa.schema(
    [
        ("sighting", SIGHTING),
        ("totals", TOTALS),
        ("use", USE),
        ("mqtt", MQTT),
        ("datagrams", DATAGRAMS),
    ]
)
SMALLEST_SHARE = 1 << 22  # bytes; dividing a smaller file costs more than it gains


@dataclass(frozen=True, slots=True)
class Job:
    """A file, or the part of its connections that one task reads."""

    path: Path
    place: LinkPlace
    size: float
    shard: int = 0
    shards: int = 1


def jobs_of(run: Run) -> list[Job]:
    """One job a captured link; AnalysisError if one of the files is no capture."""
    names = {node.address: node.name for node in run.nodes}
    numbers = {node.number: node.name for node in run.nodes}
    jobs = []
    for node in run.captured():
        path = run.pcap(node)
        check_file(path)
        shared = node.kind == "router"
        place = LinkPlace(node.name, node.address, node.mac, names, numbers, shared)
        jobs.append(Job(path, place, path.stat().st_size))
    return jobs


def share_out(jobs: Iterable[Job], tasks: int) -> list[list[Job]]:
    """The jobs on so many tasks, the largest first to the least loaded; a file too big for one task is divided."""
    whole = list(jobs)
    share = max(sum(job.size for job in whole) / tasks, SMALLEST_SHARE)
    parts = []
    for job in whole:
        shards = max(1, min(tasks, round(job.size / share)))
        parts += [
            Job(job.path, job.place, job.size / shards, shard, shards) for shard in range(shards)
        ]
    loads: list[list[Job]] = [[] for _ in range(tasks)]
    for job in sorted(parts, key=lambda job: (-job.size, job.place.name, job.shard)):
        min(loads, key=lambda load: sum(other.size for other in load)).append(job)
    return loads


def scan(spark: "SparkSession", run: Run, unit_s: float = UNIT_S) -> "DataFrame":
    """Every message on every link, every link's totals, and its use in units of this length, as SCAN_SCHEMA."""
    origin_ns = run.played[0] if run.played else 0
    decode = partial(_decode, unit_ns=round(unit_s * 1e9), origin_ns=origin_ns)
    return _over_files(spark, run, SCAN_SCHEMA, decode)


def packets(spark: "SparkSession", run: Run) -> "DataFrame":
    """Every packet on every link as PACKET_SCHEMA: where a metric of one's own can begin."""
    return _over_files(spark, run, PACKET_SCHEMA, _packets)


def _over_files(
    spark: "SparkSession",
    run: Run,
    schema: pa.Schema,
    read_job: Callable[[Job], Iterator[pa.RecordBatch]],
) -> "DataFrame":
    from pyspark.sql.pandas.types import from_arrow_schema

    tasks = spark.sparkContext.defaultParallelism
    shares = share_out(jobs_of(run), tasks)

    def read_shares(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for job in shares[number]:
                    yield from read_job(job)

    numbers = spark.range(0, tasks, 1, tasks)
    return numbers.mapInArrow(read_shares, from_arrow_schema(schema))


def _decode(job: Job, *, unit_ns: int, origin_ns: int) -> Iterator[pa.RecordBatch]:
    reader = LinkReader(job.place, job.shard, job.shards)
    used = []
    for found in read_windows(job.path):
        reader.add(found)
        reader.keep()
        if job.shard == 0:
            used.append(use_of(found, job.place, unit_ns, origin_ns))
        sightings, mqtt = reader.read_so_far()
        yield from _rows(sighting=sightings, mqtt=mqtt)
    read = reader.finish()
    yield from _rows(sighting=read.sightings, mqtt=read.mqtt, totals=read.totals)
    yield from _rows(datagrams=read.datagrams, use=summed(used))


def _rows(**kinds: pa.StructArray) -> Iterator[pa.RecordBatch]:
    """Each in its own column."""
    for name, rows in kinds.items():
        if len(rows):
            columns = [
                rows if field.name == name else pa.nulls(len(rows), field.type)
                for field in SCAN_SCHEMA
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=SCAN_SCHEMA)


def summed(used: list[pa.StructArray]) -> pa.StructArray:
    """What windows of a file say of its use; a unit may lie in several of them."""
    keys = ["link", "direction", "from_ns"]
    counts = ["packets", "bytes"]
    if not used:
        return pa.array([], USE)
    table = pa.Table.from_struct_array(pa.chunked_array(used))
    found = table.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in counts])
    columns = [*(found[name] for name in keys), *(found[f"{name}_sum"] for name in counts)]
    return pa.StructArray.from_arrays(
        [column.combine_chunks() for column in columns], fields=list(USE)
    )


def _packets(job: Job) -> Iterator[pa.RecordBatch]:
    if job.shard == 0:
        for found in read_windows(job.path):
            yield from as_table(found, job.place.name).to_batches()
