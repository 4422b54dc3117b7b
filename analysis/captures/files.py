"""Finds capture files and reads their bytes; decompresses gz and zst, whatever the file's name is."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from analysis.captures.records import RecordScanner
from analysis.captures.storage import is_address, matching, open_file, plain
from analysis.errors import AnalysisError

NAMES = (".pcap", ".pcapng", ".cap", ".dmp")  # a suffix of a compression may follow
PACKED = (".gz", ".zst")
ENDINGS = tuple(name + packed for name in NAMES for packed in ("", *PACKED))
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
WINDOW = 1 << 22
BLOCK = 1 << 20
SMALL = 512  # a damaged compressed block yields nothing, so blocks near the damage are small


def find_files(asked: Iterable[str], *, may_be_missing: bool = False) -> list[str]:
    """The files that these paths, folders and patterns match, each once; AnalysisError if one matches nothing.

    `may_be_missing`: a pattern without a match is no error, because files may appear later.
    """
    found: dict[str, None] = {}
    for one in asked:
        names = matching(one, ENDINGS)
        if not names and not may_be_missing:
            raise AnalysisError(
                f"there is no capture at {one}",
                f"name a file, a pattern, or a folder with files that end in {', '.join(NAMES)}; "
                f"{' or '.join(PACKED)} may follow",
            )
        found |= dict.fromkeys(names)
    return list(found)


def compression_of(head: bytes) -> str | None:
    """The compression of a file that begins with these bytes; None if it has none."""
    return next((kind for magic, kind in COMPRESSIONS.items() if head.startswith(magic)), None)


class Bytes:
    """The bytes of a file from an offset on. Compressed files are read in order only, and may end with a `failure`."""

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
            self._skip(begin)

    def fill(self, buffer: memoryview) -> int:
        """Fill the buffer as far as the file goes; returns the number of bytes."""
        if self._left is not None:
            buffer = buffer[: self._left]
        filled = 0
        while filled < len(buffer):
            got = self._read_into(buffer[filled:])
            if not got:
                break
            filled += got
        if self._left is not None:
            self._left -= filled
        return filled

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _plain(self, buffer: memoryview) -> int:
        return self._file.readinto(buffer) or 0

    def _skip(self, size: int) -> None:
        """Decompress and discard: compressed data cannot be read from the middle."""
        buffer = memoryview(bytearray(min(size, BLOCK)))
        while size and (got := self._packed(buffer[:size])):
            size -= got

    def _packed(self, buffer: memoryview) -> int:
        if self.failure:
            return 0
        try:
            part = self._unpacked.read(min(BLOCK, len(buffer)))
        except OSError as error:
            part = self._last_part(len(buffer))
            self.failure = f"the compressed data is damaged from here on ({error})"
        buffer[: len(part)] = part
        self._given += len(part)
        return len(part)

    def _last_part(self, most: int) -> bytes:
        """The bytes that can be decompressed before the damage."""
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
    source: Bytes, scanner: RecordScanner, window: int = WINDOW, head: bytes = b""
) -> Iterator[tuple[bytearray, int, int, bool]]:
    """Data, its offset in the file, its size, and whether it is the last; each window begins where the scanner stands.

    `head`: bytes that were already read, from the beginning of the file on.
    """
    base = 0 if head else scanner.at
    kept: bytes | memoryview = head
    while True:
        known = len(kept)
        more = max(window, 2 * known)
        data = bytearray(known + more)
        data[:known] = kept
        size = known + source.fill(memoryview(data)[known : known + more])
        final = size < known + more
        yield data, base, size, final
        if final:
            return
        kept = memoryview(data)[scanner.at - base : size]
        base = scanner.at
