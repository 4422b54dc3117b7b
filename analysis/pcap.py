"""A pcap file as columns: one numpy array per header field, one element per packet.

Finding where each record starts is sequential by nature (each length leads to the next record), and is the only loop;
all else is done on whole columns at once.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.errors import AnalysisError

Array = npt.NDArray[Any]

ETHERNET = 1
IPV4 = 0x0800
TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
MAX_CAPTURED = 262_144  # libpcap's own limit; a record that claims more is not a record

# First four bytes of a file -> byte order, nanoseconds per unit of the second timestamp field.
MAGICS = {
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b23c4d"): (">", 1),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
}
FILE_HEADER = 24
RECORD_HEADER = 16
ETHERNET_HEADER = 14
IP_HEADER = 20
TCP_HEADER = 20
UDP_HEADER = 8


@dataclass(frozen=True, slots=True)
class Packets:
    """The packets of one file in capture order. Fields that a packet does not have are zero."""

    data: bytes  # the whole file; `payload_at` points into it
    ts_ns: Array
    caplen: Array
    wirelen: Array
    eth_src: Array
    eth_type: Array
    ip_src: Array
    ip_dst: Array
    proto: Array
    ip_len: Array
    ip_header: Array
    is_tcp: Array
    is_udp: Array
    src_port: Array
    dst_port: Array
    seq: Array
    ack: Array
    flags: Array
    tcp_header: Array
    payload_at: Array
    payload_len: Array  # as sent
    payload_seen: Array  # as kept: less if the capture cut the packet
    lost_tail: int  # bytes at the end of the file that are no whole record

    def __len__(self) -> int:
        return len(self.ts_ns)


COLUMNS: dict[str, pa.DataType] = {
    "ts_ns": pa.int64(),
    "caplen": pa.int32(),
    "wirelen": pa.int32(),
    "eth_type": pa.int32(),
    "ip_src": pa.int64(),
    "ip_dst": pa.int64(),
    "proto": pa.int16(),
    "ip_len": pa.int32(),
    "is_tcp": pa.bool_(),
    "src_port": pa.int32(),
    "dst_port": pa.int32(),
    "seq": pa.int64(),
    "ack": pa.int64(),
    "flags": pa.int16(),
    "payload_at": pa.int64(),
    "payload_len": pa.int32(),
}
PACKET_SCHEMA = pa.schema([("link", pa.string()), *COLUMNS.items()])


def as_table(packets: Packets, link: str) -> pa.Table:
    """The packets of a link as an Arrow table."""
    columns = [pa.array(getattr(packets, name)).cast(kind) for name, kind in COLUMNS.items()]
    names = pa.array([link]).take(pa.array(np.zeros(len(packets), np.int64)))
    return pa.Table.from_arrays([names, *columns], schema=PACKET_SCHEMA)


def check_file(path: Path) -> None:
    """AnalysisError if the file is something else than a pcap of Ethernet packets. A cut file is none of these."""
    with path.open("rb") as file:
        _head(file.read(FILE_HEADER), path)


def read(path: Path) -> Packets:
    """All packets of a file; a record that was cut off at the end is left out and its bytes are counted."""
    return parse(path.read_bytes(), path)


def parse(data: bytes, name: Path | str = "capture") -> Packets:
    """All packets in the bytes of a pcap file."""
    head = _head(data[:FILE_HEADER], name)
    if head is None:
        return _packets(data, np.zeros(0, np.int64), "<", 1, len(data))
    order, unit_ns = head
    starts, end = _record_starts(data, order)
    return _packets(data, starts, order, unit_ns, len(data) - end)


def _head(head: bytes, name: Path | str) -> tuple[str, int] | None:
    """Byte order and time unit of a file; None if it is too short to tell."""
    if len(head) < FILE_HEADER:
        return None
    known = MAGICS.get(head[:4])
    if known is None:
        raise AnalysisError(
            f"{name} is not a pcap file (it starts with {head[:4].hex()}).",
            "A pcapng file can be converted: editcap -F nsecpcap IN OUT.",
        )
    (kind,) = struct.unpack(known[0] + "I", head[20:24])
    if kind & 0xFFFF != ETHERNET:
        raise AnalysisError(
            f"{name} holds packets of link type {kind}, not Ethernet.",
            "Capture on the links of the lab, as `testbed run` does.",
        )
    return known


def _record_starts(data: bytes, order: str) -> tuple[Array, int]:
    """Offset of each whole record's header, and the offset after the last one."""
    length_at = struct.Struct(order + "8xI").unpack_from
    starts: list[int] = []
    note = starts.append
    at, last = FILE_HEADER, len(data) - RECORD_HEADER
    while at <= last:
        (length,) = length_at(data, at)
        after = at + RECORD_HEADER + length
        if length > MAX_CAPTURED or after > len(data):
            break
        note(at)
        at = after
    return np.array(starts, np.int64), at


