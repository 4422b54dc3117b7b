"""Tables of metrics: their schemas as text, and groups of rows. Pure."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<string>": pa.list_(pa.string()),
    "array<long>": pa.list_(pa.int64()),
}

# What columns of these names say in every table. A table's own descriptions have precedence.
USUAL_COLUMNS = {
    "id": "message, as 16 hex digits",
    "link": "node whose link this is",
    "direction": "`up`: from the node; `down`: to it",
    "src": "sender",
    "dst": "receiver",
    "origin": "publisher",
    "topic": "topic",
    "priority": "level, 1 to 5",
    "payload_bytes": "size of the payload",
    "published_ns": "time of the publication",
    "first_ns": "time of the first byte",
    "last_ns": "time of the last byte",
    "queue_s": "part of the time: queues",
    "transmission_s": "part of the time: bytes on otherwise idle links",
    "propagation_s": "part of the time: delays that the links are set to",
    "retransmission_s": "part of the time: packets that were lost and sent again",
    "delay_s": "from publication to arrival",
}


def schema(text: str) -> pa.Schema:
    """The schema of a table from `name type, name type, ...`, with Spark's names of types."""
    columns = (column.split() for column in text.split(","))
    return pa.schema([(name, TYPES[kind]) for name, kind in columns])


def conform(rows: pa.Table, to: pa.Schema) -> pa.Table:
    """The columns of this schema, in its order and types."""
    return rows.select(to.names).cast(to)


def grouped(rows: pa.Table, keys: Sequence[str], /, **columns: tuple[str, str]) -> pa.Table:
    """A row for each group; `columns`: name -> column and aggregate function. Rows keep their order in a group."""
    wanted = [(column, function) for column, function in columns.values()]
    found = rows.group_by(list(keys), use_threads=False).aggregate(wanted)
    return found.rename_columns([*keys, *columns])


def summed(rows: pa.Table, keys: Sequence[str], names: Iterable[str]) -> pa.Table:
    """The sums of these columns in each group."""
    return grouped(rows, keys, **{name: (name, "sum") for name in names})


def where(condition: pa.ChunkedArray, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, null where the condition does not hold: aggregates skip nulls."""
    return pc.if_else(condition, column, pa.scalar(None, column.type))


def count(condition: pa.ChunkedArray) -> pa.ChunkedArray:
    """1 where the condition holds, else 0."""
    return pc.fill_null(condition, False).cast(pa.int64())


def own_links(messages: pa.Table) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Which rows are on the sender's link, on the way up; and which are on the receiver's link, on the way down."""
    up = pc.and_(pc.equal(messages["direction"], "up"), pc.equal(messages["link"], messages["src"]))
    down = pc.and_(
        pc.equal(messages["direction"], "down"), pc.equal(messages["link"], messages["dst"])
    )
    return up, down


def message_bytes(messages: pa.Table) -> pa.ChunkedArray:
    """The bytes of each message in its stream: payload, header, frames and labels."""
    size = messages["payload_bytes"]
    for part in ("websocket_bytes", "label_bytes", "header_bytes"):
        size = pc.add(size, messages[part])
    return size
