"""`spark.read.format("pcap")`: anybody's captures as a table of packets; `pcap-problems`: what could not be read.

    from analysis.source import register
    register(spark)
    spark.read.format("pcap").load("captures/")

See docs/pcap-source.md for the columns and options. Spark tells a Python data source which rows a query wants, but not
which columns: name those in `columns` (or give a schema), and the others are not even made.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from analysis.captures.columns import PROBLEMS, SCHEMA, problem_batch, problem_table
from analysis.captures.files import find_files
from analysis.captures.pieces import TASKS_PER_CORE, Piece, cut, share_out, usual_piece
from analysis.captures.reading import Part, read_piece
from analysis.errors import AnalysisError
from analysis.pushdown import is_known, wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PERMISSIVE, DROP, FAIL = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"  # as Spark calls it


def register(spark: "SparkSession") -> None:
    """Make both formats known to a session, and let Spark tell them which rows it wants."""
    spark.conf.set(PUSHDOWN, "true")
    for source in (PcapSource, PcapProblems):
        spark.dataSource.register(source)


@dataclass
class Share(InputPartition):
    """What one task reads."""

    pieces: list[Piece]


class PcapSource(DataSource):
    """One row a packet, and one for each part of a file that could not be read."""

    @classmethod
    def name(cls) -> str:
        return "pcap"

    def schema(self) -> StructType:
        return from_arrow_schema(_chosen(self.options.get("columns")))

    def reader(self, schema: StructType) -> "PacketReader":
        return PacketReader(dict(self.options), _as_arrow(schema))


class PcapProblems(DataSource):
    """One row for each part of a file that could not be read: where, how many bytes, why."""

    @classmethod
    def name(cls) -> str:
        return "pcap-problems"

    def schema(self) -> StructType:
        return from_arrow_schema(PROBLEMS)

    def reader(self, schema: StructType) -> "ProblemReader":
        return ProblemReader(dict(self.options))


class _Reader(DataSourceReader):
    """Divides the files among tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = {name.lower(): value for name, value in options.items()}

    def partitions(self) -> list[Share]:
        files = find_files(_paths(self.options))
        tasks = TASKS_PER_CORE * (os.cpu_count() or 1)
        size = int(self.options.get("piece_bytes") or usual_piece(files, tasks))
        if size < 1:
            raise AnalysisError(
                f"piece_bytes is {size}", "it is the size of a task's part of a file."
            )
        return [Share(pieces) for pieces in share_out(cut(files, size), size)]


class ProblemReader(_Reader):
    """Follows the records without looking into the packets."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in _parts(partition):
            if part.problems:
                yield problem_table(part.path, part.problems)


class PacketReader(_Reader):
    """Packets, of those columns and rows that are asked for."""

    def __init__(self, options: Mapping[str, str], schema: pa.Schema) -> None:
        super().__init__(options)
        self.columns = schema.names
        self.mode = self.options.get("mode", PERMISSIVE).upper()
        self.filters: list[Filter] = []
        if self.mode not in (PERMISSIVE, DROP, FAIL):
            raise AnalysisError(f"there is no mode {self.mode}", f"{PERMISSIVE}, {DROP} or {FAIL}.")

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        for one in filters:
            if is_known(one):
                self.filters.append(one)
            else:
                yield one

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([SCHEMA.field(name) for name in self.columns])
        for part in _parts(partition):
            for batch in part.batches(schema):
                yield from self._wanted(batch)
            if not part.problems or self.mode == DROP:
                continue
            if self.mode == FAIL:
                first = part.problems[0]
                raise AnalysisError(
                    f"{part.path}, byte {first.offset}: {first.reason}",
                    f"mode {PERMISSIVE} reads what can be read.",
                )
            yield from self._wanted(problem_batch(part.path, part.problems, schema))

    def _wanted(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for one in self.filters:
            batch = batch.filter(wanted(one, batch))
        if len(batch):
            yield batch


def _parts(partition: InputPartition) -> Iterator[Part]:
    assert isinstance(partition, Share)
    for piece in partition.pieces:
        yield from read_piece(piece)


def _paths(options: Mapping[str, str]) -> list[str]:
    several = options.get("paths")
    found: list[str] = json.loads(several) if several else []
    if one := options.get("path"):
        found.append(one)
    if not found:
        raise AnalysisError("no capture was named", 'for example .load("captures/*.pcap").')
    return found


def _chosen(columns: str | None) -> pa.Schema:
    """The columns of this list, or all."""
    if not columns:
        return SCHEMA
    names = [name.strip() for name in columns.split(",")]
    _must_be_known(names)
    return pa.schema([SCHEMA.field(name) for name in names])


def _as_arrow(schema: StructType) -> pa.Schema:
    """What Spark asks for; AnalysisError if it is none of our columns, or of another type."""
    _must_be_known(schema.names)
    ours = pa.schema([SCHEMA.field(name) for name in schema.names])
    for asked, has in zip(schema.fields, from_arrow_schema(ours).fields, strict=True):
        if asked.dataType != has.dataType:
            raise AnalysisError(
                f"column {has.name} is of type {has.dataType.simpleString()}, "
                f"not {asked.dataType.simpleString()}",
                "leave the schema out and name the columns in the option `columns`.",
            )
    return ours


def _must_be_known(names: Iterable[str]) -> None:
    for name in names:
        if name not in SCHEMA.names:
            raise AnalysisError(f"there is no column {name}", f"{', '.join(SCHEMA.names)}.")
