"""Who stands at a broker's door: connections whose peer has not given its proof. Pure.

There is room for a number of them. When it is full, the newest takes the place of the one that has stood there for
longest among those from the address that has most: who comes with thousands takes the places of its own.
What is said of those who are turned away has its limit too, so that they cannot fill the disk.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

ROOM = 256  # a lab's nodes may all come at once
LINES_AT_ONCE = 100
LINES_PER_S = 1.0


Visitor = TypeVar("Visitor", bound=Hashable)


class Doorstep(Generic[Visitor]):
    """The visitors, by address, each address's longest waiting first."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._addresses: dict[Visitor, str] = {}
        self._visitors: dict[str, dict[Visitor, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, visitor: Visitor, address: str) -> Visitor | None:
        """Somebody comes; who has to go for it."""
        self._addresses[visitor] = address
        self._visitors.setdefault(address, {})[visitor] = None
        if len(self._addresses) <= self._room:
            return None
        crowd = max(self._visitors.values(), key=len)
        longest = next(iter(crowd))
        self.leave(longest)
        return longest

    def leave(self, visitor: Visitor) -> None:
        """It has given its proof, or is gone."""
        if (address := self._addresses.pop(visitor, None)) is None:
            return
        crowd = self._visitors[address]
        del crowd[visitor]
        if not crowd:
            del self._visitors[address]


class Complaints:
    """Which of many equal events are worth a line: some at once, then one a second."""

    def __init__(self) -> None:
        self._lines = float(LINES_AT_ONCE)
        self._at = 0.0
        self._unsaid = 0

    def worth_a_line(self, now: float) -> int | None:
        """How many went unsaid before this one, if this one is to be said."""
        self._lines = min(LINES_AT_ONCE, self._lines + (now - self._at) * LINES_PER_S)
        self._at = now
        if self._lines < 1:
            self._unsaid += 1
            return None
        self._lines -= 1
        unsaid, self._unsaid = self._unsaid, 0
        return unsaid
