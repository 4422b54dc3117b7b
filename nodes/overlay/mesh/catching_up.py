"""Who is catching up on what, and when the publishers' brokers are asked for it.

They are asked more than once: a publisher that has moved to another broker may not be found at the first time. After
a peer was lost, the first question waits until the overlay has repaired itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from nodes.overlay import digest
from nodes.overlay.base import Peer
from nodes.overlay.digest import MAX_DIGEST_BYTES, Digest
from nodes.overlay.mesh.memory import Memory
from nodes.wire import Message

LATER_S = (10.0, 60.0)  # after the first question
LEAST_S = 1.0  # between two questions for a topic, however many guests come back at once
CATCHING_UP_S = 120.0


@dataclass(slots=True)
class _Guest:
    """A guest that has said what it has."""

    words: bytes
    has: Digest
    until: float
    sent: set[int] = field(default_factory=set)


class CatchingUp:
    """The guests of a broker, and the broker itself for all of them."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._guests: dict[tuple[Peer, str], _Guest] = {}
        self._asks: dict[str, list[float]] = {}  # topic -> moments
        self._asked: dict[str, float] = {}  # topic -> when last

    def begin(self, guest: Peer, topic: str, words: bytes, has: Digest, now: float) -> None:
        """The guest has what the words say."""
        self._guests[guest, topic] = _Guest(words, has, now + CATCHING_UP_S)
        self.ask(topic, now)

    def ask(self, topic: str, first: float) -> None:
        """From this moment on."""
        if topic in self._asked:
            first = max(first, self._asked[topic] + LEAST_S)
        self._asks[topic] = [first, *(first + later for later in LATER_S)]

    def forget(self, guest: Peer) -> None:
        self._guests = {pair: one for pair, one in self._guests.items() if pair[0] != guest}

    def stop(self, topic: str) -> None:
        """Nobody here wants the topic any more."""
        self._asks.pop(topic, None)
        self._asked.pop(topic, None)

    def guests(self, topic: str, now: float) -> list[Peer]:
        """Who is catching up on the topic."""
        self._guests = {pair: one for pair, one in self._guests.items() if one.until > now}
        return [guest for guest, name in self._guests if name == topic]

    def missing(self, guest: Peer, topic: str, now: float) -> list[Message]:
        """Of what is remembered, all that the guest has not, and was not sent since."""
        one = self._guests[guest, topic]
        found = self._memory.missing(topic, one.has, now)
        return [message for message in found if message.message_id not in one.sent]

    def lacks(self, guest: Peer, message: Message) -> bool:
        """Whether the guest, which is catching up, has not said that it has this, and was not sent it since."""
        one = self._guests[guest, message.topic]
        return message.message_id not in one.has and message.message_id not in one.sent

    def sent(self, guest: Peer, message: Message) -> None:
        """The guest is sent this; all the same if it is not catching up."""
        if (one := self._guests.get((guest, message.topic))) is not None:
            one.sent.add(message.message_id)

    def next_deadline(self) -> float | None:
        return min((moments[0] for moments in self._asks.values()), default=None)

    def due(self, now: float) -> Iterator[str]:
        """Topics to ask for now."""
        for topic, moments in list(self._asks.items()):
            if moments[0] <= now:
                self._asks[topic] = [moment for moment in moments if moment > now]
                if not self._asks[topic]:
                    del self._asks[topic]
                self._asked[topic] = now
                yield topic

    def words(self, topic: str, now: float) -> bytes:
        """What need not be sent: what is remembered here; and what a guest has, if only one is catching up."""
        own = digest.encode(self._memory.ids(topic, now))
        those = [one.words for (_, name), one in self._guests.items() if name == topic]
        fits = len(those) == 1 and len(own) + len(those[0]) <= MAX_DIGEST_BYTES
        return own + those[0] if fits else own
