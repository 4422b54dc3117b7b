"""Who is catching up on what, and when the publishers' brokers are asked for it.

They are asked more than once: a publisher that has moved to another broker may not be found at the first time. After
a peer was lost, the first question waits until the overlay has repaired itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from nodes.overlay.base import Peer
from nodes.overlay.broker.memory import Memory
from nodes.overlay.reliability import digest
from nodes.overlay.reliability.digest import MAX_DIGEST_BYTES, Digest
from nodes.protocol.interests import Interest, parse
from nodes.protocol.wire import Message

LATER_S = (10.0, 60.0)  # after the first question
LEAST_S = 1.0  # between two questions for a channel, however many guests come back at once
CATCHING_UP_S = 120.0


@dataclass(frozen=True, slots=True)
class _Wish:
    """An interest of a guest that has said what it has of it."""

    interest: Interest
    channel: str
    words: bytes
    has: Digest
    until: float


@dataclass(slots=True)
class _Guest:
    """A guest that is catching up, and what it was sent since."""

    wishes: dict[Interest, _Wish] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)

    def lacks(self, message: Message) -> bool:
        """Whether it wants this, has not said that it has it, and was not sent it since."""
        wanting = [wish for wish in self.wishes.values() if wish.interest.wants(message)]
        there = any(message.message_id in wish.has for wish in wanting)
        return bool(wanting) and not there and message.message_id not in self.sent


class CatchingUp:
    """The guests of a broker, and the broker itself for all of them. What a channel is: `guests.Subscriptions`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._guests: dict[Peer, _Guest] = {}
        self._asks: dict[str, list[float]] = {}  # channel -> moments
        self._asked: dict[str, float] = {}  # channel -> when last

    def begin(
        self, guest: Peer, interest: Interest, channel: str, words: bytes, now: float
    ) -> None:
        """The guest has what the words say; WireError if they say nothing."""
        wish = _Wish(interest, channel, words, digest.decode(words), now + CATCHING_UP_S)
        self._guests.setdefault(guest, _Guest()).wishes[interest] = wish
        self.ask(channel, now)

    def ask(self, channel: str, first: float) -> None:
        """From this moment on."""
        if channel in self._asked:
            first = max(first, self._asked[channel] + LEAST_S)
        self._asks[channel] = [first, *(first + later for later in LATER_S)]

    def forget(self, guest: Peer) -> None:
        self._guests.pop(guest, None)

    def stop(self, channel: str) -> None:
        """Nobody here wants anything of it any more."""
        self._asks.pop(channel, None)
        self._asked.pop(channel, None)

    def guests(self, channel: str, now: float) -> list[Peer]:
        """Who is catching up on the channel."""
        self._forget_old(now)
        return [
            peer
            for peer, guest in self._guests.items()
            if any(wish.channel == channel for wish in guest.wishes.values())
        ]

    def _forget_old(self, now: float) -> None:
        for peer, guest in list(self._guests.items()):
            for interest, wish in list(guest.wishes.items()):
                if wish.until <= now:
                    del guest.wishes[interest]
            if not guest.wishes:
                del self._guests[peer]

    def missing(self, peer: Peer, channel: str, now: float) -> list[Message]:
        """Of what is remembered, all that the guest wants and has not, and was not sent since."""
        guest = self._guests[peer]
        found: dict[int, Message] = {}
        for wish in guest.wishes.values():
            if wish.channel == channel:
                for message in self._memory.missing(wish.interest, wish.has, now):
                    found[message.message_id] = message
        return [message for message in found.values() if guest.lacks(message)]

    def lacking(self, message: Message, now: float) -> list[Peer]:
        """Those who are catching up, and have not got this yet."""
        self._forget_old(now)
        return [peer for peer, guest in self._guests.items() if guest.lacks(message)]

    def sent(self, peer: Peer, message: Message) -> None:
        """The guest is sent this; all the same if it is not catching up."""
        guest = self._guests.get(peer)
        if guest is not None and guest.lacks(message):
            guest.sent.add(message.message_id)

    def next_deadline(self) -> float | None:
        return min((moments[0] for moments in self._asks.values()), default=None)

    def due(self, now: float) -> Iterator[str]:
        """Channels to ask for now."""
        for channel, moments in list(self._asks.items()):
            if moments[0] <= now:
                self._asks[channel] = [moment for moment in moments if moment > now]
                if not self._asks[channel]:
                    del self._asks[channel]
                yield channel

    def asked(self, channel: str, now: float) -> None:
        """The publishers' brokers were asked."""
        self._asked[channel] = now

    def words(self, channel: str, subscriptions: int, now: float) -> bytes:
        """What need not be sent: what is remembered here; and what a guest has, if that is the only subscription."""
        own = digest.encode(self._memory.ids(parse(channel), now))
        those = [
            wish.words
            for guest in self._guests.values()
            for wish in guest.wishes.values()
            if wish.channel == channel
        ]
        fits = len(those) == subscriptions == 1 and len(own) + len(those[0]) <= MAX_DIGEST_BYTES
        return own + those[0] if fits else own
