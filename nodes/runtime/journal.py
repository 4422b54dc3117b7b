"""A sensor's journal: its publications with custody, on disk, for the time after a crash.

It has all publications without an acknowledgement, and those acknowledged lately, which the sensor repeats after a
crash as after any break.

    what it is (1 byte) | length of the rest (4) | checksum (4) | the rest

The first record names the run; a journal of another run is begun anew. A message is on the disk when `add` returns. An
acknowledgement is written without waiting for the disk: after a crash the message would be sent once too often, and its
receivers recognise that. A record torn by a crash or a full disk fails its checksum; it and all behind it count as not
written.

When most of the file is about messages that were acknowledged long ago, it is written anew without them.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from errno import ENOSPC
from typing import NamedTuple
from zlib import crc32

from nodes.overlay.reliability.outbox import MAX_REPEATED, MAX_REPEATED_BYTES
from nodes.protocol.wire import MAX_MESSAGE_BYTES, Message, WireError, decode, encode

MAX_JOURNAL_BYTES = 2 * MAX_MESSAGE_BYTES
TIDY_FROM_BYTES = 64 * 1024  # a smaller file is left as it is
_HEAD = struct.Struct("!BII")
_ID = struct.Struct("!Q")


class What(IntEnum):
    """What a record is."""

    RUN = 1
    MESSAGE = 2  # as it goes over the wire
    ACKNOWLEDGED = 3  # the id of a message


class Record(NamedTuple):
    """One entry."""

    what: What
    body: bytes
    end: int  # where the next one begins


class _Place(NamedTuple):
    begin: int
    size: int


def pack(what: What, body: bytes) -> bytes:
    """A record as it stands in the file."""
    return _HEAD.pack(what, len(body), _checksum(what, body)) + body


def unpack(data: bytes) -> Iterator[Record]:
    """The records, up to the first that is torn or none at all."""
    at = 0
    while at + _HEAD.size <= len(data):
        what, length, checksum = _HEAD.unpack_from(data, at)
        begin = at + _HEAD.size
        at = begin + length
        body = data[begin:at]
        if len(body) < length or _checksum(what, body) != checksum or what not in list(What):
            return
        yield Record(What(what), body, at)


def _checksum(what: int, body: bytes) -> int:
    return crc32(body, crc32(bytes((what,)) + len(body).to_bytes(4)))


class Journal:
    """The file; each of its methods raises OSError if the disk does not take what it should."""

    def __init__(self, path: str, run: str, limit: int = MAX_JOURNAL_BYTES) -> None:
        self._path = path
        self._run = pack(What.RUN, run.encode())
        self._limit = limit
        self._pending: dict[int, _Place] = {}  # in the order of publishing
        self._recent: dict[int, _Place] = {}  # in the order of acknowledgement
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._end = 0  # of what counts as written
        self.highest_id = 0  # of all messages that were ever in it
        try:
            self._read()
        except OSError:
            os.close(self._file)
            raise

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return self._end

    def pending(self) -> list[Message]:
        """The messages without an acknowledgement, in the order of publishing."""
        return self._messages(self._pending)

    def recently_acknowledged(self) -> list[Message]:
        """The last acknowledged messages, in the order of acknowledgement."""
        return self._messages(self._recent)

    def add(self, message: Message) -> None:
        """The message is on the disk when this returns."""
        record = pack(What.MESSAGE, encode(message))
        if self._end + len(record) > self._limit:
            self._recent.clear()
            self._tidy()
        if self._end + len(record) > self._limit:
            raise OSError(ENOSPC, f"the journal has {self._end} of {self._limit} bytes already")
        place = _Place(self._end, len(record))
        self._append(record)
        self._pending[message.message_id] = place
        self.highest_id = max(self.highest_id, message.message_id)
        os.fdatasync(self._file)

    def acknowledged(self, message_id: int) -> None:
        """The message is acknowledged: the sensor need not send it again."""
        if message_id not in self._pending:
            return
        self._move_to_recent(message_id)
        self._append(_acknowledged_record(message_id))
        needed = _bytes_of(self._pending) + _bytes_of(self._recent)
        if self._end >= TIDY_FROM_BYTES and self._end > 4 * needed:
            self._tidy()

    def close(self) -> None:
        os.close(self._file)

    def _move_to_recent(self, message_id: int) -> None:
        self._recent[message_id] = self._pending.pop(message_id)
        while len(self._recent) > MAX_REPEATED or _bytes_of(self._recent) > MAX_REPEATED_BYTES:
            del self._recent[next(iter(self._recent))]

    def _read(self) -> None:
        with open(self._path, "rb") as file:  # noqa: PTH123 - pathlib costs a node memory
            data = file.read(self._limit)
        if not data.startswith(self._run):
            os.ftruncate(self._file, 0)
            self._append(self._run)
            os.fsync(self._file)
            _sync_folder(self._path)
            return
        begin = 0
        for what, body, end in unpack(data):
            if what is What.MESSAGE:
                with suppress(WireError):
                    message_id = decode(body).message_id
                    self._pending[message_id] = _Place(begin, end - begin)
                    self.highest_id = max(self.highest_id, message_id)
            elif what is What.ACKNOWLEDGED and len(body) == _ID.size:
                message_id = _ID.unpack(body)[0]
                if message_id in self._pending:
                    self._move_to_recent(message_id)
                self.highest_id = max(self.highest_id, message_id)
            self._end = begin = end
        os.ftruncate(self._file, self._end)

    def _append(self, data: bytes) -> None:
        """All of it, or nothing that counts."""
        try:
            self._end = _write(self._file, data, self._end)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise

    def _messages(self, places: dict[int, _Place]) -> list[Message]:
        messages = []
        for place in places.values():
            with suppress(WireError):  # of another version of this program
                messages.append(decode(self._record(place)[_HEAD.size :]))
        return messages

    def _record(self, place: _Place) -> bytes:
        return os.pread(self._file, place.size, place.begin)

    def _tidy(self) -> None:
        """Write the file anew, without messages acknowledged long ago. If that fails, the old file stays."""
        new_path = f"{self._path}.new"
        new = os.open(new_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        recent, pending = {}, {}
        try:
            end = _write(new, self._run + _acknowledged_record(self.highest_id), 0)
            for message_id, place in self._recent.items():
                recent[message_id] = _Place(end, place.size)
                end = _write(new, self._record(place) + _acknowledged_record(message_id), end)
            for message_id, place in self._pending.items():
                pending[message_id] = _Place(end, place.size)
                end = _write(new, self._record(place), end)
            os.fsync(new)
            os.replace(new_path, self._path)  # noqa: PTH105 - pathlib costs a node memory
        except OSError:
            os.close(new)
            with suppress(OSError):
                os.unlink(new_path)  # noqa: PTH108
            raise
        os.close(self._file)
        self._file, self._end = new, end
        self._recent, self._pending = recent, pending
        _sync_folder(self._path)


def _bytes_of(places: dict[int, _Place]) -> int:
    return sum(place.size for place in places.values())


def _acknowledged_record(message_id: int) -> bytes:
    return pack(What.ACKNOWLEDGED, _ID.pack(message_id))


def _write(file: int, data: bytes, at: int) -> int:
    """All of it, to this place; where it ends. Usually one write; the kernel may take less at once."""
    while data:
        written = os.pwrite(file, data, at)
        data, at = data[written:], at + written
    return at


def _sync_folder(path: str) -> None:
    """So that the file's name survives a power cut, too."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)  # noqa: PTH120
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
