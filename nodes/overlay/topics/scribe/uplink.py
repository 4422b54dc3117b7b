"""What goes up to a topic's root, node by node; while the next one is not known, it is held."""

from collections.abc import Callable, Iterator

from nodes.overlay.topics.scribe.routing import Bearing
from nodes.protocol.scribe_messages import Look, Question
from nodes.protocol.wire import CUSTODY, Message

MOST_HELD = 256  # besides publications with custody; the oldest are forgotten
Climber = (
    Look | Question | Message
)  # questions for the root or to it, and publications that came to another node


class Climbing:
    """A node's part in it: `heading` tells the next node to a topic's root, `onward` sends to it, `arrive` is there."""

    def __init__(
        self,
        heading: Callable[[str], int | Bearing],
        onward: Callable[[int, Climber], None],
        arrive: Callable[[Climber], None],
    ) -> None:
        self._heading = heading
        self._onward = onward
        self._arrive = arrive
        self._held: dict[Climber, None] = {}

    def __bool__(self) -> bool:
        """Whether something is held."""
        return bool(self._held)

    def __iter__(self) -> Iterator[Climber]:
        """What is held."""
        return iter(self._held)

    def climb(self, one: Climber) -> None:
        """One hop up, if this node is not the root."""
        heading = self._heading(one.topic)
        if isinstance(heading, int):
            self._onward(heading, one)
        elif heading is Bearing.HERE:
            self._arrive(one)
        elif one not in self._held:
            self._held[one] = None
            others = [each for each in self._held if not _has_custody(each)]
            if len(others) > MOST_HELD:
                del self._held[others[0]]

    def go_on(self) -> None:
        """With what was held."""
        held, self._held = self._held, {}
        for one in held:
            self.climb(one)


def _has_custody(one: Climber) -> bool:
    return isinstance(one, Message) and bool(one.flags & CUSTODY)
