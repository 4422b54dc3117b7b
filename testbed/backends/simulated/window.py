"""How many packets TCP has under way: BBR (version 1) without its pacing. Pure.

It learns the line's rate from what is delivered and keeps twice the bytes that rate x shortest round trip asks for, and
three packets. At the beginning there are ten packets, and one more with each that is delivered, until the rate has not
grown by a quarter for three round trips. Losses change nothing, but when all seems lost it begins with one packet.
"""

from collections import deque

FIRST_PACKETS, FEWEST_PACKETS, SPARE_PACKETS = 10, 4, 3
GAIN = 2.0
GROWING, PATIENCE_ROUNDS = 1.25, 3
REMEMBERED_ROUNDS = 10


class Window:
    """The window of one direction; times in nanoseconds, sizes in bytes."""

    def __init__(self, segment: int) -> None:
        self.packets: float = FIRST_PACKETS
        self._before_timeout = 0.0
        self._segment = segment
        self._rates: deque[tuple[int, float]] = deque()  # round, bytes a nanosecond; falling
        self._round = 0
        self._round_ends = 0  # when what was delivered up to here was under way
        self._best, self._poor_rounds = 0.0, 0
        self._filled = False

    def on_delivered(
        self, packets: int, delivered: int, before: int, took: int, shortest_ns: int, limited: bool
    ) -> None:
        """So many packets more: `delivered` bytes in all, `before` when the newest of them was sent, `took` ago.

        `limited`: the sender had nothing more to send then, so the line may be faster than that.
        """
        begins = before >= self._round_ends
        if begins:
            self._round += 1
            self._round_ends = delivered
        rate = (delivered - before) / max(took, 1)
        if not limited or rate >= self._rate():
            self._remember(rate)
        if begins and not limited and not self._filled:
            self._look_for_growth()
        most = GAIN * self._rate() * shortest_ns / self._segment + SPARE_PACKETS
        grown = self.packets + packets
        if self._filled:
            grown = min(grown, max(most, FEWEST_PACKETS))
        elif self.packets >= max(most, FIRST_PACKETS):
            grown = self.packets
        self.packets = grown
        self._before_timeout = 0.0

    def on_timeout(self) -> None:
        """Nothing has come for long."""
        self._before_timeout = max(self.packets, self._before_timeout)
        self.packets = 1

    def on_undo(self) -> None:
        """It was only late."""
        self.packets = max(self.packets, self._before_timeout)

    def _rate(self) -> float:
        return self._rates[0][1] if self._rates else 0.0

    def _remember(self, rate: float) -> None:
        rates = self._rates
        while rates and rates[-1][1] <= rate:
            rates.pop()
        rates.append((self._round, rate))
        while rates[0][0] < self._round - REMEMBERED_ROUNDS:
            rates.popleft()

    def _look_for_growth(self) -> None:
        if self._rate() >= GROWING * self._best:
            self._best, self._poor_rounds = self._rate(), 0
            return
        self._poor_rounds += 1
        self._filled = self._poor_rounds >= PATIENCE_ROUNDS
