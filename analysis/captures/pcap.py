"""The pcap format: a file header, then records of a 16-byte header and a packet; micro- or nanoseconds."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.captures.records import (
    CUT_OFF,
    MAX_CAPTURED,
    Array,
    Data,
    Problem,
    RecordRun,
    Records,
    rows,
)

FILE_HEADER = 24
RECORD_HEADER = 16
NO_RECORD = bytes(RECORD_HEADER)  # a header of zeros is preallocated space, not a packet
# First four bytes of a file -> byte order, nanoseconds per unit of the second timestamp field.
MAGICS = {
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b23c4d"): (">", 1),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
}


@dataclass(frozen=True, slots=True)
class FileHead:
    """The file header."""

    order: str
    unit_ns: int
    link_type: int


def read_head(head: bytes) -> FileHead | None:
    """The file header of a pcap file; None if it is another format, or truncated."""
    if len(head) < FILE_HEADER or head[:4] not in MAGICS:
        return None
    order, unit_ns = MAGICS[head[:4]]
    (kind,) = struct.unpack(order + "I", head[20:24])
    return FileHead(order, unit_ns, kind & 0xFFFF)


class PcapLayout:
    """The layout of one file's records."""

    def __init__(self, head: FileHead) -> None:
        self.head = head
        self.structure = 0
        self._length_at = struct.Struct(head.order + "8xI").unpack_from
        self._header_at = struct.Struct(head.order + "IIII").unpack_from
        self._fractions = 1_000_000_000 // head.unit_ns

    def move(self, base: int) -> None:
        """Nothing to do: pcap records do not depend on earlier ones."""

    def follow(self, data: Data, at: int, size: int, final: bool) -> RecordRun:
        starts: list[int] = []
        note = starts.append
        length_at, last = self._length_at, size - RECORD_HEADER
        while at <= last:
            (length,) = length_at(data, at)
            after = at + RECORD_HEADER + length
            if length > MAX_CAPTURED or after > size:
                break
            if not length and data[at : at + RECORD_HEADER] == NO_RECORD:
                return RecordRun(starts, at, "zeros where a record should be")
            note(at)
            at = after
        if at <= last and length > MAX_CAPTURED:
            return RecordRun(starts, at, f"no record: it would be {length} bytes long")
        return RecordRun(starts, at, CUT_OFF if final and at < size else None)

    def likely(self, data: Data, begin: int, end: int) -> Iterable[int]:
        raw = np.frombuffer(data, np.uint8)
        end = min(end, len(raw) - RECORD_HEADER)
        # The upper bytes of both lengths: neither exceeds libpcap's limit.
        upper = (11, 10, 15, 14) if self.head.order == "<" else (8, 9, 12, 13)
        small = MAX_CAPTURED >> 16
        found = np.ones(max(0, end - begin), bool)
        for highest, next_to_it in (upper[:2], upper[2:]):
            found &= raw[begin + highest : end + highest] == 0
            found &= raw[begin + next_to_it : end + next_to_it] <= small
        places: list[int] = (np.flatnonzero(found) + begin).tolist()
        return places

    def claim(self, data: Data, at: int, size: int) -> int:
        if at + RECORD_HEADER > size:
            return 0
        seconds, fraction, caplen, wirelen = self._header_at(data, at)
        looks_right = (
            caplen <= min(wirelen, MAX_CAPTURED)
            and 0 < wirelen <= MAX_CAPTURED
            and fraction < self._fractions
            and seconds > 0
        )
        return RECORD_HEADER + caplen if looks_right else 0

    def read(self, raw: Array, starts: Array) -> tuple[list[Records], list[Problem]]:
        return [self.table(raw, starts)], []

    def table(self, raw: Array, starts: Array) -> Records:
        """The fields of the records that begin at these offsets."""
        found = rows(raw, starts, record_layout(self.head.order))
        caplen = found["caplen"].astype(np.int64)
        count = len(starts)
        return Records(
            record_at=starts,
            record_bytes=caplen + RECORD_HEADER,
            packet_at=starts + RECORD_HEADER,
            caplen=caplen,
            wirelen=found["wirelen"].astype(np.int64),
            ts_ns=found["seconds"].astype(np.int64) * 1_000_000_000
            + found["fraction"].astype(np.int64) * self.head.unit_ns,
            timed=np.ones(count, bool),
            interface=np.zeros(count, np.int32),
            link_type=np.full(count, self.head.link_type, np.int32),
        )


def record_layout(order: str) -> np.dtype[Any]:
    """The layout of a record's header."""
    return np.dtype([(name, order + "u4") for name in ("seconds", "fraction", "caplen", "wirelen")])
