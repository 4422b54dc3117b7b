"""Which files are meant, and their bytes: gz and zst are seen through, whatever their names say."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from analysis.captures.records import Walk
from analysis.captures.storage import is_address, matching, open_file, plain
from analysis.errors import AnalysisError

NAMES = (".pcap", ".pcapng", ".cap", ".dmp")  # and behind them what packs them
PACKED = (".gz", ".zst")
ENDINGS = tuple(name + packed for name in NAMES for packed in ("", *PACKED))
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
WINDOW = 1 << 22
BLOCK = 1 << 20
SMALL = (
    512  # a part of packed bytes that is broken gives nothing at all: at the end parts are small
)


def find_files(asked: Iterable[str], *, some_day: bool = False) -> list[str]:
    """The files that these paths, folders and patterns mean, each once; AnalysisError if one means nothing.

    `some_day`: what means nothing yet may do so later.
    """
    found: dict[str, None] = {}
    for one in asked:
        names = matching(one, ENDINGS)
        if not names and not some_day:
            raise AnalysisError(
                f"there is no capture at {one}",
                f"name a file, a pattern, or a folder with files that end in {', '.join(NAMES)}; "
                f"{' or '.join(PACKED)} may follow",
            )
        found |= dict.fromkeys(names)
    return list(found)


def compression_of(head: bytes) -> str | None:
    """How a file that begins so is packed."""
    return next((kind for magic, kind in COMPRESSIONS.items() if head.startswith(magic)), None)


class Bytes:
    """The bytes of a file from some place on. Packed ones come in their order only, and may end with a `failure`."""

    def __init__(self, path: str, begin: int = 0, stop: int | None = None) -> None:
        self._file = open_file(path)
        self.failure: str | None = None
        self.compression = compression_of(self._file.read(4))
        self._left = stop - begin if stop is not None else None
        if self.compression is None:
            self._file.seek(begin)
            self._read_into: Callable[[memoryview], int] = self._plain
        else:
            self._path, self._given = path, 0
            self._unpacked: Any = _unpack(path, self.compression)
            self._read_into = self._packed
            self._pass_over(begin)

    def fill(self, room: memoryview) -> int:
        """As many bytes as there are, until the room is full; how many."""
        if self._left is not None:
            room = room[: self._left]
        filled = 0
        while filled < len(room):
            got = self._read_into(room[filled:])
            if not got:
                break
            filled += got
        if self._left is not None:
            self._left -= filled
        return filled

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _plain(self, room: memoryview) -> int:
        return self._file.readinto(room) or 0

    def _pass_over(self, size: int) -> None:
        """Nobody can begin in the middle of packed bytes."""
        room = memoryview(bytearray(min(size, BLOCK)))
        while size and (got := self._packed(room[:size])):
            size -= got

    def _packed(self, room: memoryview) -> int:
        if self.failure:
            return 0
        try:
            part = self._unpacked.read(min(BLOCK, len(room)))
        except OSError as error:
            part = self._last_part(len(room))
            self.failure = f"what is packed is broken from here on ({error})"
        room[: len(part)] = part
        self._given += len(part)
        return len(part)

    def _last_part(self, most: int) -> bytes:
        """What can be had before the place that is broken."""
        again = _unpack(self._path, str(self.compression))
        left = self._given
        while left:
            left -= len(again.read(min(BLOCK, left)))
        parts: list[bytes] = []
        try:
            while len(parts) < most and (part := again.read(1)):
                parts.append(part)
        except OSError:
            pass
        return b"".join(parts)


def _unpack(path: str, compression: str) -> Any:
    import pyarrow as pa

    file = open_file(path) if is_address(path) else pa.OSFile(plain(path))
    return pa.CompressedInputStream(file, compression)


def windows(
    source: Bytes, walk: Walk, window: int = WINDOW, head: bytes = b""
) -> Iterator[tuple[bytearray, int, int, bool]]:
    """Data, where in the file they begin, how many, whether they are the last; each time from where the walk stands.

    `head`: what was read of the source already, from the beginning of the file on.
    """
    base = 0 if head else walk.at
    kept: bytes | memoryview = head
    while True:
        known = len(kept)
        room = max(window, 2 * known)
        data = bytearray(known + room)
        data[:known] = kept
        size = known + source.fill(memoryview(data)[known : known + room])
        final = size < known + room
        yield data, base, size, final
        if final:
            return
        kept = memoryview(data)[walk.at - base : size]
        base = walk.at
