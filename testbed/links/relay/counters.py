"""What the relay tells of itself: how much it forwarded, and how late. A run on an overloaded machine shows here."""

from dataclasses import dataclass, field
from typing import Any

_BUCKETS = 64  # of microseconds, each twice as wide as the one before


@dataclass(slots=True)
class Counters:
    """Sums over all links; a packet is late by the time between its due moment and its delivery."""

    forwarded: int = 0
    dropped_queue: int = 0
    dropped_loss: int = 0
    undelivered: int = 0  # the interface was down or gone
    late_max_ns: int = 0
    _late: list[int] = field(default_factory=lambda: [0] * _BUCKETS)

    def delivered(self, late_ns: int) -> None:
        """One packet handed over."""
        self.forwarded += 1
        self.late_max_ns = max(self.late_max_ns, late_ns)
        self._late[min((late_ns // 1000).bit_length(), _BUCKETS - 1)] += 1

    def late_ns(self, share: float) -> int:
        """This share of all packets was at most so late (an upper bound, to a power of two)."""
        wanted = share * self.forwarded
        seen = 0
        for bucket, count in enumerate(self._late):
            seen += count
            if seen >= wanted:
                return min(1000 << bucket, self.late_max_ns)
        return self.late_max_ns

    def report(self) -> dict[str, Any]:
        """Plain JSON values, times in seconds."""
        return {
            "forwarded": self.forwarded,
            "dropped_queue": self.dropped_queue,
            "dropped_loss": self.dropped_loss,
            "undelivered": self.undelivered,
            "late_max_s": self.late_max_ns / 1e9,
            "late_p50_s": self.late_ns(0.50) / 1e9,
            "late_p99_s": self.late_ns(0.99) / 1e9,
        }
