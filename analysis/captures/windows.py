"""Reads a piece of a file, window by window: packets and problems. Memory holds one window only."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.captures.columns import Packets, packet_batch
from analysis.captures.files import WINDOW, Bytes, windows
from analysis.captures.layers import decode
from analysis.captures.pcap import FILE_HEADER, PcapLayout
from analysis.captures.pcapng import PcapngLayout, comments
from analysis.captures.pieces import Piece, head_of, layout_of
from analysis.captures.records import CUT_OFF, Layout, Problem, Records, RecordScanner

COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Part:
    """The packets and problems of a window."""

    path: str
    base: int  # where in the file it begins
    data: bytearray
    records: list[Records]
    problems: list[Problem]
    structure: int  # bytes of headers and descriptions

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The requested columns of its packets."""
        raw = np.frombuffer(self.data, np.uint8)
        wanted = COMMENT in schema.names
        for records in self.records:
            texts = comments(self.data, records) if wanted else []
            packets = Packets(self.path, self.base, records, decode(raw, records), texts)
            yield packet_batch(packets, schema)


def read_piece(piece: Piece, window: int = WINDOW) -> Iterator[Part]:
    """Read a piece: each byte belongs to a packet, to a problem, or to the structure."""
    try:
        source = Bytes(piece.path, piece.begin, piece.end)
    except OSError as error:
        yield _unread(piece, 0, f"it cannot be opened: {error.strerror or error}")
        return
    with closing(source):
        head = bytearray(FILE_HEADER if piece.begin == 0 else 0)
        head = head[: source.fill(memoryview(head))]
        layout = _layout(piece, bytes(head))
        if layout is None:
            yield from _no_capture(piece, bytes(head), source)
            return
        at = max(piece.begin, FILE_HEADER if isinstance(layout, PcapLayout) else 0)
        scanner = RecordScanner(layout, at)
        counted = piece.begin - at
        for data, base, size, final in windows(source, scanner, window, bytes(head)):
            starts, problems = scanner.advance(data, base, size, final)
            raw = np.frombuffer(data, np.uint8)
            records, more = layout.read(raw, np.array(starts, np.int64)) if starts else ([], [])
            if source.failure:
                more = [*more, Problem(base + size, 0, source.failure)]
            structure, counted = layout.structure - counted, layout.structure
            yield Part(piece.path, base, data, records, sorted([*problems, *more]), structure)


def _layout(piece: Piece, head: bytes) -> Layout | None:
    if piece.section is not None:
        return PcapngLayout(piece.section)
    return layout_of(head_of(piece.path) if piece.begin else head)


def _no_capture(piece: Piece, head: bytes, source: Bytes) -> Iterator[Part]:
    """A file that is no capture: all of its bytes are one problem."""
    size = len(head)
    buffer = memoryview(bytearray(WINDOW))
    while got := source.fill(buffer):
        size += got
    if source.failure:
        reason = source.failure
    elif not size:
        reason = "the file is empty"
    elif size < FILE_HEADER:
        reason = f"no capture: the header of the file is {CUT_OFF}"
    else:
        reason = f"no capture: it begins with {head[:4].hex()}"
    yield _unread(piece, size, reason)


def _unread(piece: Piece, size: int, reason: str) -> Part:
    return Part(piece.path, piece.begin, bytearray(), [], [Problem(piece.begin, size, reason)], 0)
