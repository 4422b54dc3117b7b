"""Virtual time: what is to happen, in the order of its moments. No clock, no sleep; nothing random.

Moments are whole nanoseconds. What was planned first happens first, if two things have the same moment: the same plan
always runs the same way.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

SECOND = 10**9

Call = Callable[[Any], object]


class Loop:
    """The event queue, and its time."""

    def __init__(self) -> None:
        self.now = 0
        self.happened = 0  # events so far
        self._plan: list[tuple[int, int, Call, Any]] = []
        self._planned = 0

    @property
    def seconds(self) -> float:
        """The time as cores want it."""
        return self.now / SECOND

    @property
    def idle(self) -> bool:
        """Whether nothing is planned any more."""
        return not self._plan

    def at(self, moment: int, call: Call, argument: Any = None) -> None:
        """Plan `call(argument)`; a moment that is over means: as soon as possible."""
        self._planned += 1
        heappush(self._plan, (max(moment, self.now), self._planned, call, argument))

    def run(self, until: int, stop: Callable[[], bool] | None = None) -> bool:
        """Run all events up to this moment, inclusive. Whether `stop` returned true after one of them.

        Afterwards it is `until`, unless it was stopped: then it is the moment of what happened last.
        """
        plan = self._plan
        while plan and plan[0][0] <= until:
            self.now, _, call, argument = heappop(plan)
            self.happened += 1
            call(argument)
            if stop is not None and stop():
                return True
        self.now = max(self.now, until)
        return False


class Timer:
    """A call at a moment that often changes: an earlier planned event passes without effect."""

    def __init__(self, loop: Loop, call: Callable[[], object]) -> None:
        self._loop = loop
        self._call = call
        self._due: int | None = None
        self._planned: int | None = None  # the earliest moment at which `_on_due` will be called

    def set(self, due: int | None) -> None:
        """Set the moment of the call; None: no call."""
        self._due = due
        if due is not None and (self._planned is None or due < self._planned):
            self._planned = max(due, self._loop.now)
            self._loop.at(self._planned, self._on_due, self._planned)

    def _on_due(self, planned: int) -> None:
        if planned == self._planned:
            self._planned = None
        if self._due is None:
            return
        if self._due <= self._loop.now:
            self._due = None
            self._call()
        else:
            self.set(self._due)
