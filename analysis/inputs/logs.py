"""The nodes' logs as a table, parsed in large blocks."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from analysis.captures.clock import Clock

LOG = pa.schema(
    [
        ("t", pa.int64()),
        ("node", pa.string()),
        ("event", pa.string()),
        ("id", pa.string()),
        ("topic", pa.string()),
        ("priority", pa.int32()),
        ("size", pa.int64()),
        ("late_ns", pa.int64()),
        ("peer", pa.string()),
        ("reason", pa.string()),
        ("messages", pa.int64()),
        ("place", pa.list_(pa.int64())),
    ]
)
BLOCK_BYTES = 1 << 23  # parsed at once


@dataclass(frozen=True, slots=True)
class LogRange:
    """The lines of a file that begin between these offsets."""

    path: Path
    begin: int
    end: int

    @property
    def node(self) -> str:
        """The node that wrote the log."""
        return self.path.stem


def distribute(files: Sequence[Path], tasks: int) -> list[list[LogRange]]:
    """Distribute the bytes evenly over tasks; a file's lines may go to several."""
    sizes = [(path, path.stat().st_size) for path in files]
    each = max(1, -(-sum(size for _, size in sizes) // tasks))
    shares: list[list[LogRange]] = [[] for _ in range(tasks)]
    before = 0
    for path, size in sizes:
        begin = 0
        while begin < size:
            task = (before + begin) // each
            end = min(size, (task + 1) * each - before)
            shares[task].append(LogRange(path, begin, end))
            begin = end
        before += size
    return shares


def read_range(log_range: LogRange) -> Iterator[pa.RecordBatch]:
    """The records of a range as LOG."""
    for block in _blocks(log_range):
        yield from parse_block(block).to_batches()


def timed_by(clock: Clock | None, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert the records' times to those of the lab machine, if this clock stamped them."""
    if clock is None:
        return rows
    times, known = rows["t"], rows["t"].is_valid().to_numpy(zero_copy_only=False)
    lab_times = pa.array(clock.to_lab_ns(times.fill_null(0).to_numpy()), mask=~known)
    return rows.set_column(rows.schema.get_field_index("t"), LOG.field("t"), lab_times)


def _blocks(log_range: LogRange) -> Iterator[bytes]:
    """Blocks of whole lines."""
    with log_range.path.open("rb") as file:
        if log_range.begin:
            file.seek(log_range.begin - 1)
            file.readline()  # skip the rest of a line that began before; empty if a line begins here
        while (left := log_range.end - file.tell()) > 0:
            block = file.read(min(left, BLOCK_BYTES))
            yield block if block.endswith(b"\n") else block + file.readline()


def parse_block(block: bytes) -> pa.Table:
    """Parse whole lines as LOG. Lines that are no records are skipped, such as one cut off when its node was killed."""
    if _looks_sound(block):
        reading = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
        parsing = pj.ParseOptions(explicit_schema=LOG, unexpected_field_behavior="ignore")
        try:
            return pj.read_json(BytesIO(block), reading, parsing)
        except pa.ArrowInvalid:
            pass
    return pa.Table.from_pylist(list(_records(block)), LOG)


def _looks_sound(block: bytes) -> bool:
    """Whether each line is in braces. Arrow crashes on a line `null`, and reads other lines as empty records."""
    lines = block.removesuffix(b"\n")
    return (
        lines.startswith(b"{")
        and lines.endswith(b"}")
        and lines.count(b"\n") == lines.count(b"}\n{")
    )


def _records(block: bytes) -> Iterator[dict[str, Any]]:
    """Parse line by line, and skip damaged lines."""
    for line in block.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield {field.name: _value(record.get(field.name), field.type) for field in LOG}


def _value(value: Any, kind: pa.DataType) -> Any:
    """The value if it has the right type, else None."""
    if pa.types.is_list(kind):
        sound = isinstance(value, list) and all(_is_whole(each, kind.value_type) for each in value)
    elif pa.types.is_string(kind):
        sound = isinstance(value, str)
    else:
        sound = _is_whole(value, kind)
    return value if sound else None


def _is_whole(value: Any, kind: pa.DataType) -> bool:
    """Whether the value is an integer of this width."""
    half = 1 << kind.bit_width - 1
    return type(value) is int and -half <= value < half
