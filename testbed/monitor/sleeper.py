"""How late an ordinary process is woken: it should be woken at fixed times, and sees when it really was.

A process that is held up for 100 ms misses ten of its times, and each of them counts: otherwise one long delay would be
one sample among hundreds, although a tenth of a second's messages would have had to wait.
"""

from dataclasses import dataclass

MOST_MISSED = 6000  # times; what was held up longer counts as this


@dataclass(slots=True)
class Sleeper:
    """Times at a fixed distance; the clock is an argument."""

    due_ns: int  # when it wants to be woken next
    period_ns: int

    def woke(self, now_ns: int) -> list[int]:
        """The delays of all times that have passed, the oldest first; then it sleeps until the next."""
        passed = (now_ns - self.due_ns) // self.period_ns + 1
        if passed <= 0:
            return []
        oldest = now_ns - self.due_ns
        self.due_ns += passed * self.period_ns
        return [oldest - missed * self.period_ns for missed in range(min(passed, MOST_MISSED))]
