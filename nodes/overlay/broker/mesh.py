"""A broker among others: its guests on one side, a topic method between brokers (`TopicNode`) on the other.

Rules. A guest's subscription is confirmed when the overlay's stands; it goes with the guest. An advertisement stays for
a while (`attending`). What is delivered here goes to the guests that want it, one hop older, not back to where it came
from. A publication with custody is a duty (`duties`) until all to whom it was passed on have answered; if one of them
cannot be reached, the overlay serves by another way whom that one should have served. Who comes back, or has
lost a peer, asks for what it has missed (`catching_up`); everybody answers from his own `memory` (`carrying`).
A link to another broker that breaks is tried again at once, by a beat: then either it stands, and what was not answered
is sent again over it, or the other is lost.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Action, Drop, Note, Peer, Refuse, Send, Station
from nodes.overlay.broker import anchor
from nodes.overlay.broker.anchor import Anchor, is_seed
from nodes.overlay.broker.apart import Apart
from nodes.overlay.broker.duties import Copy
from nodes.overlay.broker.joining import of_the_node, topic_node
from nodes.overlay.reliability.custody import taken_copy
from nodes.overlay.reliability.heartbeat import ANSWER, FOUND, QUESTION, Beats, awaits_answer, beat
from nodes.overlay.reliability.promises import promises
from nodes.overlay.skipgraph.node import PERIOD_S
from nodes.overlay.topics import base as topics
from nodes.overlay.topics.base import TopicNodeFactory
from nodes.overlay.topics.sg import HOLD_S
from nodes.protocol.interests import is_plain
from nodes.protocol.wire import REPEATED, Kind, Message, WireError

LINGER_S = 60.0
REPAIR_PERIODS = 3  # after a peer was lost, before others are asked for what was missed


class Mesh(Apart):
    """A broker's part of an overlay of many brokers, with any topic method."""

    def __init__(
        self,
        method: str,
        make_node: TopicNodeFactory,
        station: Station,
        parameters: Mapping[str, Any],
        random: Random,
        linger_s: float = LINGER_S,
    ) -> None:
        own = promises(method, parameters)
        others = of_the_node(parameters)
        node = topic_node(make_node, station, parameters, random)
        repair_s = REPAIR_PERIODS * float(others.get("period_s", PERIOD_S))
        by_area = make_node.by_area
        super().__init__(station, node, by_area, linger_s, own.retain_s, repair_s, random)
        self._hold_s = float(others.get("hold_s", HOLD_S))
        self._anchor = Anchor(station.number, is_seed(station))
        self._beats = Beats(own)
        self._leaving = False

    @property
    def ready(self) -> bool:
        """Whether it stands in the overlay, if others may join through it, and so does all that its guests want."""
        return self._anchor.standing and super().ready

    @property
    def left(self) -> bool:
        return self._leaving and self._node.left and not self._duties

    def leave(self, now: float) -> list[Action]:
        self._now = now
        self._leaving = True
        self._waiting.clear()
        self._goes.clear()  # nothing is published from here any more, not even again
        self._duties.drop_held(self._node.holds)
        self._perform(self._node.leave(now))
        return self._done()

    def describe(self) -> dict[str, Any]:
        return {
            "graph": self._node.describe(),
            "duties": len(self._duties),
            "remembered": len(self._memory),
        }

    # Links

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        self._now = now
        self._up.add(peer)
        self._stopped.discard(peer)
        self._beats.up(peer, now)
        again = self._duties.cut_copies(peer, now)
        self._out += [Send(peer, message) for message in again]
        if again:
            self._out.append(Note("resent", {"peer": peer, "messages": len(again)}))
        if peer in self._numbers:
            self._find(peer)
        return self._done()

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        self._now = now
        if peer in self._up:
            if stopping:
                self._stopped.add(peer)
            self._link_down(peer, orderly)
        return self._done()

    def _link_down(self, peer: Peer, orderly: bool) -> None:
        self._up.discard(peer)
        self._beats.down(peer)
        if peer not in self._numbers:
            self._guest_gone(peer)
        elif not orderly:
            self._duties.on_cut(peer)
            self._out.append(Send(peer, beat(self._number, QUESTION)))

    def on_life(self, peer: Peer, at: float) -> None:
        """Bytes came from the peer, or it acknowledged some: it lives, whether or not a whole message comes soon."""
        self._beats.heard(peer, at)

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        number = self._numbers.get(peer)
        if number is None or peer in self._up:
            return []
        self._now = now
        if not self._lose(peer):
            return self._done()
        self._perform(self._node.on_peer_lost(number, now))
        unanswered = self._duties.take_from(peer)
        for duty, message in unanswered:
            if message.routing:
                self._because(duty, self._node.serve_again(message, now))
        if unanswered:
            self._out.append(Note("served-again", {"peer": peer, "messages": len(unanswered)}))
        return self._done()

    # Time

    def next_deadline(self) -> float | None:
        moments = (
            self._anchor.next_deadline(),
            self._node.next_deadline(),
            self._duties.next_deadline(),
            self._beats.next_deadline(),
            self._lingering.next_deadline(),
            self._catching_up.next_deadline(),
            self._lost.next_deadline(),
            self._calling.next_deadline(),
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def on_deadline(self, now: float) -> list[Action]:
        self._now = now
        if self._anchor.due():
            self._perform(self._node.subscribe(anchor.TOPIC, now))
        self._watch_links()
        self._watch_duties()
        self._withdraw()
        self._ask_again()
        self._go_on()
        self._call_others()
        self._perform(self._node.on_deadline(now))
        return self._done()

    def _watch_links(self) -> None:
        due = self._beats.due(self._now)
        self._out += [Send(peer, beat(self._number, QUESTION)) for peer in due.ask]
        for peer in due.dead:
            self._out.append(Drop(peer, "silent for too long"))
            self._link_down(peer, orderly=False)

    def _watch_duties(self) -> None:
        due = self._duties.due(self._now)
        for peer, message in due.again:
            self._out.append(Send(peer, message))
            self._out.append(Note("resent", {"peer": peer, "messages": 1}))
        self._out += [Note("given-up", {"id": f"{identity:016x}"}) for identity in due.given_up]

    # Messages

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        self._now = now
        self._beats.heard(peer, now)
        number = self._numbers.get(peer)
        try:
            if message.kind is Kind.TAKEN:
                self._duties.on_taken(Copy(peer, message.message_id, taken_copy(message)))
            elif message.kind is Kind.BEAT:
                self._on_beat(peer, message)
            elif number is not None:
                self._on_broker(peer, number, message)
            elif not self._leaving:
                self._on_guest(peer, message)
        except WireError as error:
            self._out.append(Refuse(peer, str(error)))
        return self._done()

    def _on_beat(self, peer: Peer, message: Message) -> None:
        if message.payload == FOUND and peer in self._numbers:
            self._be_found(peer)
        elif message.payload not in (QUESTION, ANSWER):
            raise WireError("a BEAT that is neither question nor answer")
        if message.payload == QUESTION and self._beats.must_answer(peer, self._now):
            self._out.append(Send(peer, beat(self._number, ANSWER)))

    def _on_broker(self, peer: Peer, number: int, message: Message) -> None:
        match message.kind:
            case Kind.OVERLAY:
                if not self._anchor.keep_waiting(number, message):
                    self._perform(self._node.on_message(number, message, self._now))
            case Kind.PUBLISH if message.routing:
                self._on_part(peer, number, message)
            case Kind.PUBLISH if message.flags & REPEATED:
                self._on_repeated(peer, message)
            case Kind.JOINED:
                self._perform(self._node.on_message(number, message, self._now))
            case _:
                raise WireError(f"{message.kind.name} has no place between brokers")

    def _on_guest(self, guest: Peer, message: Message) -> None:
        if message.routing:
            raise WireError("routing in a guest's message; only brokers route")
        if message.topic.endswith(anchor.TOPIC):  # an interest ends in its topic
            raise WireError(f"topic {message.topic!r}, which belongs to the brokers")
        if message.kind in (Kind.PUBLISH, Kind.ADVERTISE) and not is_plain(message.topic):
            raise WireError(f"{message.kind.name} of {message.topic!r}, which is no topic")
        match message.kind:
            case Kind.PUBLISH if message.flags & REPEATED:
                self._advertise(guest, message.topic)
                self._on_repeated(guest, message)
            case Kind.PUBLISH:
                self._on_publication(guest, message)
            case Kind.SUBSCRIBE:
                self._subscribe(guest, message.topic)
            case Kind.UNSUBSCRIBE:
                self._unsubscribe(guest, message.topic)
            case Kind.ADVERTISE:
                self._on_advertise(guest, message.topic)
            case Kind.MISSED:
                self._on_missed(guest, message)
            case _:
                raise WireError(f"{message.kind.name} has no place on an open link")

    # What the topic method wants

    def _perform(self, actions: list[topics.Action]) -> None:
        for action in actions:
            match action:
                case topics.Send(number, message):
                    self._send(number, message)
                case topics.Deliver(message):
                    self._deliver(message)
                case topics.Withheld(message):
                    self._withheld(message, self._now + self._hold_s)
                case topics.Subscribed(anchor.TOPIC):
                    for number, message in self._anchor.stands():
                        self._perform(self._node.on_message(number, message, self._now))
                case topics.Subscribed(topic):
                    self._subscribed(topic)
                case topics.Advertised(topic):
                    self._advertised(topic)
                case topics.Restored(topic):
                    self._restored(topic, self._after_repair())
                case topics.Doubted(number):
                    self._doubt(number)
                case topics.Refuse(number) | topics.Asked(number) if number in self._names:
                    self._meet(self._names[number], action)

    def _send(self, number: int, message: Message) -> None:
        peer = self._names.get(number)
        if peer is None:
            return  # nobody has such a number; the overlay finds out that it does not answer
        self._called.discard(peer)
        self._out.append(Send(peer, message))
        self._pass(peer, message, self._cause)

    def _meet(self, peer: Peer, action: topics.Refuse | topics.Asked) -> None:
        """Another broker wants something that is the mesh's own affair."""
        if isinstance(action, topics.Refuse):
            self._out.append(Refuse(peer, action.reason))
        else:
            self._answer(peer, action)

    def _doubt(self, number: int) -> None:
        """The topic method wants to know whether this broker lives: it is asked, or dialled."""
        peer = self._names.get(number)
        if peer is None:
            self._perform(self._node.on_peer_lost(number, self._now))
        else:
            self._called.discard(peer)
            self._out.append(Send(peer, beat(self._number, QUESTION)))

    def _done(self) -> list[Action]:
        """What is to be done; duties that are over are answered."""
        self._keep_back()
        answers = self._duties.close(self._node.holds)
        self._out += [Send(peer, answer) for peer, answer in answers]
        out, self._out = self._out, []
        for action in out:
            if isinstance(action, Send):
                awaits = awaits_answer(action.message)
                self._beats.sent(action.peer, self._now, awaits=awaits)
        return out
