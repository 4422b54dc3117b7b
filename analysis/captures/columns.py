"""Packets and problems as Arrow batches, with the requested columns only."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.captures.layers import Headers, Kind
from analysis.captures.records import Array, Problem, Records

PROBLEM = "problem"  # kind of a row for bytes that could not be read
SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("offset", pa.int64()),  # of the record; in compressed files, in the decompressed data
        ("record_bytes", pa.int64()),  # of the record, with its header
        ("ts_ns", pa.int64()),
        ("interface", pa.int32()),
        ("interface_name", pa.string()),
        ("link_type", pa.int32()),
        ("caplen", pa.int32()),
        ("wirelen", pa.int64()),
        ("kind", pa.string()),
        ("eth_src", pa.string()),
        ("eth_dst", pa.string()),
        ("eth_type", pa.int32()),
        ("vlan", pa.int32()),
        ("inner_vlan", pa.int32()),
        ("ip_version", pa.int32()),
        ("ip_src", pa.string()),
        ("ip_dst", pa.string()),
        ("ip_len", pa.int32()),
        ("ttl", pa.int32()),
        ("proto", pa.int32()),
        ("src_port", pa.int32()),
        ("dst_port", pa.int32()),
        ("seq", pa.int64()),
        ("ack", pa.int64()),
        ("flags", pa.int32()),
        ("window", pa.int32()),
        ("payload_at", pa.int64()),
        ("payload_len", pa.int32()),
        ("comment", pa.string()),
        ("problem", pa.string()),
    ]
)
PROBLEMS = pa.schema(
    [("path", pa.string()), ("offset", pa.int64()), ("bytes", pa.int64()), ("reason", pa.string())]
)


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets that were read together, and everything from which a column can be made."""

    path: str
    base: int  # where in the file the window begins
    records: Records
    headers: Headers
    comments: Sequence[tuple[int, str]]

    def __len__(self) -> int:
        return len(self.records.record_at)


def packet_batch(packets: Packets, schema: pa.Schema) -> pa.RecordBatch:
    """The requested columns of the packets."""
    columns = [_COLUMNS[field.name](packets) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def problem_batch(path: str, problems: Sequence[Problem], schema: pa.Schema) -> pa.RecordBatch:
    """Rows for bytes that could not be read, with the columns of packets."""
    known: dict[str, list[Any]] = {
        "path": [path] * len(problems),
        "offset": [one.offset for one in problems],
        "record_bytes": [one.size for one in problems],
        "kind": [PROBLEM] * len(problems),
        "problem": [one.reason for one in problems],
    }
    empty = [None] * len(problems)
    columns = [pa.array(known.get(field.name, empty), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def problem_table(path: str, problems: Sequence[Problem]) -> pa.RecordBatch:
    """The problems as a table of their own."""
    rows = [(path, *one) for one in problems]
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), PROBLEMS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PROBLEMS)


def _numbers(values: Array, kind: pa.DataType, there: Array | None = None) -> pa.Array:
    plain = values.astype(kind.to_pandas_dtype())
    return pa.array(plain, kind, mask=None if there is None or there.all() else ~there)


def _repeated(text: str | None, count: int) -> pa.Array:
    return pa.array([text], pa.string()).take(pa.array(np.zeros(count, np.int32)))


def _texts(raw: Array, there: Array, text: Callable[[bytes], str]) -> pa.Array:
    """Rows of bytes as text; each distinct value is converted once."""
    width = raw.shape[1]
    buffer = pa.py_buffer(np.ascontiguousarray(raw))
    plain = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(raw), [None, buffer])
    coded = plain.dictionary_encode()
    texts = pa.array([text(value.as_py()) for value in coded.dictionary], pa.string())
    places = coded.indices
    if not there.all():
        places = pa.array(places.to_numpy(), mask=~there)
    return texts.take(places)


def _mac(packets: Packets, name: str) -> pa.Array:
    headers = packets.headers
    return _texts(getattr(headers, name), headers.is_ethernet, lambda value: value.hex(":"))


