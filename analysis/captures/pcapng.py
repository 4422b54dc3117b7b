"""The pcapng format: sections of blocks; a block has its length at both ends, and names the interface of its packet."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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

# Interfaces: link type, timestamp resolution, name.


END, COMMENT, NAME, RESOLUTION, OFFSET = 0, 1, 2, 9, 14  # options
BINARY = 0x80  # flag of a resolution that is a power of 2 instead of 10
NANO = 9  # digits
LATEST_S = 9_000_000_000  # nanoseconds since 1970 fit in 64 bits until then
EXACT_BITS = 33  # a fraction of so many bits times 10^9 fits in 64


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface on which packets were captured."""

    link_type: int
    snaplen: int = 0  # 0: no limit
    name: str | None = None
    resolution: int = 6  # as in the option if_tsresol
    offset_s: int = 0

    def nanoseconds(self, ticks: Array) -> tuple[Array, Array]:
        """Timestamps in nanoseconds, and which of them can be represented."""
        digits = self.resolution & ~BINARY
        if self.resolution & BINARY:
            seconds, rest = _binary(ticks, digits)
        elif digits <= NANO:
            unit = np.uint64(10**digits)
            seconds, rest = ticks // unit, ticks % unit * np.uint64(10 ** (NANO - digits))
        else:
            ticks = ticks // np.uint64(10 ** min(digits - NANO, 19))
            seconds, rest = ticks // np.uint64(10**NANO), ticks % np.uint64(10**NANO)
        known = seconds < LATEST_S
        whole = np.where(known, seconds, 0).astype(np.int64) + self.offset_s
        known &= np.abs(whole) < LATEST_S
        return np.where(known, whole, 0) * 10**NANO + rest.astype(np.int64), known


def _binary(ticks: Array, bits: int) -> tuple[Array, Array]:
    """Seconds and nanoseconds of timestamps in units of 2^-bits."""
    if bits >= 64:  # never a whole second
        return np.zeros_like(ticks), np.zeros_like(ticks)
    seconds = ticks >> np.uint64(bits)
    rest = ticks & np.uint64((1 << bits) - 1)
    dropped = max(0, bits - EXACT_BITS)
    rest = rest >> np.uint64(dropped)
    return seconds, rest * np.uint64(10**NANO) >> np.uint64(bits - dropped)


