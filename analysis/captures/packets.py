"""A link's pcap file as columns: one numpy array per header field, one element per packet.

Packets other than IPv4 on Ethernet have zeros; `analysis.captures.columns` reads captures of any origin.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.captures.clock import Clock
from analysis.captures.files import Bytes, windows
from analysis.captures.layers import ETHERNET, IPV6_HEADER, decode
from analysis.captures.pcap import FILE_HEADER, FileHead, PcapLayout, read_head
from analysis.captures.records import RecordScanner
from analysis.errors import AnalysisError

Array = npt.NDArray[Any]
WINDOW = 1 << 24  # bytes of a file that are read at a time
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10


@dataclass(frozen=True, slots=True)
class Packets:
    """The packets of one file in capture order. Fields that a packet does not have are zero."""

    data: bytes  # of the file, or a window of it; `payload_at` points into it
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
    payload_seen: Array  # as captured: less if the capture truncated the packet
    lost_bytes: int  # outside of complete records
    base: int = 0  # where in the file `data` begins

    def __len__(self) -> int:
        return len(self.ts_ns)

    def timed_by(self, clock: Clock | None) -> "Packets":
        """The packets with times of the lab machine, if this clock stamped them; None: the lab machine's clock."""
        return self if clock is None else replace(self, ts_ns=clock.to_lab_ns(self.ts_ns))


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
    found = {name: getattr(packets, name) for name in COLUMNS}
    found["payload_at"] = packets.payload_at + packets.base * (packets.is_tcp | packets.is_udp)
    columns = [pa.array(found[name]).cast(kind) for name, kind in COLUMNS.items()]
    names = pa.array([link]).take(pa.array(np.zeros(len(packets), np.int64)))
    return pa.Table.from_arrays([names, *columns], schema=PACKET_SCHEMA)


def check_file(path: Path) -> None:
    """AnalysisError if the file is not a pcap of Ethernet packets. A truncated file is accepted."""
    with path.open("rb") as file:
        _head(file.read(FILE_HEADER), path)


def read(path: Path) -> Packets:
    """All packets of a file; bytes outside of records are skipped and counted."""
    return parse(path.read_bytes(), path)


def read_windows(path: Path, window: int = WINDOW) -> Iterator[Packets]:
    """All packets of a file, one window at a time, so that memory holds one window only."""
    with closing(Bytes(str(path))) as source:
        first = bytearray(FILE_HEADER)
        first = first[: source.fill(memoryview(first))]
        head = _head(bytes(first), path)
        if head is None:
            yield parse(bytes(first), path)
            return
        layout = PcapLayout(head)
        scanner = RecordScanner(layout, FILE_HEADER)
        for data, base, size, final in windows(source, scanner, window, bytes(first)):
            starts, problems = scanner.advance(data, base, size, final)
            lost = sum(problem.size for problem in problems)
            yield _packets(bytes(data[:size]), starts, layout, lost, base)


def parse(data: bytes, name: Path | str = "capture") -> Packets:
    """All packets in the bytes of a pcap file."""
    head = _head(data[:FILE_HEADER], name)
    if head is None:
        return _packets(data, [], PcapLayout(FileHead("<", 1, ETHERNET)), len(data))
    layout = PcapLayout(head)
    starts, problems = RecordScanner(layout, FILE_HEADER).advance(data, 0, len(data), final=True)
    return _packets(data, starts, layout, sum(problem.size for problem in problems))


def _head(head: bytes, name: Path | str) -> FileHead | None:
    """The file header; None if the file is shorter than it."""
    if len(head) < FILE_HEADER:
        return None
    known = read_head(head)
    if known is None:
        raise AnalysisError(
            f"{name} is not a pcap file (it starts with {head[:4].hex()}).",
            "A pcapng file can be converted: editcap -F nsecpcap IN OUT.",
        )
    if known.link_type != ETHERNET:
        raise AnalysisError(
            f"{name} holds packets of link type {known.link_type}, not Ethernet.",
            "Capture on the links of the lab, as `testbed run` does.",
        )
    return known


ADDRESSES = np.dtype(
    {
        "names": ["src", "dst"],
        "formats": [">u4", ">u4"],
        "offsets": [12, 16],
        "itemsize": IPV6_HEADER,
    }
)


def _packets(
    data: bytes, starts: list[int], layout: PcapLayout, lost: int, base: int = 0
) -> Packets:
    raw = np.frombuffer(data, np.uint8)
    records = layout.table(raw, np.array(starts, np.int64))
    found = decode(raw, records)
    is_ip = found.is_v4
    is_tcp, is_udp = found.is_tcp & is_ip, found.is_udp & is_ip
    has_ports = is_tcp | is_udp
    addresses = found.network.view(ADDRESSES)
    eth_src = np.zeros((len(starts), 8), np.uint8)
    eth_src[:, 2:] = found.eth_src
    return Packets(
        data=data,
        ts_ns=records.ts_ns,
        caplen=records.caplen,
        wirelen=records.wirelen,
        eth_src=eth_src.view(">u8")[:, 0].astype(np.int64),
        eth_type=found.eth_type.astype(np.int64),
        ip_src=addresses["src"].astype(np.int64) * is_ip,
        ip_dst=addresses["dst"].astype(np.int64) * is_ip,
        proto=found.proto.astype(np.int64) * is_ip,
        ip_len=found.ip_len * is_ip,
        ip_header=found.ip_header * is_ip,
        is_tcp=is_tcp,
        is_udp=is_udp,
        src_port=found.src_port.astype(np.int64) * has_ports,
        dst_port=found.dst_port.astype(np.int64) * has_ports,
        seq=found.seq.astype(np.int64) * is_tcp,
        ack=found.ack.astype(np.int64) * is_tcp,
        flags=found.flags.astype(np.int64) * is_tcp,
        tcp_header=found.transport_header * is_tcp,
        payload_at=found.payload_at * has_ports,
        payload_len=found.payload_len * has_ports,
        payload_seen=found.payload_seen * has_ports,
        lost_bytes=lost,
        base=base,
    )
