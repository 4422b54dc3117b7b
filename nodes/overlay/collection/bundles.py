"""Publications that wait for others which go to the same node, to leave as one message with them.

A bundle leaves when nobody is expected any more, when its time is over, or when it is full. The first one in it has
waited longest: its time counts.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field

from nodes.joined import LENGTH, MOST_PARTS, join
from nodes.wire import Message, encode

MOST_BYTES = 16 * 1024

Expecting = Callable[[str, Container[int], float, float], bool]


@dataclass(slots=True)
class _Bundle:
    """Of one topic, to one node."""

    opened: float
    publications: list[Message] = field(default_factory=list)
    origins: set[int] = field(default_factory=set)
    size: int = 0


class Bundles:
    """All of a node. `expecting` (topic, who is there, since, until): whether more is to come in this time."""

    def __init__(self, number: int, wait_s: float, expecting: Expecting) -> None:
        self._number = number
        self._wait_s = wait_s
        self._expecting = expecting
        self._open: dict[tuple[int, str], _Bundle] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, node: int, publication: Message, now: float) -> list[Message]:
        """It goes to this node; what must leave for there at once, because it is full."""
        out = []
        size = LENGTH.size + len(encode(publication))
        place = (node, publication.topic)
        bundle = self._open.get(place)
        if bundle is not None and (
            bundle.size + size > MOST_BYTES or len(bundle.publications) == MOST_PARTS
        ):
            out.append(self._taken(*place))
            bundle = None
        if size > MOST_BYTES:
            return [*out, publication]
        if bundle is None:
            bundle = self._open[place] = _Bundle(now)
        bundle.publications.append(publication)
        bundle.origins.add(publication.origin)
        bundle.size += size
        return out

    def leaving(self, now: float) -> list[tuple[int, Message]]:
        """What leaves now, and for where."""
        ready = []
        for (node, topic), bundle in self._open.items():
            until = bundle.opened + self._wait_s
            since = bundle.opened - self._wait_s
            if now >= until or not self._expecting(topic, bundle.origins, since, until):
                ready.append((node, topic))
        return [(node, self._taken(node, topic)) for node, topic in ready]

    def everything(self) -> list[tuple[int, Message]]:
        """All of it leaves now."""
        return [(node, self._taken(node, topic)) for node, topic in list(self._open)]

    def give_back(self, node: int) -> list[Message]:
        """This node is gone: what was to go there."""
        places = [place for place in self._open if place[0] == node]
        return [each for place in places for each in self._open.pop(place).publications]

    def next_deadline(self) -> float | None:
        return min((one.opened + self._wait_s for one in self._open.values()), default=None)

    def _taken(self, node: int, topic: str) -> Message:
        publications = self._open.pop((node, topic)).publications
        return publications[0] if len(publications) == 1 else join(publications, self._number)
