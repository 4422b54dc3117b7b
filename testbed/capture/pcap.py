"""A link's file: nanosecond pcap, Ethernet, only ever extended by whole records.

scapy's writer makes the bytes; this file decides when and how they reach the disk, so that a capture can be read
while it is written, after `kill -9`, and after the disk was full.
"""

import io
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from scapy.utils import RawPcapWriter

from testbed.capture.descriptors import lift
from testbed.capture.ordering import Record
from testbed.errors import InputError

ETHERNET = 1  # LINKTYPE_ETHERNET
NANOSECOND_MAGIC = 0xA1B23C4D
_FILE_HEADER = struct.Struct("<IHHIIII")
_RECORD_HEADER = struct.Struct("<IIII")  # seconds, nanoseconds, captured length, length on the wire
_SECOND = 1_000_000_000


class Extent(NamedTuple):
    """What of a file is whole: bytes of header and records, the records, their bytes on the wire."""

    end: int
    packets: int
    on_the_wire: int


class PcapFile:
    """Appends records to those `before`; what cannot be written is reported and left out, never half there."""

    def __init__(self, path: Path, snaplen: int) -> None:
        self.path = path
        self.error = ""
        self._gathered = io.BytesIO()
        self._writer = RawPcapWriter(
            self._gathered, linktype=ETHERNET, nano=True, endianness="<", snaplen=snaplen
        )
        self.before = extent(path) if path.exists() else Extent(0, 0, 0)
        self._end = self.before.end
        self._fd = lift(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        try:
            os.ftruncate(self._fd, self._end)
            if self._end == 0:
                self._writer.write_header(None)
                self._put()
            else:
                self._writer.header_present = True
        except OSError:
            os.close(self._fd)
            raise

    def write(self, records: Sequence[Record]) -> bool:
        """Put these records on the disk in one go; False (and `error`) if the disk took none of them."""
        write_packet = self._writer.write_packet
        for time_ns, wire_length, data in records:
            seconds, nanoseconds = divmod(time_ns, _SECOND)
            write_packet(data, sec=seconds, usec=nanoseconds, wirelen=wire_length)
        try:
            self._put()
        except OSError as error:
            with suppress(OSError):  # the next write goes to the same place anyway
                os.ftruncate(self._fd, self._end)
            self.error = (
                f"{self.path} cannot be extended: {error.strerror}. "
                "Packets are lost (and counted as dropped) until there is room again."
            )
            return False
        return True

    def close(self) -> None:
        """No more records; the file is complete."""
        os.close(self._fd)

    def _put(self) -> None:
        data = self._gathered.getvalue()
        self._gathered.seek(0)
        self._gathered.truncate()
        done = 0
        while done < len(data):
            done += os.pwrite(self._fd, data[done:] if done else data, self._end + done)
        self._end += done


def extent(path: Path) -> Extent:
    """How far the file is whole; 0 bytes if not even the header is."""
    packets = on_the_wire = 0
    with path.open("rb") as file:
        header = file.read(_FILE_HEADER.size)
        if len(header) < _FILE_HEADER.size:
            return Extent(0, 0, 0)
        if _FILE_HEADER.unpack(header)[0] != NANOSECOND_MAGIC:
            raise InputError(f"{path} is not a capture of this testbed", hint="move it away")
        size = os.fstat(file.fileno()).st_size
        end = _FILE_HEADER.size
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
        file.seek(_FILE_HEADER.size)
        while file.tell() < end:
            header = _RECORD_HEADER.unpack(file.read(_RECORD_HEADER.size))
            seconds, nanoseconds, captured, wire_length = header
            yield seconds * _SECOND + nanoseconds, wire_length, file.read(captured)
