"""What goes up to a topic's root: questions for it (Look), and publications that came to a node that is not it.

While the next hop is not known, they are held.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from nodes.overlay.tbps.compass import Bearing
from nodes.overlay.tbps.scribe_words import Look, Root, ScribeWord
from nodes.wire import Message

MOST_HELD = 256  # the oldest are forgotten
MOST_HOPS = 255


class Climbing:
    """A node's part in it. `heading` tells the next node to a topic's root, `send` passes a publication on to it."""

    def __init__(
        self,
        heading: Callable[[str], int | Bearing],
        tell: Callable[[int, ScribeWord], None],
        send: Callable[[int, Message], None],
    ) -> None:
        self._heading = heading
        self._tell = tell
        self._send = send
        self._held: deque[Look | Message] = deque(maxlen=MOST_HELD)

    def __bool__(self) -> bool:
        """Whether something is held."""
        return bool(self._held)

    def climb(self, one: Look | Message) -> None:
        """One hop up, if this node is not the root."""
        heading = self._heading(one.topic)
        if heading is Bearing.UNKNOWN:
            if one not in self._held:
                self._held.append(one)
        elif isinstance(one, Message):
            if isinstance(heading, int):
                self._send(heading, one)
        elif heading is Bearing.HERE:
            self._tell(one.asker, Root(one.topic))
        elif isinstance(heading, int) and one.hops < MOST_HOPS:
            self._tell(heading, replace(one, hops=one.hops + 1))

    def go_on(self) -> None:
        """With what was held."""
        held, self._held = self._held, deque(maxlen=MOST_HELD)
        for one in held:
            self.climb(one)