def options(data: bytes | bytearray, at: int, end: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Code and value of each option; options that do not fit are skipped."""
    head = struct.Struct(order + "HH").unpack_from
    while at + 4 <= end:
        code, length = head(data, at)
        at += 4
        if code == END or at + length > end:
            return
        yield code, bytes(data[at : at + length])
        at += (length + 3) & ~3


def describe(block: bytes, order: str) -> Interface:
    """Parse an interface description block."""
    link_type, snaplen = struct.unpack_from(order + "HxxI", block, 8)
    name, resolution, offset_s = None, 6, 0
    for code, value in options(block, 16, len(block) - 4, order):
        if code == NAME:
            name = value.rstrip(b"\0").decode(errors="replace")
        elif code == RESOLUTION and len(value) == 1:
            resolution = value[0]
        elif code == OFFSET and len(value) == 8:
            (offset_s,) = struct.unpack(order + "q", value)
    offset_s = max(-LATEST_S, min(LATEST_S, offset_s))
    return Interface(link_type, snaplen, name, resolution, offset_s)


SECTION, INTERFACE, OLD_PACKET, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
NAMES, STATISTICS, SECRETS, CUSTOM, PRIVATE = 4, 5, 10, 0x00000BAD, 0x40000BAD
SECTION_MAGIC = b"\x0a\x0d\x0d\x0a"
ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
PACKETS = frozenset((OLD_PACKET, SIMPLE, ENHANCED))
KNOWN = PACKETS | {SECTION, INTERFACE, NAMES, STATISTICS, SECRETS, CUSTOM, PRIVATE}
SMALLEST = {SECTION: 28, INTERFACE: 20, OLD_PACKET: 32, SIMPLE: 16, ENHANCED: 32}
SMALLEST_BLOCK, LARGEST_BLOCK = 12, 1 << 24
LIKELY_LARGEST = MAX_CAPTURED + (1 << 16)
PACKET_AT = {OLD_PACKET: 28, SIMPLE: 12, ENHANCED: 28}


@dataclass(slots=True)
class Section:
    """From one section header to the next: a byte order, and interfaces numbered from 0."""

    begin: int  # in the file
    order: str
    interfaces: list[Interface] = field(default_factory=list)


class PcapngLayout:
    """The blocks of one file. It remembers the sections and interfaces that it has read."""

    def __init__(self, section: Section) -> None:
        self.sections = [section]
        self.structure = 0
        self._base = 0

    def move(self, base: int) -> None:
        """The next data begins at this offset of the file."""
        self._base = base
        while len(self.sections) > 1 and self.sections[1].begin <= base:
            del self.sections[0]

    def follow(self, data: Data, at: int, size: int, final: bool) -> RecordRun:
        starts: list[int] = []
        head, tail = _length_readers(self.sections[-1].order)
        while at + SMALLEST_BLOCK <= size:
            kind, length = head(data, at)
            if kind == SECTION:
                order = ORDERS.get(bytes(data[at + 8 : at + 12]))
                if order is None:
                    return RecordRun(starts, at, "a section without a byte order")
                head, tail = _length_readers(order)
                kind, length = head(data, at)
            if reason := _invalid_length(kind, length):
                return RecordRun(starts, at, reason)
            after = at + length
            if after > size:
                break
            (again,) = tail(data, after - 4)
            if again != length:
                reason = f"no block: its two lengths differ ({length} and {again})"
                return RecordRun(starts, at, reason)
            if kind in PACKETS:
                starts.append(at)
            else:
                self._describe(kind, bytes(data[at:after]), at)
            at = after
        return RecordRun(starts, at, CUT_OFF if final and at < size else None)

    def _describe(self, kind: int, block: bytes, at: int) -> None:
        """Process a block that is not a packet."""
        self.structure += len(block)
        if kind == SECTION:
            self.sections.append(Section(self._base + at, ORDERS[block[8:12]]))
        elif kind == INTERFACE:
            section = self.sections[-1]
            section.interfaces.append(describe(block, section.order))

    def likely(self, data: Data, begin: int, end: int) -> Iterable[int]:
        raw = np.frombuffer(data, np.uint8)
        end = min(end, len(raw) - SMALLEST_BLOCK)
        lowest, others = (0, (1, 2, 3)) if self.sections[-1].order == "<" else (3, (0, 1, 2))
        found = raw[begin + lowest : end + lowest] <= SECRETS
        for place in others:
            found &= raw[begin + place : end + place] == 0
        section = np.ones(max(0, end - begin), bool)
        for place, byte in enumerate(SECTION_MAGIC):
            section &= raw[begin + place : end + place] == byte
        places: list[int] = (np.flatnonzero(found | section) + begin).tolist()
        return places

    def claim(self, data: Data, at: int, size: int) -> int:
        if at + SMALLEST_BLOCK > size:
            return 0
        order: str | None = self.sections[-1].order
        kind, length = struct.unpack_from(f"{order}II", data, at)
        if kind == SECTION:
            order = ORDERS.get(bytes(data[at + 8 : at + 12]))
            if order is None:
                return 0
            (length,) = struct.unpack_from(order + "I", data, at + 4)
        if kind not in KNOWN or length > LIKELY_LARGEST or _invalid_length(kind, length):
            return 0
        if at + length <= size:
            (again,) = struct.unpack_from(f"{order}I", data, at + length - 4)
            if again != length:
                return 0
        return int(length)

    def read(self, raw: Array, starts: Array) -> tuple[list[Records], list[Problem]]:
        begins = [section.begin for section in self.sections]
        which = np.searchsorted(begins, starts + self._base, "right") - 1
        found, problems = [], []
        for number in np.unique(which).tolist():
            records, refused = _records(raw, starts[which == number], self.sections[max(0, number)])
            found.append(records)
            problems += [one._replace(offset=one.offset + self._base) for one in refused]
        return found, problems


def _length_readers(order: str) -> tuple[Any, Any]:
    """Functions that read a block's kind and length, and the length at its end."""
    return struct.Struct(order + "II").unpack_from, struct.Struct(order + "I").unpack_from


def _invalid_length(kind: int, length: int) -> str | None:
    if length % 4 or not SMALLEST.get(kind, SMALLEST_BLOCK) <= length <= LARGEST_BLOCK:
        return f"no block: it would be {length} bytes long"
    return None


def _records(raw: Array, starts: Array, section: Section) -> tuple[Records, list[Problem]]:
    order, interfaces = section.order, section.interfaces
    found = rows(raw, starts, _packet_layout(order))
    kind, length = found["kind"], found["length"].astype(np.int64)
    simple = kind == SIMPLE
    # A simple packet belongs to the first interface, has no time, and is truncated to that interface's snaplen.
    number = np.where(kind == OLD_PACKET, found["old_interface"], found["interface"])
    number = np.where(simple, 0, number).astype(np.int64)
    known = number < len(interfaces)
    wirelen = np.where(simple, found["interface"], found["wirelen"]).astype(np.int64)
    cut = interfaces[0].snaplen if interfaces and interfaces[0].snaplen else MAX_CAPTURED
    simple_cap = np.minimum(np.minimum(wirelen, cut), length - SMALLEST[SIMPLE])
    caplen = np.where(simple, simple_cap, found["caplen"]).astype(np.int64)
    fits = caplen <= length - np.where(simple, SMALLEST[SIMPLE], SMALLEST[ENHANCED])
    good = known & fits
    refused = [
        Problem(
            int(starts[row]),
            int(length[row]),
            f"a packet of {caplen[row]} bytes in a block of {length[row]}"
            if known[row]
            else f"a packet of interface {number[row]}, which is described nowhere before",
        )
        for row in np.flatnonzero(~good).tolist()
    ]
    ticks = found["ticks_high"].astype(np.uint64) << np.uint64(32) | found["ticks_low"]
    ts_ns, timed = np.zeros(len(starts), np.int64), ~simple & good
    link_type = np.zeros(len(starts), np.int32)
    for one in np.unique(number[good]).tolist():
        mine = good & (number == one)
        link_type[mine] = interfaces[one].link_type
        ts_ns[mine], valid = interfaces[one].nanoseconds(ticks[mine])
        timed[mine] &= valid
    records = Records(
        record_at=starts,
        record_bytes=length,
        packet_at=starts + np.where(simple, PACKET_AT[SIMPLE], PACKET_AT[ENHANCED]),
        caplen=caplen,
        wirelen=wirelen,
        ts_ns=ts_ns * timed,
        timed=timed,
        interface=number.astype(np.int32),
        link_type=link_type,
        order=order,
        names=tuple(interface.name for interface in interfaces),
        optional=True,
    )
    return (records if good.all() else records.chosen(good)), refused


def _packet_layout(order: str) -> np.dtype[Any]:
    """An enhanced packet block. An old one has a 16-bit interface; a simple one has the length in its place."""
    names = ("kind", "length", "interface", "ticks_high", "ticks_low", "caplen", "wirelen")
    kind = order + "u4"
    return np.dtype(
        {
            "names": [*names, "old_interface"],
            "formats": [kind] * len(names) + [order + "u2"],
            "offsets": [*range(0, 28, 4), 8],
            "itemsize": 28,
        }
    )


def comments(data: Data, records: Records) -> list[tuple[int, str]]:
    """The comments of packets, by row."""
    if not records.optional:
        return []
    ends = records.record_at + records.record_bytes - 4
    begins = records.packet_at + ((records.caplen + 3) & ~3)
    found = []
    for row in np.flatnonzero(begins + 4 <= ends).tolist():
        texts = [
            value.decode(errors="replace")
            for code, value in options(data, int(begins[row]), int(ends[row]), records.order)
            if code == COMMENT
        ]
        if texts:
            found.append((row, "\n".join(texts)))
    return found
