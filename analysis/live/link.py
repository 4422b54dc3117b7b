"""Arrivals at a node while its link is captured. Pure: packets in, arrivals out.

Only the bytes of a connection that are still needed are held: from the first incomplete message on. Bytes after a gap
wait for it, as in the receiver's TCP. If the gap is never filled, the capture has lost it, and reading continues after
it.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.captures.packets import SYN, Packets
from analysis.protocols.chunks import pieces_of
from analysis.protocols.messages import read_messages
from analysis.protocols.websocket import FrameScan, scan_frames
from analysis.streams.reassembly import Stream, reassemble

Array = npt.NDArray[Any]
WRAP = 1 << 32
# A prefix for a stream whose beginning was already read: frames begin right after it.
READ_ALREADY = b"HTTP/1.1 \r\n\r\n"
MOST_KEPT = 1 << 23  # bytes of a connection; incomplete messages are given up then
GIVE_UP_NS = 20_000_000_000  # a gap that is open for so long was lost by the capture


class Arrival(NamedTuple):
    """A complete publication: its publish time and its arrival."""

    identity: str
    published_ns: int
    arrived_ns: int


class LiveLink:
    """One node's link."""

    def __init__(self, address: int) -> None:
        self.address = address
        self._connections: dict[tuple[int, int], _Connection] = {}

    def add(self, packets: Packets) -> list[Arrival]:
        """The arrivals of these packets; earlier ones may be returned again."""
        ours = packets.is_tcp & (packets.ip_dst == self.address)
        ours &= (packets.payload_len > 0) | (packets.flags & SYN > 0)
        touched: dict[tuple[int, int], _Connection] = {}
        found: list[Arrival] = []
        for row in np.flatnonzero(ours).tolist():
            ports = int(packets.src_port[row]) << 16 | int(packets.dst_port[row])
            key = (int(packets.ip_src[row]), ports)
            known = self._connections.get(key)
            seq = int(packets.seq[row])
            if packets.flags[row] & SYN:
                if known is None or known.opening != seq + 1:
                    if key in touched:  # the ports are used again
                        found += touched.pop(key).read()
                    self._connections[key] = _Connection(seq + 1)
                continue
            if known is None:  # its SYN was not captured
                known = self._connections[key] = _Connection(seq)
            at = int(packets.payload_at[row])
            kept = packets.data[at : at + int(packets.payload_seen[row])]
            known.add(seq, kept, int(packets.payload_len[row]), int(packets.ts_ns[row]))
            touched[key] = known
        for connection in touched.values():
            found += connection.read()
        return found

    def finish(self) -> list[Arrival]:
        """The arrivals after gaps, too: there will be no more packets."""
        return [one for each in self._connections.values() for one in each.read(final=True)]


class _Segment(NamedTuple):
    """Bytes of the stream; `at`: offset from the first held byte."""

    at: int
    data: bytes
    length: int
    ts_ns: int

    def behind(self, place: int) -> "_Segment | None":
        """The part after this place, with offsets from there."""
        cut = max(0, place - self.at)
        if cut >= self.length:
            return None
        return _Segment(self.at + cut - place, self.data[cut:], self.length - cut, self.ts_ns)


@dataclass(slots=True)
class _Connection:
    """One direction of a TCP connection. `opening`: sequence number of its first byte."""

    opening: int
    base: int = 0  # number of bytes that have been read and released
    complete_ns: int = 0  # when all of those had arrived
    segments: list[_Segment] = field(default_factory=list)

    def add(self, seq: int, data: bytes, length: int, ts_ns: int) -> None:
        """Add a segment; bytes that were already read are dropped."""
        at = (seq - self.opening - self.base) % WRAP
        at -= WRAP if at >= WRAP // 2 else 0
        if fresh := _Segment(at, data, length, ts_ns).behind(0):
            self.segments.append(fresh)

    def read(self, final: bool = False) -> list[Arrival]:
        """The complete publications; releases everything before the first incomplete message."""
        stream = self._stream(self._in_a_row(final))
        skipped = len(READ_ALREADY) if self.base else 0
        found = scan_frames(stream.data, stream.unknown, stream.from_start)
        if not found.frames:
            return []
        messages = read_messages(stream, found)
        there = messages.complete & messages.is_publish
        arrivals = [
            Arrival(f"{identity:016x}", published_ns, arrived_ns)
            for identity, published_ns, arrived_ns in zip(
                messages.header["message_id"][there].tolist(),
                messages.header["published_ns"][there].tolist(),
                messages.last_ns[there].tolist(),
                strict=True,
            )
        ]
        if (done := _all_read_before(stream, found)) > skipped:
            before = stream.segment(np.array([done - 1]))
            self._release(done - skipped, int(stream.complete_ns[before][0]))
        elif sum(one.length for one in self.segments) > MOST_KEPT:
            self._release(max(one.at + one.length for one in self.segments), self.complete_ns)
        return arrivals

    def _in_a_row(self, final: bool) -> list[_Segment]:
        """The segments up to the first gap; all, if that is given up."""
        end = 0
        for one in sorted(self.segments):
            if one.at > end:
                break
            end = max(end, one.at + one.length)
        beyond = [one.ts_ns for one in self.segments if one.at > end]
        if final or (beyond and self.segments[-1].ts_ns - beyond[0] > GIVE_UP_NS):
            return self.segments
        return [one for one in self.segments if one.at <= end]

    def _stream(self, segments: list[_Segment]) -> Stream:
        """The stream of these segments, with a prefix that marks the beginning of frames."""
        if self.base:
            moved = [one._replace(at=one.at + len(READ_ALREADY)) for one in segments]
            before = _Segment(0, READ_ALREADY, len(READ_ALREADY), self.complete_ns)
            segments = [before, *moved]
        kept = np.array([len(one.data) for one in segments], np.int64)
        return reassemble(
            b"".join(one.data for one in segments),
            np.array([one.at for one in segments], np.int64),
            np.array([one.length for one in segments], np.int64),
            kept,
            np.cumsum(kept) - kept,
            np.array([one.ts_ns for one in segments], np.int64),
            0,
        )

    def _release(self, size: int, complete_ns: int) -> None:
        self.base += size
        self.complete_ns = complete_ns
        self.segments = [left for one in self.segments if (left := one.behind(size))]


def _all_read_before(stream: Stream, found: FrameScan) -> int:
    """The last frame boundary before which all messages are complete."""
    pieces = pieces_of(stream, found)
    ends = np.array([*(one[2] for one in found.frames), *(end for _, end in found.control_frames)])
    begin = pieces.at[pieces.first]
    end = np.where(pieces.finished, pieces.end[pieces.final], len(stream.data) + 1)
    place = int(ends[ends <= len(stream.data)].max(initial=0))
    while (across := (begin < place) & (end > place)).any():
        place = int(begin[across].min())
    return place
