"""`spark.read.format("pcap")`: captures as a table of packets; `pcap-problems`: bytes that could not be read.

    from analysis.captures.source import register
    register(spark)
    spark.read.format("pcap").load("captures/")
    spark.readStream.format("pcap").load("captures/")       captures that still grow

See docs/reference/pcap-source.md for the columns and options. Spark passes a Python data source the filters of a
query, but not its columns: name those in `columns` (or give a schema), and the others are not computed.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from analysis.captures.columns import PROBLEMS, SCHEMA, problem_batch, problem_table
from analysis.captures.files import find_files
from analysis.captures.growing import LEAST_STEP, Place, advance, available, between
from analysis.captures.pieces import (
    TASKS_PER_CORE,
    Piece,
    group_pieces,
    piece_size,
    split_files,
    split_piece,
)
from analysis.captures.storage import size_of
from analysis.captures.windows import Part, read_piece
from analysis.errors import AnalysisError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The filters that Spark pushes down, on whole batches. As in SQL, null is not fulfilled.


def _same(column: pa.Array, value: Any) -> pa.Array:
    """Equal, or both null."""
    if value is None:
        return pc.is_null(column)
    return pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)


def _among(column: pa.Array, values: Any) -> pa.Array:
    known = [value for value in values if value is not None]
    found = pc.is_in(column, pa.array(known, column.type))
    no_match = pa.scalar(False if len(known) == len(values) else None, pa.bool_())
    return pc.if_else(pc.is_valid(column), pc.if_else(found, True, no_match), None)


def _compared(compare: Any) -> Callable[[pa.Array, Any], pa.Array]:
    return lambda column, value: compare(column, pa.scalar(value, column.type))


CONDITIONS: dict[type[Filter], Callable[[pa.Array, Any], pa.Array]] = {
    EqualTo: _compared(pc.equal),
    GreaterThan: _compared(pc.greater),
    GreaterThanOrEqual: _compared(pc.greater_equal),
    LessThan: _compared(pc.less),
    LessThanOrEqual: _compared(pc.less_equal),
    EqualNullSafe: _same,
    In: _among,
    IsNull: lambda column, _: pc.is_null(column),
    IsNotNull: lambda column, _: pc.is_valid(column),
}


def is_known(condition: Filter) -> bool:
    """Whether this module can evaluate the filter; Spark evaluates the others."""
    if isinstance(condition, Not):
        return is_known(condition.child)
    return type(condition) in CONDITIONS


def fulfils(condition: Filter, batch: pa.RecordBatch) -> pa.Array:
    """Whether each row fulfils the filter; null where that is unknown."""
    if isinstance(condition, Not):
        return pc.invert(fulfils(condition.child, batch))
    fields = vars(condition)
    return CONDITIONS[type(condition)](batch.column(fields["attribute"][0]), fields.get("value"))


PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PERMISSIVE, DROP, FAIL = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"  # as Spark calls it


def register(spark: "SparkSession") -> None:
    """Register both formats in a session, and let Spark push filters down to them."""
    spark.conf.set(PUSHDOWN, "true")
    for source in (PcapSource, PcapProblems):
        spark.dataSource.register(source)


@dataclass
class Share(InputPartition):
    """The pieces that one task reads."""

    pieces: list[Piece]


class PcapSource(DataSource):
    """One row for each packet, and one for each part of a file that could not be read."""

    @classmethod
    def name(cls) -> str:
        return "pcap"

    def schema(self) -> StructType:
        return from_arrow_schema(_chosen(self.options.get("columns")))

    def reader(self, schema: StructType) -> "PacketReader":
        return PacketReader(dict(self.options), _as_arrow(schema))

    def streamReader(self, schema: StructType) -> "GrowingReader":  # noqa: N802 - Spark's name
        return GrowingReader(self.reader(schema))


class PcapProblems(DataSource):
    """One row for each part of a file that could not be read: where, how many bytes, why."""

    @classmethod
    def name(cls) -> str:
        return "pcap-problems"

    def schema(self) -> StructType:
        return from_arrow_schema(PROBLEMS)

    def reader(self, schema: StructType) -> "ProblemReader":
        return ProblemReader(dict(self.options))

    def streamReader(self, schema: StructType) -> "GrowingReader":  # noqa: N802 - Spark's name
        return GrowingReader(self.reader(schema))


class _Reader(DataSourceReader):
    """Distributes the files over tasks."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = {name.lower(): value for name, value in options.items()}

    def partitions(self) -> list[Share]:
        files = find_files(_paths(self.options))
        size = self.piece_bytes(sum(map(size_of, files)))
        return [Share(pieces) for pieces in group_pieces(split_files(files, size), size)]

    def piece_bytes(self, total: int) -> int:
        """Bytes that one task reads, of `total`."""
        tasks = TASKS_PER_CORE * (os.cpu_count() or 1)
        return _at_least_one(self.options, "piece_bytes") or piece_size(total, tasks)


