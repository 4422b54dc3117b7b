"""Splits big files into byte ranges that begin and end between records, so that each byte is read exactly once.

A boundary of pcap records is searched from a place well before it: bytes inside a packet may look like a record, but
the search has found the true records again by then. Blocks of pcapng depend on earlier descriptions, so these files
are read once, block by block.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from analysis.captures.files import Bytes, windows
from analysis.captures.pcap import FILE_HEADER, PcapLayout, read_head
from analysis.captures.pcapng import ORDERS, SECTION_MAGIC, PcapngLayout, Section
from analysis.captures.records import Layout, RecordScanner
from analysis.captures.storage import size_of

LOOK_BACK = 1 << 20
MARGIN = 1 << 20  # bytes after the wanted place
SMALLEST_PIECE = 1 << 22  # splitting a smaller file costs more than it gains
LARGEST_PIECE = 1 << 27
TASKS_PER_CORE = 2  # so that a slow task does not delay the whole


@dataclass(frozen=True, slots=True)
class Piece:
    """A byte range of a file; `end` None: to its end. `section`: the pcapng section that holds at its beginning."""

    path: str
    begin: int = 0
    end: int | None = None
    section: Section | None = None


def split_files(paths: Iterable[str], piece_bytes: int) -> list[Piece]:
    """Split all files that are bigger than this."""
    pieces: list[Piece] = []
    for path in paths:
        pieces += _split_file(path, piece_bytes)
    return pieces


def group_pieces(pieces: Sequence[Piece], share_bytes: int) -> list[list[Piece]]:
    """Group neighbouring pieces, so that many small files become few tasks."""
    shares: list[list[Piece]] = []
    left = 0
    for piece in pieces:
        size = (size_of(piece.path) if piece.end is None else piece.end) - piece.begin
        if not shares or size > left:
            shares.append([])
            left = share_bytes
        shares[-1].append(piece)
        left -= size
    return shares


def piece_size(total: int, tasks: int) -> int:
    """Size of a piece, if `total` bytes are read by this many tasks."""
    return max(SMALLEST_PIECE, min(LARGEST_PIECE, -(-total // tasks)))


def head_of(path: str) -> bytes:
    """The first bytes of a file, decompressed."""
    head = bytearray(FILE_HEADER)
    with closing(Bytes(path)) as source:
        return bytes(head[: source.fill(memoryview(head))])


def is_packed(path: str) -> bool:
    """Whether the file is compressed."""
    with closing(Bytes(path)) as source:
        return source.compression is not None


def layout_of(head: bytes) -> Layout | None:
    """The layout of a file that begins with these bytes; None if it is no capture."""
    if found := read_head(head):
        return PcapLayout(found)
    if head.startswith(SECTION_MAGIC) and (order := ORDERS.get(head[8:12])):
        return PcapngLayout(Section(0, order))
    return None


def _split_file(path: str, piece_bytes: int) -> list[Piece]:
    size = size_of(path)
    if size <= piece_bytes:
        return [Piece(path)]
    try:
        layout = layout_of(head_of(path))
        packed = is_packed(path)
    except OSError:  # the reader reports the error
        return [Piece(path)]
    if layout is None or packed:
        return [Piece(path)]
    wanted = _split_offsets(0, size, piece_bytes)
    if isinstance(layout, PcapngLayout):
        return _split_blocks(path, wanted, layout)
    return split_records(path, wanted)


def split_piece(piece: Piece, piece_bytes: int) -> list[Piece]:
    """Split a piece that is bigger than this, if that is possible without reading it."""
    if piece.end is None or piece.section or piece.end - piece.begin <= piece_bytes:
        return [piece]
    if is_packed(piece.path) or not isinstance(layout_of(head_of(piece.path)), PcapLayout):
        return [piece]
    wanted = _split_offsets(piece.begin, piece.end, piece_bytes)
    return split_records(piece.path, wanted, begin=piece.begin, end=piece.end)


def _split_offsets(begin: int, end: int, piece_bytes: int) -> list[int]:
    """The offsets that divide a range into parts of equal size."""
    count = -(-(end - begin) // piece_bytes)
    return [begin + (end - begin) * number // count for number in range(1, count)]


def split_records(
    path: str,
    wanted: Iterable[int],
    look_back: int = LOOK_BACK,
    begin: int = 0,
    end: int | None = None,
) -> list[Piece]:
    """Split a pcap file, or a part of it, at the first records after these offsets."""
    begins = [begin]
    limit = size_of(path) if end is None else end
    for place in sorted(wanted):
        found = record_boundary(path, place, look_back)
        if (
            begins[-1] < found < limit
        ):  # in garbage two places may lead to the same record, or to none
            begins.append(found)
    ends = [*begins[1:], end]
    return [Piece(path, first, last) for first, last in zip(begins, ends, strict=True)]


def _split_blocks(path: str, wanted: list[int], layout: PcapngLayout) -> list[Piece]:
    """Split at the blocks that contain these offsets, each with the section that holds there."""
    borders: list[tuple[int, Section | None]] = [(0, None)]
    scanner = RecordScanner(layout, 0)
    for place in wanted:
        advance_to(path, scanner, place)
        if not scanner.is_searching and scanner.at > borders[-1][0]:
            now = layout.sections[-1]
            borders.append((scanner.at, Section(scanner.at, now.order, list(now.interfaces))))
    ends = [begin for begin, _ in borders[1:]]
    return [
        Piece(path, begin, end, section)
        for (begin, section), end in zip(borders, [*ends, None], strict=True)
    ]


def advance_to(path: str, scanner: RecordScanner, place: int) -> None:
    """Advance to the record that contains this offset."""
    with closing(Bytes(path, scanner.at, place)) as source:
        for data, base, size, _ in windows(source, scanner):
            scanner.advance(data, base, size, final=False)


def record_boundary(path: str, place: int, look_back: int = LOOK_BACK) -> int:
    """The offset of the first record of a pcap file at or after this place."""
    begin = max(FILE_HEADER, place - look_back)
    if place <= FILE_HEADER:
        return FILE_HEADER
    layout = layout_of(head_of(path))
    if layout is None:
        return size_of(path)
    scanner = RecordScanner(layout, begin, lost=begin > FILE_HEADER)
    with closing(Bytes(path, begin)) as source:
        for data, base, size, final in windows(source, scanner, look_back + MARGIN):
            starts, _ = scanner.advance(data, base, size, final)
            first = bisect_left(starts, place - base)
            if first < len(starts):
                return base + starts[first]
    return scanner.at