def _rows(data: bytes, starts: Array, layout: np.dtype[Any]) -> Array:
    """The bytes at each start, read as one structure each. Rows that reach beyond the file are zero there."""
    width = layout.itemsize
    raw = np.frombuffer(data, np.uint8)
    inside = starts + width <= len(raw)
    out = np.zeros((len(starts), width), np.uint8)
    if inside.all() and len(starts):
        out = np.lib.stride_tricks.sliding_window_view(raw, width)[starts]
    elif len(starts):
        if inside.any():
            out[inside] = np.lib.stride_tricks.sliding_window_view(raw, width)[starts[inside]]
        for row in np.flatnonzero(~inside):
            rest = raw[starts[row] :]
            out[row, : len(rest)] = rest
    return np.ascontiguousarray(out).view(layout)[:, 0]


def _record_layout(order: str) -> np.dtype[Any]:
    return np.dtype(
        [
            ("seconds", order + "u4"),
            ("fraction", order + "u4"),
            ("caplen", order + "u4"),
            ("wirelen", order + "u4"),
            ("eth_dst", "u1", 6),
            ("eth_src_high", ">u2"),
            ("eth_src_low", ">u4"),
            ("eth_type", ">u2"),
            ("version_ihl", "u1"),
            ("tos", "u1"),
            ("ip_len", ">u2"),
            ("ip_id", ">u2"),
            ("fragment", ">u2"),
            ("ttl", "u1"),
            ("proto", "u1"),
            ("checksum", ">u2"),
            ("ip_src", ">u4"),
            ("ip_dst", ">u4"),
        ]
    )


TCP_LAYOUT = np.dtype(
    [
        ("src_port", ">u2"),
        ("dst_port", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset", "u1"),
        ("flags", "u1"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
    ]
)


def _packets(data: bytes, starts: Array, order: str, unit_ns: int, lost_tail: int) -> Packets:
    rows = _rows(data, starts, _record_layout(order))
    caplen = rows["caplen"].astype(np.int64)
    eth_type = rows["eth_type"] * (caplen >= ETHERNET_HEADER)
    ip_header = (rows["version_ihl"] & 0x0F).astype(np.int64) * 4
    is_ip = (
        (eth_type == IPV4)
        & (rows["version_ihl"] >> 4 == 4)
        & (ip_header >= IP_HEADER)
        & (caplen >= ETHERNET_HEADER + ip_header)
    )
    ip_header = ip_header * is_ip
    ip_len = rows["ip_len"].astype(np.int64) * is_ip
    tcp_at = starts + RECORD_HEADER + ETHERNET_HEADER + ip_header
    captured_tcp = caplen - ETHERNET_HEADER - ip_header
    # neither a later part of a packet nor one that is continued
    whole = is_ip & (rows["fragment"] & 0x3FFF == 0)
    is_tcp = whole & (rows["proto"] == TCP) & (captured_tcp >= TCP_HEADER)
    is_udp = whole & (rows["proto"] == UDP) & (captured_tcp >= UDP_HEADER)
    is_udp &= ip_len >= ip_header + UDP_HEADER
    tcp = _rows(data, np.where(is_tcp | is_udp, tcp_at, 0), TCP_LAYOUT)
    tcp_header = (tcp["offset"] >> 4).astype(np.int64) * 4
    is_tcp &= (
        (tcp_header >= TCP_HEADER)
        & (captured_tcp >= tcp_header)
        & (ip_len >= ip_header + tcp_header)
    )
    tcp_header = tcp_header * is_tcp
    has_ports = is_tcp | is_udp  # which stand at the same place in both
    header = np.where(is_udp, UDP_HEADER, tcp_header)
    payload_len = np.where(has_ports, ip_len - ip_header - header, 0)
    return Packets(
        data=data,
        ts_ns=rows["seconds"].astype(np.int64) * 1_000_000_000
        + rows["fraction"].astype(np.int64) * unit_ns,
        caplen=caplen,
        wirelen=rows["wirelen"].astype(np.int64),
        eth_src=rows["eth_src_high"].astype(np.int64) << 32 | rows["eth_src_low"],
        eth_type=eth_type.astype(np.int64),
        ip_src=rows["ip_src"].astype(np.int64) * is_ip,
        ip_dst=rows["ip_dst"].astype(np.int64) * is_ip,
        proto=rows["proto"].astype(np.int64) * is_ip,
        ip_len=ip_len,
        ip_header=ip_header,
        is_tcp=is_tcp,
        is_udp=is_udp,
        src_port=tcp["src_port"].astype(np.int64) * has_ports,
        dst_port=tcp["dst_port"].astype(np.int64) * has_ports,
        seq=tcp["seq"].astype(np.int64) * is_tcp,
        ack=tcp["ack"].astype(np.int64) * is_tcp,
        flags=tcp["flags"].astype(np.int64) * is_tcp,
        tcp_header=tcp_header,
        payload_at=(tcp_at + header) * has_ports,
        payload_len=payload_len,
        payload_seen=np.minimum(payload_len, np.maximum(captured_tcp - header, 0)),
        lost_tail=lost_tail,
    )
