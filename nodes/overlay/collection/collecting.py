"""Readings of many sensors to one collector, over a Skip Graph in the order of their periods (Kawakami 2016).

Rules. A broker stands among the publishers of a topic by the period of its guests, which it learns from what they
publish (`rhythm`); whoever subscribes stands behind them, and the first of those is the collector. A reading goes from
broker to broker by the rule of the collection (`rules`), and readings for the same next broker leave as one message
(`bundles`). The collector delivers it and passes it on to other subscribers, by multicast from where it stands. Where
the way is not known (a broker that has left, dead neighbours) the multicast of SG-TBPS serves instead: it finds it.

An alert does not wait for readings: what has custody, or is of level 4 or 5, travels alone, at once, and as in SG-TBPS.
"""

from collections.abc import Container, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from nodes.joined import apart
from nodes.overlay.collection.bundles import Bundles
from nodes.overlay.collection.courses import (
    Answer,
    ReadingWord,
    Toward,
    course_of,
    hear,
    is_reading_word,
    say,
)
from nodes.overlay.collection.keys import publisher_key
from nodes.overlay.collection.settings import PARAMETERS, Way, settings
from nodes.overlay.collection.stream import Stream
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.tbps.base import Action, Place, Refuse, Send
from nodes.overlay.tbps.keys import Role, edge, stands_in
from nodes.overlay.tbps.letters import read
from nodes.overlay.tbps.sg import SgTbps
from nodes.overlay.tbps.topic import Topic
from nodes.overlay.tbps.words import Word
from nodes.wire import CUSTODY, Kind, Message, WireError

ALONE_FROM = 4  # levels that never wait
MOST_HOPS = 200  # then the way goes in circles, or nearly so


def travels_alone(publication: Message) -> bool:
    """Whether it is none of the readings that wait for others."""
    return bool(publication.flags & CUSTODY) or publication.priority >= ALONE_FROM


