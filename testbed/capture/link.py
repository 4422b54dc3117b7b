"""One captured link: two sockets, one file, and the statistics of what went from these into that."""

from operator import itemgetter

from testbed.capture.pcap import PcapFile
from testbed.capture.records import Record
from testbed.capture.sockets import CaptureSocket

_TIME = itemgetter(0)


class ReorderBuffer:
    """The records of one link that are not yet in its file."""

    def __init__(self) -> None:
        self._held: list[Record] = []  # there since before the last release
        self._fresh: list[Record] = []

    def __len__(self) -> int:
        return len(self._held) + len(self._fresh)

    def add(self, records: list[Record]) -> None:
        self._fresh += records

    def release(self) -> list[Record]:
        """The records held for a whole interval, and the fresh ones that belong between them."""
        everything = sorted(self._held + self._fresh, key=_TIME)
        self._fresh = []
        if not self._held:
            self._held = everything
            return []
        newest_held = max(map(_TIME, self._held))
        cut = len(everything)
        while everything[cut - 1][0] > newest_held:
            cut -= 1
        self._held = everything[cut:]
        return everything[:cut]

    def release_all(self) -> list[Record]:
        """Everything, in order: nothing more will come."""
        everything = sorted(self._held + self._fresh, key=_TIME)
        self._held, self._fresh = [], []
        return everything


MOST_HELD = 65536  # records of a link kept in memory while its sockets are behind


class CapturedLink:
    """Takes records from its sockets and writes them, in order, to its file."""

    def __init__(self, name: str, file: PcapFile, snaplen: int) -> None:
        self.name = name
        self.file = file
        self.snaplen = snaplen
        self.sockets: list[CaptureSocket] = []
        self._behind: set[CaptureSocket] = set()  # sockets that had more than one burst waiting
        self._waiting = ReorderBuffer()
        self._packets = file.before.packets
        self._bytes = file.before.on_the_wire
        self._dropped = 0  # by closed sockets and by the disk
        self._newest_ns = 0

    def cut_at(self, snaplen: int) -> None:
        """Keep so many bytes of each packet from now on."""
        if snaplen != self.snaplen:
            self.file.allow(snaplen)
            self.snaplen = snaplen

    def take(self, sock: CaptureSocket, buffer: memoryview) -> bool:
        """Take one burst from a socket; whether more may be waiting there."""
        records, more = sock.receive(buffer[: self.snaplen])
        if more:
            self._behind.add(sock)
        else:
            self._behind.discard(sock)
        if records:
            self._packets += len(records)
            self._bytes += sum([record[1] for record in records])
            self._newest_ns = records[-1][0]
            self._waiting.add(records)
        return more

    def drain(self, sock: CaptureSocket, buffer: memoryview, until_ns: int) -> None:
        """Take all that waits at a socket; on a link that never falls silent, all up to that time."""
        while self.take(sock, buffer) and self._newest_ns < until_ns:
            pass

    @property
    def idle(self) -> bool:
        """Whether everything received is in the file."""
        return not len(self._waiting)

    def release(self) -> None:
        """Write what was held back long enough; wait while a socket is behind, or the order would suffer."""
        if not self._behind or len(self._waiting) > MOST_HELD:
            self._write(self._waiting.release())

    def close_socket(self, sock: CaptureSocket) -> None:
        """Close one socket; its drops stay counted."""
        self._dropped += sock.dropped()
        self._behind.discard(sock)
        self.sockets.remove(sock)
        sock.close()

    def finish(self) -> None:
        """Write everything received so far and close the file. The sockets stay open until `close_socket`."""
        self._write(self._waiting.release_all())
        self.file.close()

    def counts(self) -> dict[str, int]:
        """Packets in the file (or about to be), their bytes on the wire, and packets that are not in it."""
        return {"packets": self._packets, "bytes": self._bytes, "dropped": self.dropped()}

    def dropped(self) -> int:
        """Packets that were on the link and are not in the file."""
        return self._dropped + sum(sock.dropped() for sock in self.sockets)

    def _write(self, records: list[tuple[int, int, bytes]]) -> None:
        if records and not self.file.write(records):
            self._packets -= len(records)
            self._bytes -= sum(record[1] for record in records)
            self._dropped += len(records)
