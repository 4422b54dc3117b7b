"""Files that still grow: up to where they are complete, and where a reader continues.

A record whose end is not written yet is left for later. So are bytes that look damaged, until enough bytes follow to
find the next record.
"""

from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from analysis.captures.files import Bytes, windows
from analysis.captures.pcap import FILE_HEADER, PcapLayout
from analysis.captures.pcapng import Interface, PcapngLayout, Section
from analysis.captures.pieces import Piece, head_of, is_packed, layout_of
from analysis.captures.records import Layout, RecordScanner
from analysis.captures.storage import size_of
from analysis.errors import AnalysisError

LEAST_STEP = 1 << 20  # bytes; no record is longer


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next record of a file begins; in pcapng with the section that holds there."""

    at: int = 0
    section: Section | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain values for a checkpoint."""
        if self.section is None:
            return {"at": self.at}
        interfaces = {
            str(number): {name: value for name, value in asdict(one).items() if value is not None}
            for number, one in enumerate(self.section.interfaces)
        }
        return {"at": self.at, "order": self.section.order, "interfaces": interfaces}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Place":
        """From the plain values of a checkpoint."""
        if "order" not in plain:
            return cls(plain["at"])
        kept = sorted(plain["interfaces"].items(), key=lambda item: int(item[0]))
        interfaces = [Interface(**described) for _, described in kept]
        return cls(plain["at"], Section(plain["at"], plain["order"], interfaces))


def available(path: str) -> int:
    """How many bytes the file has now; of a compressed file, in complete records."""
    return advance(path, Place()).at if is_packed(path) else size_of(path)


def advance(path: str, start: Place, stop: int | None = None) -> Place:
    """The place after the last record that is complete now and ends before `stop`."""
    size = size_of(path)
    packed = is_packed(path)
    if size < start.at and not packed:
        raise AnalysisError(
            f"{path} has only {size} bytes, but {start.at} of it have been read",
            "a capture must only grow; start again with another checkpoint.",
        )
    head = head_of(path)
    if len(head) < FILE_HEADER:
        return start
    layout = _layout(start, head)
    if layout is None:  # no capture: no record can follow
        return start if packed else Place(size if stop is None else min(size, stop))
    first = FILE_HEADER if isinstance(layout, PcapLayout) else 0
    scanner = RecordScanner(layout, max(start.at, first))
    with closing(Bytes(path, scanner.at, stop)) as source:
        for data, base, length, _ in windows(source, scanner):
            scanner.advance(data, base, length, final=False)
    if scanner.whole <= first:
        return start
    if isinstance(layout, PcapngLayout):
        now = layout.sections[-1]
        return Place(scanner.whole, Section(scanner.whole, now.order, list(now.interfaces)))
    return Place(scanner.whole)


def between(path: str, start: Place, end: Place) -> Piece:
    """The piece of a file between two places."""
    return Piece(path, start.at, end.at, start.section)


def _layout(start: Place, head: bytes) -> Layout | None:
    return PcapngLayout(start.section) if start.section else layout_of(head)
