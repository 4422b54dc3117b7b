"""Tables between Spark's tasks, as compressed Arrow data with a key.

Java moves them as bytes, without reading rows, so no query is planned or compiled for them. `mapInArrow` on DataFrames
would load 8,000 more of Java's classes, which takes longer than the work itself for most runs
(docs/explanation/analysis.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FOR_DRIVER = -1  # a key: tasks pass on what the driver collects in the end
Item = tuple[int, tuple[str, bytes]]  # a key, and a table with its name
HELD_BYTES = 1 << 25  # of a table's rows in a task, before they are passed on
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def bucket_of(key: int) -> int:
    """The partition of a key, for `partitionBy`; that of FOR_DRIVER is the last one."""
    return key


def pack(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpack(blob: bytes) -> pa.Table:
    """The table that `pack` has made into bytes."""
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()


def by_name(items: Iterable[tuple[str, bytes]]) -> dict[str, pa.Table]:
    """All rows of each table."""
    parts: dict[str, list[pa.Table]] = {}
    for name, blob in items:
        parts.setdefault(name, []).append(unpack(blob))
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def split(table: pa.Table, columns: Sequence[str], buckets: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each bucket. Rows with equal text in these columns are in one bucket, in any process."""
    if not table.num_rows:
        return
    text = table[columns[0]]
    if len(columns) > 1:
        text = pc.binary_join_element_wise(*(table[name] for name in columns), "\0")
    coded = text.combine_chunks().dictionary_encode()
    numbers = [crc32(one.encode()) % buckets for one in coded.dictionary.to_pylist()]
    bucket = np.array(numbers)[coded.indices.to_numpy()]
    order = np.argsort(bucket, kind="stable")
    ends = np.cumsum(np.bincount(bucket, minlength=buckets)).tolist()
    rows = table.take(pa.array(order))
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > begin:
            yield number, rows.slice(begin, end - begin)


class Collector:
    """Collects rows of named tables for each bucket, and passes them on in large parts."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._held: dict[str, list[pa.Table]] = {}

    def add(self, name: str, rows: pa.Table, columns: Sequence[str]) -> Iterator[Item]:
        """Add rows, which go to the buckets of these columns."""
        self._held.setdefault(name, []).append(rows)
        if sum(table.nbytes for table in self._held[name]) > HELD_BYTES:
            yield from self._pass_on(name, columns)

    def end(self, columns: Sequence[str]) -> Iterator[Item]:
        """Pass on all that is left."""
        for name in [*self._held]:
            yield from self._pass_on(name, columns)

    def _pass_on(self, name: str, columns: Sequence[str]) -> Iterator[Item]:
        rows = pa.concat_tables(self._held.pop(name))
        for bucket, part in split(rows, columns, self._buckets):
            yield bucket, (name, pack(part))
