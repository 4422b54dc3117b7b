"""A link's file: nanosecond pcap, Ethernet, only ever extended by whole records.

scapy's writer makes the bytes; this file decides when and how they reach the disk, so that a capture can be read
while it is written, after `kill -9`, and after the disk was full.
"""

import fcntl
import io
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from scapy.utils import RawPcapWriter

from testbed.capture.records import Extent, Record, extent

# Descriptors beyond what select() knows: a lab of hundreds of links keeps three of them open for each.


_SELECT_REACH = 1024  # scapy's constructors call select(), which knows no descriptor beyond


def lift(descriptor: int) -> int:
    """The same open file under a number beyond select()'s reach, so that what is opened next stays within it."""
    try:
        lifted = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _SELECT_REACH)
    except OSError:  # the limit of open files is that low; then no number goes beyond
        return descriptor
    os.close(descriptor)
    return lifted


ETHERNET = 1  # LINKTYPE_ETHERNET
_SNAPLEN = struct.Struct("<I")
_SNAPLEN_AT = 16  # in the file's header
_SECOND = 1_000_000_000


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
                self.allow(snaplen)
        except OSError:
            os.close(self._fd)
            raise

    def allow(self, snaplen: int) -> None:
        """Records may be so long from now on; readers cut what is longer than the header says."""
        try:
            (before,) = _SNAPLEN.unpack(os.pread(self._fd, _SNAPLEN.size, _SNAPLEN_AT))
            if snaplen > before:
                os.pwrite(self._fd, _SNAPLEN.pack(snaplen), _SNAPLEN_AT)
        except OSError as error:
            self.error = f"the header of {self.path} cannot be changed: {error.strerror}."

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
