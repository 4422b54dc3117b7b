"""The records of a link's file: their type, and how far a file is whole. Without scapy, since the keeper reads them."""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from testbed.errors import InputError

# Puts what two sockets of a link delivered into one order: by time stamp.
#
# A link is captured at both ends, and neither socket knows of the other. A record is therefore held back for one whole
# interval between two releases; whatever the other socket still had from before that is in by then. No clock is asked:
# a step of the machine's clock neither holds a record for ever nor lets it go too early.


Record = tuple[int, int, bytes]  # time stamp (ns since 1970), length on the wire, captured bytes


NANOSECOND_MAGIC = 0xA1B23C4D
FILE_HEADER = struct.Struct("<IHHIIII")  # ..., the longest record (snaplen), link type
_RECORD_HEADER = struct.Struct("<IIII")  # seconds, nanoseconds, captured length, length on the wire
_SECOND = 1_000_000_000


class Extent(NamedTuple):
    """What of a file is whole: bytes of header and records, the records, their bytes on the wire."""

    end: int
    packets: int
    on_the_wire: int


def extent(path: Path) -> Extent:
    """How far the file is whole; 0 bytes if not even the header is."""
    packets = on_the_wire = 0
    with path.open("rb") as file:
        header = file.read(FILE_HEADER.size)
        if len(header) < FILE_HEADER.size:
            return Extent(0, 0, 0)
        if FILE_HEADER.unpack(header)[0] != NANOSECOND_MAGIC:
            raise InputError(f"{path} is not a capture of this testbed", hint="move it away")
        size = os.fstat(file.fileno()).st_size
        end = FILE_HEADER.size
        while end + _RECORD_HEADER.size <= size:
            file.seek(end)
            _, _, captured, length = _RECORD_HEADER.unpack(file.read(_RECORD_HEADER.size))
            if end + _RECORD_HEADER.size + captured > size:
                break
            end += _RECORD_HEADER.size + captured
            packets += 1
            on_the_wire += length
    return Extent(end, packets, on_the_wire)


def read_records(path: Path) -> Iterator[Record]:
    """The whole records of a link's file, also while it is written or after its writer was killed."""
    end = extent(path).end
    with path.open("rb") as file:
        file.seek(FILE_HEADER.size)
        while file.tell() < end:
            header = _RECORD_HEADER.unpack(file.read(_RECORD_HEADER.size))
            seconds, nanoseconds, captured, wire_length = header
            yield seconds * _SECOND + nanoseconds, wire_length, file.read(captured)
