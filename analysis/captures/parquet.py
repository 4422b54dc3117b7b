"""Writes rows to a Parquet file, and counts packets by kind meanwhile."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.captures.columns import SCHEMA
from analysis.captures.pieces import Piece
from analysis.captures.records import Problem
from analysis.captures.windows import read_piece

COMPRESSION = "zstd"
GROUP_ROWS = 250_000  # of a row group
COUNTED = ("kind", "wirelen", "ts_ns")
KINDS = pa.schema(
    [
        ("kind", pa.string()),
        ("packets", pa.int64()),
        ("wire_bytes", pa.int64()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
    ]
)


def write_packets(
    pieces: Iterable[Piece], target: Path | None, columns: Sequence[str] = tuple(SCHEMA.names)
) -> tuple[pa.Table, list[tuple[str, Problem]]]:
    """Write all packets of these pieces, if there is a target; returns counts by kind (as KINDS) and all problems."""
    columns = columns if target else ()
    needed = pa.schema([SCHEMA.field(name) for name in dict.fromkeys((*columns, *COUNTED))])
    counted: list[pa.Table] = []
    problems: list[tuple[str, Problem]] = []
    with ExitStack() as stack:
        kept = pa.schema([SCHEMA.field(name) for name in columns])
        file = stack.enter_context(GrowingFile(target, kept)) if target else None
        for piece in pieces:
            for part in read_piece(piece):
                problems += [(part.path, problem) for problem in part.problems]
                for batch in part.batches(needed):
                    counted.append(_counted(batch))
                    if file:
                        file.write(batch.select(list(columns)))
    return sum_kinds(counted), problems


def _counted(batch: pa.RecordBatch) -> pa.Table:
    table = pa.Table.from_batches([batch]).group_by("kind")
    found = table.aggregate(
        [("wirelen", "count"), ("wirelen", "sum"), ("ts_ns", "min"), ("ts_ns", "max")]
    )
    return found.rename_columns(KINDS.names).cast(KINDS)


def sum_kinds(counted: list[pa.Table]) -> pa.Table:
    """Sum several tables of KINDS."""
    table = pa.concat_tables(counted) if counted else KINDS.empty_table()
    found = table.group_by("kind").aggregate(
        [("packets", "sum"), ("wire_bytes", "sum"), ("first_ns", "min"), ("last_ns", "max")]
    )
    return found.rename_columns(KINDS.names)


class GrowingFile:
    """A Parquet file that is written in large row groups."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression=COMPRESSION)
        self._pending: list[pa.RecordBatch] = []

    def __enter__(self) -> "GrowingFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        self._pending.append(batch)
        if sum(map(len, self._pending)) >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._pending, self._schema))
        self._pending.clear()
