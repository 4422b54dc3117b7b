"""The edge of every overlay: a sensor or subscriber with one link, to whichever broker is its home just now.

Whenever the link comes up, it says again what it wants and what it is going to publish. A publication that comes
a second time is not delivered.

Without custody, what it publishes is sent to the home broker at most once, also while the link is down (the shell
keeps the queue). With custody (`Promises`) it is kept until the broker says TAKEN, and sent again on each link that
comes up before that; what it is handed itself it answers with TAKEN, also when it comes again. After a break it says
what it has, so that others can send what it missed; and it repeats what others took lately, so that the broker,
perhaps a new one, remembers it for those who missed it.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from nodes.overlay.base import (
    Action,
    Deliver,
    Drop,
    Duplicate,
    Note,
    Peer,
    Refuse,
    Send,
    Station,
    Taken,
)
from nodes.overlay.reliability import digest
from nodes.overlay.reliability.custody import has_custody, taken, taken_copy
from nodes.overlay.reliability.dedup import Heard, HeardLately, Seen
from nodes.overlay.reliability.heartbeat import ANSWER, QUESTION, Beats, beat
from nodes.overlay.reliability.outbox import Owed, TakenLately
from nodes.overlay.reliability.promises import Promises
from nodes.protocol.interests import parse
from nodes.protocol.wire import CUSTODY, MAX_SUBSCRIPTIONS, REPEATED, Kind, Message, WireError


class Edge:
    """A node that uses the overlay without being a broker of it."""

    def __init__(self, station: Station, promises: Promises, wanted: tuple[str, ...] = ()) -> None:
        """`wanted`: topics, or texts of other interests (`nodes.protocol.interests`)."""
        self._station = station
        self._promises = promises
        self._wanted = dict.fromkeys(wanted)  # an ordered set
        self._confirmed: set[str] = set()
        self._advertised: dict[str, None] = {}  # an ordered set
        self._home: Peer | None = None
        self._last_home = station.brokers[0].name
        self._again = False  # whether there was a link before
        self._beats = Beats(promises)
        self._owed = Owed()
        self._taken = TakenLately(promises.retain_s)
        self._seen = Seen()
        self._heard = HeardLately()

    @property
    def home(self) -> Peer | None:
        """The broker to which there is a link."""
        return self._home

    @property
    def owed(self) -> int:
        """Publications that nobody has taken yet."""
        return len(self._owed)

    def owes(self, message_id: int) -> bool:
        """Whether this publication is kept here until somebody takes it."""
        return message_id in self._owed

    @property
    def ready(self) -> bool:
        """The link is up and the broker has all subscriptions."""
        return self._home is not None and self._confirmed.issuperset(self._wanted)

    @property
    def left(self) -> bool:
        return not self._owed

    def leave(self, now: float) -> list[Action]:
        return []

    def describe(self) -> dict[str, Any]:
        return {"home": self._home, "owed": len(self._owed)}

    # What the application wants

    def publish(self, message: Message, now: float) -> list[Action]:
        """The application here has something to say."""
        self._will_publish(message.topic)
        if not self._promises.custody(message.priority):
            return self._send([message], now)
        message = replace(message, flags=message.flags | CUSTODY)
        kept, gone = self._owed.add(message)
        actions: list[Action] = [_gone(each, message.priority) for each in gone]
        if not kept:
            without = replace(message, flags=message.flags & ~CUSTODY)
            return [*actions, _unkept(message), *self._send([without], now)]
        if self._home is not None:
            self._owed.sent(message.message_id, now)
            actions += self._send([message], now)
        return actions

    def advertise(self, topics: Iterable[str], now: float) -> list[Action]:
        """The application is going to publish on these topics."""
        new = [topic for topic in dict.fromkeys(topics) if self._will_publish(topic)]
        return [] if self._home is None else self._send(self._advertisements(new), now)

    def restore(self, messages: Iterable[Message], now: float) -> list[Action]:
        """Before this node was started, it published these, and nobody has taken them."""
        return [action for message in messages for action in self.publish(message, now)]

    def repeat(self, messages: Iterable[Message], now: float) -> None:
        """Before this node was started, it published these, and they were taken: its broker may have forgotten them."""
        for message in messages:
            self._again = True
            self._will_publish(message.topic)
            self._taken.add(replace(message, flags=message.flags | CUSTODY), now)

    def resume(self, before: Iterable[Heard]) -> None:
        """This node was ready before it was started again, and had been handed these, the oldest first."""
        self._again = True
        for heard in before:
            self._seen.add(heard.message_id)
            if self._promises.custody(heard.level):
                self._heard.add(heard)

    # What happens to it

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        self._home = self._last_home = peer
        self._confirmed.clear()
        self._beats.up(peer, now)
        owed = self._owed.most_urgent_first()
        for message in owed:
            self._owed.sent(message.message_id, now)
        messages = [self._say(Kind.SUBSCRIBE, topic) for topic in self._wanted]
        if self._again:
            messages += self._what_was_missed(now)
        messages += self._advertisements(self._advertised)
        messages += owed
        if self._again:
            messages += [
                replace(message, flags=message.flags | REPEATED)
                for message in self._taken.newest(now)
            ]
        self._again = True
        return self._send(messages, now)

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        self._beats.down(peer)
        if peer == self._home:
            self._home = None
            self._confirmed.clear()
            self._owed.link_lost()
        return []

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        return []

    def on_life(self, peer: Peer, at: float) -> None:
        """Bytes came from the peer, or it acknowledged some: it lives, whether or not a whole message comes soon."""
        self._beats.heard(peer, at)

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        if peer != self._home:
            return []  # the link was given up before this came
        self._beats.heard(peer, now)
        match message.kind:
            case Kind.PUBLISH:
                return self._on_publication(message, now)
            case Kind.TAKEN:
                return self._on_taken(peer, message, now)
            case Kind.BEAT:
                return self._on_beat(peer, message, now)
            case Kind.SUBSCRIBED:
                if message.topic in self._wanted:
                    self._confirmed.add(message.topic)
            case Kind.ADVERTISED:
                pass  # what was published before waits at the broker
            case _:
                return [Refuse(peer, f"{message.kind.name} from a broker to a node at the edge")]
        return []

    def next_deadline(self) -> float | None:
        deadlines = (self._beats.next_deadline(), self._owed.next_deadline())
        return min((each for each in deadlines if each is not None), default=None)

    def on_deadline(self, now: float) -> list[Action]:
        ask, dead = self._beats.due(now)
        if dead:
            peer = dead[0]
            reason = f"nothing was heard from {peer} for too long"
            return [Drop(peer, reason), *self.on_link_down(peer, now)]
        messages = [beat(self._station.number, QUESTION) for _ in ask]
        return self._send([*messages, *self._owed.due(now)], now)

    # The rest

    def _on_publication(self, message: Message, now: float) -> list[Action]:
        custody = has_custody(message)
        new = message.message_id not in self._heard and self._seen.add(message.message_id)
        if custody and new:
            self._heard.add(Heard(message.message_id, message.topic, message.priority, now))
        actions: list[Action] = [Deliver(message) if new else Duplicate(message)]
        if custody:  # in this order: whoever hears TAKEN may rely on it that the application has it
            actions += self._send([taken(self._station.number, message)], now)
        return actions

    def _on_taken(self, peer: Peer, answer: Message, now: float) -> list[Action]:
        try:
            taken_copy(answer)
        except WireError as error:
            return [Refuse(peer, str(error))]
        message = self._owed.remove(answer.message_id)
        if message is None:
            return []
        self._taken.add(message, now)
        return [Taken(message.message_id)]

    def _on_beat(self, peer: Peer, message: Message, now: float) -> list[Action]:
        if message.payload == QUESTION and self._beats.must_answer(peer, now):
            return self._send([beat(self._station.number, ANSWER)], now)
        return []

    def _what_was_missed(self, now: float) -> list[Message]:
        """For each interest a question for what this node has not; that it has others of the topic does no harm."""
        if self._promises.custody_from is None:
            return []
        topics = {text: parse(text).topic for text in self._wanted}
        here = self._heard.since(now - self._promises.retain_s, topics.values())
        return [
            self._say(Kind.MISSED, text, digest.encode(here[topic]))
            for text, topic in topics.items()
        ]

    def _will_publish(self, topic: str) -> bool:
        """Whether that is news."""
        if topic in self._advertised or len(self._advertised) >= MAX_SUBSCRIPTIONS:
            return False
        self._advertised[topic] = None
        return True

    def _advertisements(self, topics: Iterable[str]) -> list[Message]:
        if not self._promises.advertise:
            return []
        return [self._say(Kind.ADVERTISE, topic) for topic in topics]

    def _say(self, kind: Kind, topic: str, payload: bytes = b"") -> Message:
        return Message(kind, origin=self._station.number, topic=topic, payload=payload)

    def _send(self, messages: Iterable[Message], now: float) -> list[Action]:
        peer = self._home or self._last_home
        actions: list[Action] = [Send(peer, message) for message in messages]
        if actions:
            self._beats.sent(peer, now)
        return actions


def _gone(message: Message, level: int) -> Note:
    reason = f"nobody had taken it, and it made room for a message of level {level}"
    return Note("drop", {"kind": message.kind.name, "reason": reason, **_about(message)})


def _unkept(message: Message) -> Note:
    reason = "too much waits to be taken; it goes out once and is not kept"
    return Note("overflow", {"reason": reason, **_about(message)})


def _about(message: Message) -> dict[str, object]:
    return {
        "id": f"{message.message_id:016x}",
        "topic": message.topic,
        "priority": message.priority,
    }
