"""The interfaces that a pcapng file describes: link type, how finely their clocks tell the time, name."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analysis.captures.finding import Array

END, COMMENT, NAME, RESOLUTION, OFFSET = 0, 1, 2, 9, 14  # options
BINARY = 0x80  # of a resolution: a power of 2 instead of 10
NANO = 9  # digits
LATEST_S = 9_000_000_000  # nanoseconds since 1970 fit in 64 bits until then
EXACT_BITS = 33  # a fraction of so many bits times 10^9 fits in 64


@dataclass(frozen=True, slots=True)
class Interface:
    """Where packets were captured."""

    link_type: int
    snaplen: int = 0  # 0: no limit
    name: str | None = None
    resolution: int = 6  # as the option has it
    offset_s: int = 0

    def nanoseconds(self, ticks: Array) -> tuple[Array, Array]:
        """The times that its clock told, and which of them can be told here."""
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
    """Seconds and nanoseconds of times in units of 2^-bits."""
    if bits >= 64:  # never a whole second
        return np.zeros_like(ticks), np.zeros_like(ticks)
    seconds = ticks >> np.uint64(bits)
    rest = ticks & np.uint64((1 << bits) - 1)
    dropped = max(0, bits - EXACT_BITS)
    rest = rest >> np.uint64(dropped)
    return seconds, rest * np.uint64(10**NANO) >> np.uint64(bits - dropped)


def options(data: bytes | bytearray, at: int, end: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Code and value of each option; those that do not fit are left out."""
    head = struct.Struct(order + "HH").unpack_from
    while at + 4 <= end:
        code, length = head(data, at)
        at += 4
        if code == END or at + length > end:
            return
        yield code, bytes(data[at : at + length])
        at += (length + 3) & ~3


def describe(block: bytes, order: str) -> Interface:
    """The interface of an interface description block."""
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
