"""Topics that a node of Scribe publishes: their roots, found and remembered, and what waits until they are known."""

from collections.abc import Callable
from dataclasses import dataclass, field

from nodes.overlay.topics.waiting import Waiting
from nodes.protocol.wire import Message

UNANSWERED = 3  # ticks, then the root that is known is not asked, but looked for
MOST_WAITING = 64  # publications without custody, of a topic whose root is not known


@dataclass(slots=True)
class Source:
    """One of them."""

    root: int | None = None
    told: bool = False  # that the root is known
    unanswered: int = 0  # ticks since the root was asked whether it still is
    waiting: Waiting = field(default_factory=lambda: Waiting(MOST_WAITING))


class Sources:
    """All of a node. `look` sends for a topic's root, of which the last one may be known; `send` publishes to it,
    `confirm` hears that it is known.
    """

    def __init__(
        self,
        look: Callable[[str, int | None], None],
        send: Callable[[int, Message], None],
        confirm: Callable[[str], None],
    ) -> None:
        self._look = look
        self._send = send
        self._confirm = confirm
        self._sources: dict[str, Source] = {}

    def __bool__(self) -> bool:
        return bool(self._sources)

    def advertise(self, topic: str) -> None:
        source = self._sources.setdefault(topic, Source())
        source.told = False
        if source.root is None:
            self._look(topic, None)
        else:
            self.on_root(source.root, topic)

    def withdraw(self, topic: str) -> None:
        self._sources.pop(topic, None)

    def leave(self) -> None:
        """Nothing is published here any more."""
        self._sources.clear()

    def waiting(self) -> list[Message]:
        """What waits until a root is known."""
        return [entry.message for source in self._sources.values() for entry in source.waiting]

    def publish(self, message: Message, now: float) -> None:
        """To the root, as soon as it is known; ValueError if the topic is not advertised."""
        source = self._sources.get(message.topic)
        if source is None:
            raise ValueError(f"topic {message.topic!r} is not advertised here; advertise it first")
        if source.root is None:
            source.waiting.append(message, now)
        else:
            self._send(source.root, message)

    def on_root(self, node: int, topic: str) -> None:
        source = self._sources.get(topic)
        if source is None:
            return
        source.root, source.unanswered = node, 0
        if not source.told:
            source.told = True
            self._confirm(topic)
        while source.waiting:
            self._send(node, source.waiting.popleft().message)

    def forget_node(self, number: int) -> None:
        """It is dead."""
        for source in self._sources.values():
            if source.root == number:
                source.root = None

    def tick(self, renew: bool) -> None:
        """Look for roots that are not known; for all, if it is time to renew."""
        for topic, source in self._sources.items():
            late = source.unanswered >= UNANSWERED
            if renew or late or source.root is None:
                self._look(topic, None if late else source.root)
            if renew or source.unanswered:
                source.unanswered += 1
