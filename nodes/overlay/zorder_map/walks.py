"""Walks of other brokers' interests through this one: noted here, passed on to the next owner, answered at the end.

A walk that comes to points that are owned here but not handed over yet waits for them.
"""

from collections.abc import Callable
from dataclasses import replace

from nodes.overlay.zorder_map.holdings import Holdings
from nodes.overlay.zorder_map.registry import Registry
from nodes.overlay.zorder_map.words import MapWord, Register, Registered

MOST_WAITING = 1024  # walks; more are not taken, and begun again by those who want them


class Walks:
    """One broker's part. `carry` passes a walk on, `tell` says a word to another broker."""

    def __init__(
        self,
        holdings: Holdings,
        registry: Registry,
        carry: Callable[[Register], None],
        tell: Callable[[int, MapWord], None],
    ) -> None:
        self._holdings = holdings
        self._registry = registry
        self._carry = carry
        self._tell = tell
        self._waiting: dict[Register, None] = {}

    def __bool__(self) -> bool:
        """Whether one waits."""
        return bool(self._waiting)

    def on_register(self, walk: Register, now: float) -> None:
        """It has come to its next point; WireError if it is about nothing that can be wanted."""
        stretch = self._holdings.accepts.stretch_at(walk.first)
        if stretch is None:
            if len(self._waiting) < MOST_WAITING:
                self._waiting[walk] = None
            return
        news = self._registry.note(walk.entry, now)
        late = walk.late or (news and walk.first in self._holdings.served)
        if walk.last <= stretch[1]:
            entry = walk.entry
            self._tell(entry.broker, Registered(walk.begin, walk.last, entry.version, late))
        else:
            self._carry(replace(walk, first=stretch[1] + 1, late=late))

    def go_on(self) -> None:
        """The map may have changed."""
        waiting, self._waiting = self._waiting, {}
        for walk in waiting:
            self._carry(walk)