def _address(packets: Packets, place_4: int, place_6: int) -> pa.Array:
    """IPv4 and IPv6 addresses in their usual notation."""
    headers = packets.headers
    raw = headers.network.view(np.uint8).reshape(len(packets), headers.network.itemsize)
    four = raw[:, place_4 : place_4 + 4]
    if not headers.is_v6.any():
        return _texts(four, headers.is_v4, socket.inet_ntoa)
    out = _texts(raw[:, place_6 : place_6 + 16], headers.is_v6, _version_6)
    return pc.coalesce(_texts(four, headers.is_v4, socket.inet_ntoa), out)


def _version_6(value: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6, value)


_KINDS = pa.array([kind.name.lower() for kind in Kind], pa.string())


def _kind(packets: Packets) -> pa.Array:
    return _KINDS.take(pa.array(packets.headers.kind))


def _names(packets: Packets) -> pa.Array:
    return pa.array(packets.records.names, pa.string()).take(pa.array(packets.records.interface))


def _comments(packets: Packets) -> pa.Array:
    if not packets.comments:
        return pa.nulls(len(packets), pa.string())
    texts: list[str | None] = [None] * len(packets)
    for row, text in packets.comments:
        texts[row] = text
    return pa.array(texts, pa.string())


def _of(name: str, there: str | None = None) -> Callable[[Packets], pa.Array]:
    """The column of a header field; `there` names the flag of the rows that have it."""
    kind = SCHEMA.field(name).type

    def column(packets: Packets) -> pa.Array:
        headers = packets.headers
        which = None if there is None else getattr(headers, there)
        return _numbers(getattr(headers, name), kind, which)

    return column


def _where(name: str, which: Callable[[Headers], Array]) -> Callable[[Packets], pa.Array]:
    kind = SCHEMA.field(name).type
    return lambda packets: _numbers(getattr(packets.headers, name), kind, which(packets.headers))


def _record(name: str) -> Callable[[Packets], pa.Array]:
    kind = SCHEMA.field(name).type
    return lambda packets: _numbers(getattr(packets.records, name), kind)


def _is_ip(headers: Headers) -> Array:
    either: Array = headers.is_v4 | headers.is_v6
    return either


def _has_ports(headers: Headers) -> Array:
    either: Array = headers.is_tcp | headers.is_udp
    return either


_COLUMNS: dict[str, Callable[[Packets], pa.Array]] = {
    "path": lambda packets: _repeated(packets.path, len(packets)),
    "offset": lambda packets: pa.array(packets.records.record_at + packets.base),
    "record_bytes": _record("record_bytes"),
    "ts_ns": lambda packets: _numbers(packets.records.ts_ns, pa.int64(), packets.records.timed),
    "interface": _record("interface"),
    "interface_name": _names,
    "link_type": _record("link_type"),
    "caplen": _record("caplen"),
    "wirelen": _record("wirelen"),
    "kind": _kind,
    "eth_src": lambda packets: _mac(packets, "eth_src"),
    "eth_dst": lambda packets: _mac(packets, "eth_dst"),
    "eth_type": _of("eth_type", "has_type"),
    "vlan": _where("vlan", lambda headers: headers.tags > 0),
    "inner_vlan": _where("inner_vlan", lambda headers: headers.tags > 1),
    "ip_version": lambda packets: _numbers(
        4 + 2 * packets.headers.is_v6, pa.int32(), _is_ip(packets.headers)
    ),
    "ip_src": lambda packets: _address(packets, 12, 8),
    "ip_dst": lambda packets: _address(packets, 16, 24),
    "ip_len": _where("ip_len", _is_ip),
    "ttl": _where("ttl", _is_ip),
    "proto": _where("proto", _is_ip),
    "src_port": _where("src_port", _has_ports),
    "dst_port": _where("dst_port", _has_ports),
    "seq": _of("seq", "is_tcp"),
    "ack": _of("ack", "is_tcp"),
    "flags": _of("flags", "is_tcp"),
    "window": _of("window", "is_tcp"),
    "payload_at": lambda packets: _numbers(
        packets.headers.payload_at + packets.base, pa.int64(), _has_ports(packets.headers)
    ),
    "payload_len": _where("payload_len", _has_ports),
    "comment": _comments,
    "problem": lambda packets: pa.nulls(len(packets), pa.string()),
}
