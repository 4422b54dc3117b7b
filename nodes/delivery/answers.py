"""When the line is free, as the thesis finds out: the other side answers each chunk by UDP (Lee 2016, section 4).

One chunk is under way at a time. An answer may be lost, and the thesis' sender then waits for ever. Ours goes on when
the kernel has held nothing unacknowledged for `timeout_s`: then the chunk has arrived, and only its answer has not.
"""

NUMBERS = 256  # an answer is one byte


class AnsweredLine:
    """Free when the last chunk was answered."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._begin()

    def on_up(self, room: int, now: float) -> None:
        self._begin()

    def _begin(self) -> None:
        self._handed = 0
        self._answered: int | None = None
        self._looked = 0.0
        self._empty_since: float | None = None

    def free(self, now: float) -> bool:
        if self._handed == 0 or self._answered == self._last():
            return True
        return self._empty_since is not None and now >= self._empty_since + self._timeout_s

    def on_handed(self, size: int, at: float) -> None:
        self._handed += 1
        self._empty_since = None
        if self._answered != self._last():
            self._answered = None

    def on_unsent(self, unsent_bytes: int, now: float, round_trip_s: float | None) -> None:
        self._looked = now
        if unsent_bytes > 0:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now

    def on_answer(self, number: int, now: float) -> None:
        # It may come before the shell has said that its chunk left; any other is of a chunk that we gave up.
        if number in (self._last(), self._handed % NUMBERS):
            self._answered = number

    def look_at(self, waiting: bool) -> float | None:
        if not waiting:
            return None
        if self._empty_since is not None:
            return self._empty_since + self._timeout_s
        return self._looked + self._timeout_s / 4

    def _last(self) -> int:
        return (self._handed - 1) % NUMBERS
