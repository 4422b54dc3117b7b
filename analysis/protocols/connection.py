"""One direction of a TCP connection: its segments, its acknowledgements, and how far its stream was read."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.captures.packets import FIN, RST, SYN, Packets
from analysis.protocols.http_upgrade import LONGEST, NO_UPGRADE, Upgrade, read_upgrade
from analysis.protocols.stream_reader import PROBE_BYTES, Reader, StreamSink, reader_for
from analysis.streams.reassembly import Reassembly

Array = npt.NDArray[Any]
MOST_HELD = 1 << 23  # bytes of a stream; beyond, processed bytes are released
CLOSED_NS = (
    60_000_000_000  # packets so long after the end belong to another connection on the same ports
)


class Direction:
    """One direction, from its first packet to its last. `output` receives what is read of it."""

    def __init__(self, opening: int | None, output: StreamSink) -> None:
        self.opening = opening  # sequence number of its SYN
        self.output = output
        self.last_ns = 0
        self.closed = False
        first = None if opening is None else (opening + 1) & 0xFFFFFFFF
        self._stream = Reassembly(first)
        self._reader: Reader | None = None
        self._upgrade: Upgrade | None = None
        self._openings = self._closings = self._sent = 0
        self._enough = MOST_HELD
        self._acknowledged_to = 0
        self._acknowledged_ahead: set[int] = set()

    # Packets in

    def add(self, packets: Packets, which: Array) -> None:
        """Add packets in capture order."""
        flags, sizes = packets.flags[which], packets.payload_len[which]
        opens = flags & SYN > 0
        self._openings += int(opens.sum())
        self._closings += int(((flags & FIN > 0) & (sizes == 0)).sum())
        self._sent += int(sizes.sum())
        self.closed |= bool((flags & (FIN | RST)).any())
        self.last_ns = int(packets.ts_ns[which[-1]])
        loaded = which[(sizes > 0) & ~opens]
        self._stream.add(
            packets.data,
            packets.seq[loaded],
            packets.payload_len[loaded],
            packets.payload_seen[loaded],
            packets.payload_at[loaded],
            packets.ts_ns[loaded],
        )

    def acknowledged(self, numbers: Array) -> None:
        """Record the peer's acknowledgements: bytes that a dead node never acknowledged are not missing."""
        if self.opening is None or not len(numbers):
            return
        there = self._stream.furthest
        ahead = (numbers - self.opening - 1 - there) & 0xFFFFFFFF
        places = there + np.where(ahead >= 1 << 31, ahead - (1 << 32), ahead)
        beyond = places > there + 1  # bytes that are not captured yet, or another connection
        known = [place for place in self._acknowledged_ahead if place <= there + 1]
        self._acknowledged_to = max(
            [self._acknowledged_to, int(places[~beyond].max(initial=0)), *known]
        )
        self._acknowledged_ahead.difference_update(known)
        self._acknowledged_ahead.update(np.unique(places[beyond]).tolist())

    # Bytes out

    def is_over(self, now_ns: int) -> bool:
        """Whether it was closed so long ago that no more packets can belong to it."""
        return self.closed and now_ns - self.last_ns > CLOSED_NS

    @property
    def held(self) -> int:
        """Number of bytes that are still needed."""
        return self._stream.held

    def end_window(self, peer: "Direction | None") -> None:
        """At the end of a window: release what has been processed."""
        self._stream.end_window()
        if self._stream.held > self._enough:
            self._read(peer, final=False)
            self._enough = MOST_HELD + self._stream.held // 2

    def finish(self, peer: "Direction | None") -> None:
        """Read the rest, and add to the totals."""
        stream, total = self._stream, self.output.total
        total["connections"] += int(self._openings > 0 or stream.fresh + stream.stray > 0)
        again = max(0, self._openings - 1) + max(0, self._closings - 1)
        total["retransmitted_packets"] += stream.retransmitted + again
        total["retransmitted_payload"] += stream.retransmitted_payload
        total["reordered_packets"] += stream.reordered
        total["retransmitted_bytes"] += self._sent - stream.fresh - stream.stray
        total["unread_bytes"] += stream.fresh + stream.stray
        total["missing_bytes"] += stream.missing(self._acknowledged_end())
        if stream.fresh:
            self._read(peer, final=True)

    def _acknowledged_end(self) -> int:
        end = self._stream.furthest
        if self.opening is None:
            return end
        ahead = [place for place in self._acknowledged_ahead if place <= end + 1]
        return min(max([self._acknowledged_to, *ahead]), end)

    def _read(self, peer: "Direction | None", final: bool) -> None:
        stream = self._stream.stream(final)
        if not stream.data or (
            len(stream.data) < PROBE_BYTES and not final and self._reader is None
        ):
            return
        if self._reader is None:
            self._reader = reader_for(stream, self._agreed(peer), self.output)
        self._stream.release(self._reader.read(stream, final))

    def _agreed(self, peer: "Direction | None") -> Upgrade:
        """The upgrade in the server's response, in whichever direction; else the one in the request."""
        mine, theirs = self._upgraded(), peer._upgraded() if peer else NO_UPGRADE
        if not theirs.is_websocket or theirs.is_answer == mine.is_answer:
            return mine if mine.is_answer else mine._replace(extensions=())
        return mine if mine.is_answer else theirs

    def _upgraded(self) -> Upgrade:
        """The HTTP head at its beginning."""
        if self._upgrade is None or self._reader is None:
            self._upgrade = read_upgrade(self._stream.beginning(LONGEST))
        return self._upgrade
