"""Other readers of the twelve fields of a capture: tshark, scapy, and our parser without Spark."""

import multiprocessing
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from analysis.captures.columns import SCHEMA
from analysis.captures.parquet import write_packets
from analysis.captures.pieces import TASKS_PER_CORE, Piece, group_pieces, piece_size, split_files
from analysis.captures.windows import read_piece
from testbed.errors import MissingCapability

# Our column, and tshark's name for it.
FIELDS = {
    "ts_ns": "frame.time_epoch",
    "wirelen": "frame.len",
    "eth_type": "eth.type",
    "ip_src": "ip.src",
    "ip_dst": "ip.dst",
    "proto": "ip.proto",
    "src_port": "tcp.srcport",
    "dst_port": "tcp.dstport",
    "seq": "tcp.seq_raw",
    "ack": "tcp.ack_raw",
    "flags": "tcp.flags",
    "payload_len": "tcp.len",
}


def tshark_s(capture: Path, output: Path) -> float:
    """Seconds that `tshark -T fields` takes, with its default settings."""
    if shutil.which("tshark") is None:
        raise MissingCapability("tshark is missing", "`apt-get install tshark` has the peer")
    asked = ["tshark", "-r", str(capture), "-T", "fields"]
    for name in FIELDS.values():
        asked += ["-e", name]
    began = time.monotonic()
    with output.open("wb") as file:
        subprocess.run(asked, stdout=file, stderr=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def tshark_rows(output: Path, count: int) -> list[tuple[object, ...]]:
    """The first rows of tshark's output, in our format."""
    rows: list[tuple[object, ...]] = []
    with output.open() as file:
        for line, _ in zip(file, range(count), strict=False):
            row: dict[str, object] = dict(zip(FIELDS, line.rstrip("\n").split("\t"), strict=True))
            for name, value in row.items():
                if name == "ts_ns":
                    row[name] = int(str(value).replace(".", ""))
                elif name not in ("ip_src", "ip_dst"):
                    row[name] = int(str(value), 0)
            rows.append(tuple(row.values()))
    return rows


def scapy_s(capture: Path, packets: int) -> float:
    """Seconds that scapy's PcapReader takes for the same fields of so many packets."""
    from scapy.layers.inet import IP, TCP
    from scapy.layers.l2 import Ether
    from scapy.utils import PcapReader

    began = time.monotonic()
    with PcapReader(str(capture)) as reader:
        for packet, _ in zip(reader, range(packets), strict=False):
            network, segment = packet[IP], packet[TCP]
            _ = (packet.time, packet.wirelen, packet[Ether].type)
            _ = (network.src, network.dst, network.proto, segment.sport, segment.dport)
            _ = (segment.seq, segment.ack, segment.flags, len(segment.payload))
    return time.monotonic() - began


class Bare:
    """Our parser in one process a core, without Spark; the time does not include the start of the processes."""

    def __init__(self, capture: Path) -> None:
        self._cores = os.cpu_count() or 1
        size = piece_size(capture.stat().st_size, TASKS_PER_CORE * self._cores)
        self._shares = group_pieces(split_files([str(capture)], size), size)

    def seconds(self, folder: Path | None) -> float:
        """Seconds to Arrow, and on to Parquet if there is a folder for it."""
        with multiprocessing.get_context("spawn").Pool(self._cores) as pool:
            pool.map(_load, range(self._cores))
            began = time.monotonic()
            places = [
                folder and folder / f"{number}.parquet" for number in range(len(self._shares))
            ]
            pool.starmap(_parse, zip(self._shares, places, strict=True), chunksize=1)
            return time.monotonic() - began


def _load(_: int) -> None:
    """Keep a process busy for a moment, so that every process of the pool starts and imports its modules."""
    time.sleep(0.2)


def _parse(pieces: Sequence[Piece], target: Path | None) -> None:
    if target is not None:
        write_packets(pieces, target, tuple(FIELDS))
        return
    schema = pa.schema([SCHEMA.field(name) for name in FIELDS])
    for piece in pieces:
        for part in read_piece(piece):
            for _ in part.batches(schema):
                pass
