"""The bytes of one direction of a TCP connection, and when each was seen.

A byte counts as seen when a segment with it first passes the capture point. Retransmissions, overlaps and reordering
change the time of a byte, never its value. Bytes that no segment carried are holes: they read as zero and are not
covered.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
NEVER = 2**63 - 1
EMPTY = np.zeros(0, np.int64)
REORDERED_WITHIN_NS = (
    3_000_000  # a late segment within this time was reordered; after it, it was retransmitted
)


@dataclass(frozen=True)
class Stream:
    """The bytes of one direction, and the time at which each piece was seen."""

    data: bytes
    starts: Array  # where each piece begins; pieces do not overlap and are in order
    lengths: Array
    seen_ns: Array  # when each piece was first seen
    unknown: tuple[
        tuple[int, int], ...
    ]  # unknown ranges: holes, and bytes that the capture truncated
    from_start: bool  # the connection's opening was captured
    retransmitted: int  # packets with bytes that were sent again, or late
    retransmitted_payload: int  # all payload bytes of those packets
    reordered: int
    stray: int  # payload bytes of segments that cannot belong to this stream
    repeated_ns: Array  # how long after each piece the last repetition of it was seen; 0: never
    before_ns: int = 0  # when all bytes before these had been seen
    after_ns: int = NEVER  # when the first byte after these was seen

    @property
    def covered_bytes(self) -> int:
        """How many bytes were seen, each counted once."""
        return int(self.lengths.sum())

    @cached_property
    def _covered_before(self) -> Array:
        return np.concatenate(([0], np.cumsum(self.lengths)))

    @cached_property
    def complete_ns(self) -> Array:
        """When each piece and all before it had been seen: then the receiver's TCP could deliver them."""
        return np.maximum(np.maximum.accumulate(self.seen_ns), self.before_ns)

    @cached_property
    def stalled_ns(self) -> Array:
        """How much earlier each piece and all before it would have been complete without retransmissions.

        Bytes are sent in order, so each should have been seen when the first byte beyond it was. Reordering is not
        a stall.
        """
        prompt = np.minimum(np.minimum.accumulate(self.seen_ns[::-1])[::-1], self.after_ns)
        stalled = self.complete_ns - prompt
        return np.where(stalled > REORDERED_WITHIN_NS, stalled, 0)

    def covered(self, begin: Array, end: Array) -> Array:
        """How many bytes of each range [begin, end) were seen."""
        return self._covered_up_to(end) - self._covered_up_to(begin)

    def _covered_up_to(self, at: Array) -> Array:
        if not len(self.starts):
            return np.zeros(len(at), np.int64)
        piece = np.searchsorted(self.starts, at, "right") - 1
        inside = np.clip(at - self.starts[piece], 0, self.lengths[piece])
        return np.where(piece < 0, 0, self._covered_before[piece] + inside)

    def up_to(self, end: int) -> "Stream":
        """The first bytes of the stream, with the times that they have in the whole."""
        some = self.starts < end
        starts = self.starts[some]
        behind = self.seen_ns[self.starts + self.lengths > end]
        return replace(
            self,
            data=self.data[:end],
            starts=starts,
            lengths=np.minimum(self.lengths[some], end - starts),
            seen_ns=self.seen_ns[some],
            repeated_ns=self.repeated_ns[some],
            unknown=tuple((low, min(high, end)) for low, high in self.unknown if low < end),
            after_ns=min(self.after_ns, int(behind.min(initial=NEVER))),
        )

    def segment(self, at: Array) -> Array:
        """The piece that carried the byte at each position (in a hole: the piece before it)."""
        return np.searchsorted(self.starts, at, "right") - 1
