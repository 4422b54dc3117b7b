"""What the relay tells of itself: how much it forwarded, and how late. A run on an overloaded machine shows here."""

from dataclasses import dataclass, field
from typing import Any

from testbed.links.relay.model import Drop
from testbed.monitor.board import LATE_BUCKETS, Board, private_board


@dataclass(slots=True)
class Tally:
    """What became of packets."""

    forwarded: int = 0
    dropped: dict[Drop, int] = field(default_factory=lambda: dict.fromkeys(Drop, 0))

    def report(self) -> dict[str, int]:
        """Plain JSON values."""
        drops = {f"dropped_{why}": count for why, count in self.dropped.items()}
        return {"forwarded": self.forwarded, **drops}


@dataclass(slots=True)
class Counters:
    """Sums over all links; a packet is late by the time between its due moment and its delivery."""

    board: Board = field(default_factory=private_board)  # on which the monitor sees the lateness
    total: Tally = field(default_factory=Tally)
    undelivered: int = 0  # the interface was down or gone
    late_max_ns: int = 0
    _told: list[int] = field(default_factory=lambda: [0] * LATE_BUCKETS)  # before the last restart

    def delivered(self, late_ns: int) -> None:
        """One packet handed over."""
        self.total.forwarded += 1
        self.late_max_ns = max(self.late_max_ns, late_ns)
        self.board.relay_late[min((late_ns // 1000).bit_length(), LATE_BUCKETS - 1)] += 1
        self.board.relay_peak_ns[0] = max(self.board.relay_peak_ns[0], late_ns)

    def restart_lateness(self) -> None:
        """From now on, only packets to come count as late; the packets' own counts go on."""
        self.late_max_ns = 0
        self._told = list(self.board.relay_late)

    def late_ns(self, share: float) -> int:
        """This share of all packets was at most so late (an upper bound, to a power of two)."""
        counts = [now - told for now, told in zip(self.board.relay_late, self._told, strict=True)]
        wanted = share * sum(counts)
        seen = 0
        for bucket, count in enumerate(counts):
            seen += count
            if seen >= wanted:
                return min(1000 << bucket, self.late_max_ns)
        return self.late_max_ns

    def report(self) -> dict[str, Any]:
        """Plain JSON values, times in seconds."""
        return {
            **self.total.report(),
            "undelivered": self.undelivered,
            "late_max_s": self.late_max_ns / 1e9,
            "late_p50_s": self.late_ns(0.50) / 1e9,
            "late_p99_s": self.late_ns(0.99) / 1e9,
        }