class Collecting(SgTbps):
    """A node that passes readings on as they come."""

    method = "collection"
    more_parameters = (*SgTbps.more_parameters, *PARAMETERS)

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._settings = settings(self.method, parameters)
        self._rule = self._settings.rule
        self._now = 0.0
        self._bundles = Bundles(self.number, self._settings.wait_s, self._expecting)

    # What the node wants

    def publish(self, message: Message, now: float) -> list[Action]:
        self._now = now
        stream = self._stream(message.topic)
        if stream is not None and not travels_alone(message):
            stream.own.heard(message.origin, message.published_ns, now)
            if stream.learn_period(now):
                self._settle_keys(stream, now)
        return super().publish(message, now)

    def leave(self, now: float) -> list[Action]:
        self._now = now
        out = [Send(node, message) for node, message in self._bundles.everything()]
        return [*out, *super().leave(now)]

    @property
    def left(self) -> bool:
        return super().left and not self._bundles

    def serve_again(self, message: Message, now: float) -> list[Action]:
        if isinstance(course_of(message), Toward | Answer):
            self._find_way_again(message, now)
            return self._done()
        return super().serve_again(message, now)

    # What happens

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        self._now = now
        try:
            if message.kind is Kind.JOINED:
                for publication in apart(message):
                    self._on_publication(sender, publication, now)
            elif course_of(message) is not None:
                self._on_publication(sender, message, now)
            else:
                return super().on_message(sender, message, now)
        except WireError as error:
            self._out.append(Refuse(sender, str(error)))
        return self._done()

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        self._now = now
        out = super().on_peer_lost(number, now)
        for stream in self._streams():
            if stream.collector == number:
                stream.collector = None
        for publication in self._bundles.give_back(number):
            out += self.serve_again(publication, now)
        return out

    def next_deadline(self) -> float | None:
        moments = (super().next_deadline(), self._bundles.next_deadline())
        return min((at for at in moments if at is not None), default=None)

    def on_deadline(self, now: float) -> list[Action]:
        self._now = now
        return super().on_deadline(now)

    def _done(self) -> list[Action]:
        self._out += [Send(node, message) for node, message in self._bundles.leaving(self._now)]
        return super()._done()

    # Keys

    def _new_topic(self, name: str) -> Topic:
        return Stream(name)

    def _stream(self, topic: str) -> Stream | None:
        state = self._topics.get(topic)
        return state if isinstance(state, Stream) else None

    def _streams(self) -> list[Stream]:
        return [state for state in self._topics.values() if isinstance(state, Stream)]

    def _key(self, state: Topic, role: Role) -> bytes:
        if role is Role.SUBSCRIBER or not isinstance(state, Stream):
            return super()._key(state, role)
        return publisher_key(state.name, state.period, self.number, self._settings.order)

    # Readings on their way

    def _multicast(self, message: Message, now: float) -> None:
        if travels_alone(message):
            super()._multicast(message, now)
        else:
            self._go_on(message, Toward(self.number), now)

    def _on_publication(self, sender: int, publication: Message, now: float) -> None:
        """One has come, perhaps together with others."""
        course = course_of(publication)
        if course is None:
            self._act(self.graph.on_message(sender, read(publication), now), now)
        elif travels_alone(publication):
            raise WireError(f"a publication of level {publication.priority} on a reading's way")
        else:
            self._on_reading(sender, replace(publication, routing=b""), course, now)

    def _on_reading(
        self, sender: int, reading: Message, course: Toward | Answer, now: float
    ) -> None:
        origin = course.origin if isinstance(course, Toward) else sender
        if self._settings.way is Way.SERVER:
            self._say_who_collects(sender, origin, reading.topic, now)
        self._go_on(reading, Toward(origin), now)

    def _go_on(self, reading: Message, course: Toward, now: float) -> None:
        """The next step of a reading from here."""
        stream = self._stream(reading.topic)
        if stream is None or not stream.keys or reading.hops > MOST_HOPS:
            super()._multicast(reading, now)
            return
        stream.rhythm.heard(reading.origin, reading.published_ns, now)
        if Role.SUBSCRIBER in stream.keys:
            super()._multicast(reading, now)
            return
        stop = self._next_stop(stream, course)
        if stop is not None:
            self._pass_on(stop, reading, course)
        elif self._rendezvous(stream) is not False:
            super()._multicast(reading, now)
        elif course.origin == self.number:
            self._look(stream, now)
        else:
            self._tell(course.origin, Word.STOP, reading.topic, now)

    def _next_stop(self, stream: Stream, course: Toward) -> int | None:
        """The node to which a reading goes from here; None: no link leads on."""
        collector = stream.collector
        if collector is not None and course.origin == self.number:
            return collector
        peer = self.graph.peer(stream.keys[Role.PUBLISHER])
        if peer is None or not peer.in_ring:
            return None
        links = {one.key: one for one in peer.neighbours() if self._is_stop(one, stream.name)}
        beyond = edge(stream.name, Role.SUBSCRIBER)
        goal = min((key for key in links if key >= beyond), default=beyond)
        stop = self._rule.next_stop(peer.key, goal, links)
        return None if stop is None else links[stop].node

    def _is_stop(self, contact: Contact, topic: str) -> bool:
        own = contact.node == self.number
        takes_part = any(stands_in(contact.key, topic, role) for role in Role)
        return takes_part and not own and not self.graph.suspects(contact.node)

    def _pass_on(self, node: int, reading: Message, course: Toward | Answer) -> None:
        self._dispatch(node, replace(reading.forwarded(), routing=course.written()))

    def _dispatch(self, node: int, message: Message) -> None:
        """Everything that leaves; readings may wait for others."""
        if (
            not self._settings.aggregate
            or message.kind is not Kind.PUBLISH
            or travels_alone(message)
        ):
            super()._dispatch(node, message)
        else:
            self._out += [Send(node, each) for each in self._bundles.add(node, message, self._now)]

    def _find_way_again(self, message: Message, now: float) -> None:
        """It should have gone to a node that is dead."""
        course = course_of(message)
        origin = course.origin if isinstance(course, Toward) else self.number
        unsent = replace(message, routing=b"", hops=message.hops - 1)
        self._go_on(unsent, Toward(origin), now)

    def _expecting(self, topic: str, there: Container[int], since: float, until: float) -> bool:
        stream = self._stream(topic)
        return stream is not None and stream.rhythm.expects(there, since, until, self._now)

    # Directly to the collector

    def _say_who_collects(self, sender: int, origin: int, topic: str, now: float) -> None:
        """To a broker whose reading has come the long way, or to the wrong one."""
        stream = self._stream(topic)
        collects = stream is not None and Role.SUBSCRIBER in stream.keys
        if origin != self.number and collects != (sender == origin):
            word = ReadingWord.HERE if collects else ReadingWord.NOT_HERE
            self._act(self.graph.tell(origin, say(word, topic), now), now)

    def _on_event(self, event: graph.Event, now: float) -> None:
        match event:
            case graph.Told(sender, body) if is_reading_word(body):
                self._hear_reading_word(sender, *hear(body))
            case _:
                super()._on_event(event, now)

    def _hear_reading_word(self, sender: int, word: ReadingWord, what: str | Answer) -> None:
        if isinstance(what, Answer) or (stream := self._stream(what)) is None:
            return
        if word is ReadingWord.HERE:
            stream.collector = sender
        elif word is ReadingWord.NOT_HERE and stream.collector == sender:
            stream.collector = None