class ProblemReader(_Reader):
    """Reads records without decoding packets."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in _parts(partition):
            if part.problems:
                yield problem_table(part.path, part.problems)


class PacketReader(_Reader):
    """Reads packets, with the requested columns and rows."""

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
            batch = batch.filter(fulfils(one, batch))
        if len(batch):
            yield batch


class GrowingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads files that grow or appear, each row once: an offset holds, by file, where to continue."""

    def __init__(self, reader: PacketReader | ProblemReader) -> None:
        self.reader = reader
        self.most = _at_least_one(reader.options, "maxbytespertrigger")
        self.until: dict[str, int] | None = None  # limit by file; None: no limit
        self.seen: dict[str, tuple[int, int]] = {}  # size, and up to where it was complete then

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxBytes(self.most) if self.most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self.until = {path: available(path) for path in self._files()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        left = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        reached = dict(start)
        # Files with the least progress come first, so that a file that grows fast does not starve the others.
        for path in sorted(self._files(), key=lambda path: _place(start, path).at):
            if left is not None and left <= 0:
                break
            place = _place(start, path)
            now = self._advance(path, place, left)
            if now.at > place.at:
                reached[path] = now.as_dict()
                left = None if left is None else left - (now.at - place.at)
        return dict(sorted(reached.items()))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Share]:
        pieces = [
            between(path, _place(start, path), _place(end, path))
            for path in end
            if _place(end, path).at > _place(start, path).at
        ]
        size = self.reader.piece_bytes(sum((one.end or 0) - one.begin for one in pieces))
        smaller = [part for piece in pieces for part in split_piece(piece, size)]
        return [Share(share) for share in group_pieces(smaller, size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.reader.read(partition)

    def _files(self) -> list[str]:
        if self.until is not None:
            return list(self.until)
        return find_files(_paths(self.reader.options), may_be_missing=True)

    def _advance(self, path: str, place: Place, left: int | None) -> Place:
        """Advance in a file; skip files that have not grown."""
        size = size_of(path)
        if self.seen.get(path) == (size, place.at):
            return place
        stop = None if left is None else place.at + max(left, LEAST_STEP)
        if self.until is not None:
            stop = self.until[path] if stop is None else min(stop, self.until[path])
        now = advance(path, place, stop)
        if left is None:
            self.seen[path] = (size, now.at)
        return now


def _place(offset: Mapping[str, Any], path: str) -> Place:
    return Place.from_dict(offset[path]) if path in offset else Place()


def _at_least_one(options: Mapping[str, str], name: str) -> int | None:
    """The value of a numeric option; None if it is not given."""
    if name not in options:
        return None
    number = int(options[name])
    if number < 1:
        raise AnalysisError(f"{name} is {number}", "it is a number of bytes.")
    return number


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
    """The schema of these columns, or of all."""
    if not columns:
        return SCHEMA
    names = [name.strip() for name in columns.split(",")]
    _must_be_known(names)
    return pa.schema([SCHEMA.field(name) for name in names])


def _as_arrow(schema: StructType) -> pa.Schema:
    """Spark's schema as Arrow; AnalysisError if a column is unknown or has another type."""
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
