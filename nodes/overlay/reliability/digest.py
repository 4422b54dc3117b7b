"""Digest: the ids of the publications that a node has, as runs of consecutive counters of each origin.

    origin (4 bytes) | number of runs (1) | for each run: how many counters it leaves out, its length - 1

The numbers of a run have 7 bits a byte, the lowest first; the highest bit says that more follow. A counter counts all
publications of an origin, on every topic and level, so the counters of one topic may lie far apart or close together;
runs describe both exactly. A node that has more than fits reports the newest; some of the rest may come twice.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from nodes.protocol.wire import WireError

MAX_DIGEST_BYTES = 1024
MAX_RUNS = 255  # of one origin in one entry
_HEAD = struct.Struct("!IB")
_COUNTERS = 1 << 32

Run = tuple[int, int]  # first and last counter


class Digest:
    """The publications that another node has, as it reports."""

    def __init__(self, runs: Mapping[int, Sequence[Run]] | None = None) -> None:
        self._runs = dict(runs or {})  # origin -> runs

    def __contains__(self, message_id: int) -> bool:
        counter = message_id % _COUNTERS
        runs = self._runs.get(message_id // _COUNTERS, ())
        return any(first <= counter <= last for first, last in runs)


def encode(ids: Sequence[int]) -> bytes:
    """The digest of these ids, the newest first; the oldest are left out if they do not fit."""
    while len(data := _encoded(ids)) > MAX_DIGEST_BYTES:
        ids = ids[: len(ids) * 3 // 4]
    return data


def decode(data: bytes) -> Digest:
    """The digest of another node; WireError for bytes that `encode` does not make."""
    if len(data) > MAX_DIGEST_BYTES:
        raise WireError(f"{len(data)} bytes of digest; at most {MAX_DIGEST_BYTES} are possible")
    runs: dict[int, list[Run]] = {}
    at = 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise WireError("a digest that ends within an origin")
        origin, count = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        next_free = 0
        for _ in range(count):
            gap, at = _number(data, at)
            more, at = _number(data, at)
            first = next_free + gap
            if first + more >= _COUNTERS:
                raise WireError("a digest with a counter of more than 32 bits")
            runs.setdefault(origin, []).append((first, first + more))
            next_free = first + more + 1
    return Digest(runs)


def _encoded(ids: Sequence[int]) -> bytes:
    parts = []
    for origin, of_origin in groupby(sorted(set(ids)), lambda each: each // _COUNTERS):
        runs = list(_runs(each % _COUNTERS for each in of_origin))
        for begin in range(0, len(runs), MAX_RUNS):
            some = runs[begin : begin + MAX_RUNS]
            parts.append(_HEAD.pack(origin, len(some)))
            next_free = 0
            for first, last in some:
                parts += [_digits(first - next_free), _digits(last - first)]
                next_free = last + 1
    return b"".join(parts)


def _runs(counters: Iterator[int]) -> Iterator[Run]:
    """Growing counters as runs."""
    first = last = next(counters)
    for counter in counters:
        if counter != last + 1:
            yield first, last
            first = counter
        last = counter
    yield first, last


def _digits(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins here, and where it ends."""
    number = shift = 0
    while at < len(data) and shift < 35:  # 32 bits in sevens
        number |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return number, at
        shift += 7
    raise WireError("a digest with a number that does not end")
