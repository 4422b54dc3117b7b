"""Capture files of every kind, written byte by byte: pcap and pcapng, as other tools write them."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.captures.columns import SCHEMA
from analysis.captures.pieces import Piece
from analysis.captures.windows import read_piece

START_NS = 1_700_000_000_123_456_789
ETHERNET = 1


@dataclass(frozen=True)
class Captured:
    """A packet as a capture file contains it."""

    data: bytes
    ts_ns: int = START_NS
    wirelen: int | None = None
    interface: int = 0
    comment: str | None = None

    @property
    def length(self) -> int:
        return len(self.data) if self.wirelen is None else self.wirelen


def records(packets: Iterable[Captured], order: str = "<", nano: bool = True) -> bytes:
    """The records of a pcap file, without the file header."""
    out = []
    for one in packets:
        seconds, rest = divmod(one.ts_ns, 10**9)
        fraction = rest if nano else rest // 1000
        head = struct.pack(order + "IIII", seconds, fraction, len(one.data), one.length)
        out.append(head + one.data)
    return b"".join(out)


def pcap(
    packets: Iterable[Captured], order: str = "<", nano: bool = True, link_type: int = ETHERNET
) -> bytes:
    """A pcap file."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    head = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 262_144, link_type)
    return head + records(packets, order, nano)


@dataclass(frozen=True)
class Interface:
    """An interface as pcapng describes it; `resolution` as the option has it, None to leave it out."""

    link_type: int = ETHERNET
    resolution: int | None = 9
    offset_s: int = 0
    name: str = ""
    snaplen: int = 0

    def ticks(self, ts_ns: int) -> int:
        ns = ts_ns - self.offset_s * 10**9
        resolution = 6 if self.resolution is None else self.resolution
        if resolution & 0x80:
            return (ns << (resolution & 0x7F)) // 10**9
        return ns * 10**resolution // 10**9


@dataclass
class Pcapng:
    """One section of a pcapng file."""

    order: str = "<"
    interfaces: Sequence[Interface] = (Interface(),)
    blocks: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        header = struct.pack(self.order + "IHHq", 0x1A2B3C4D, 1, 0, -1)
        self.block(0x0A0D0D0A, header + self.options((4, b"a test")))
        for one in self.interfaces:
            self.describe(one)

    def block(self, kind: int, body: bytes) -> None:
        body += bytes(-len(body) % 4)
        length = struct.pack(self.order + "I", len(body) + 12)
        self.blocks.append(struct.pack(self.order + "I", kind) + length + body + length)

    def options(self, *given: tuple[int, bytes]) -> bytes:
        out = b"".join(
            struct.pack(self.order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
            for code, value in given
        )
        return out + bytes(4) if given else b""

    def describe(self, one: Interface) -> None:
        given = []
        if one.name:
            given.append((2, one.name.encode()))
        if one.resolution is not None:
            given.append((9, bytes([one.resolution])))
        if one.offset_s:
            given.append((14, struct.pack(self.order + "q", one.offset_s)))
        head = struct.pack(self.order + "HHI", one.link_type, 0, one.snaplen)
        self.block(1, head + self.options(*given))
        if one not in self.interfaces:
            self.interfaces = (*self.interfaces, one)

    def add(self, packet: Captured, *, old: bool = False) -> None:
        ticks = self.interfaces[packet.interface].ticks(packet.ts_ns)
        numbers = (ticks >> 32, ticks & 0xFFFFFFFF, len(packet.data), packet.length)
        layout = "HHIIII" if old else "IIIII"
        interface = (packet.interface, 0) if old else (packet.interface,)
        head = struct.pack(self.order + layout, *interface, *numbers)
        given = [] if packet.comment is None else [(1, packet.comment.encode())]
        body = packet.data + bytes(-len(packet.data) % 4) + self.options(*given)
        self.block(2 if old else 6, head + body)

    def add_simple(self, packet: Captured) -> None:
        self.block(3, struct.pack(self.order + "I", packet.length) + packet.data)

    def bytes(self) -> bytes:
        return b"".join(self.blocks)


@dataclass(frozen=True)
class Whole:
    """Everything that was read from a file, and how many of its bytes are accounted for."""

    rows: list[dict]
    problems: list[tuple[int, int, str]]
    accounted: int


def read_all(path: Path | str, pieces: Iterable[Piece] | None = None, **how: int) -> Whole:
    """Read the file at once, or these pieces of it one after the other."""
    rows: list[dict] = []
    problems: list[tuple[int, int, str]] = []
    structure = 0
    for piece in pieces if pieces is not None else [Piece(str(path))]:
        for part in read_piece(piece, **how):
            for batch in part.batches(SCHEMA):
                rows += batch.to_pylist()
            problems += [tuple(one) for one in part.problems]
            structure += part.structure
    size = sum(row["record_bytes"] for row in rows) + sum(size for _, size, _ in problems)
    return Whole(rows, problems, size + structure)
