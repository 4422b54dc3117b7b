"""The whole of a collection's node: readings that are sent as they come, and those that the collector asks for.

Pull (SFB in Kawakami 2016): the first subscriber asks all publishers each `pull_s` seconds, by a multicast from where
it stands to the beginning of the topic's stretch. Each publisher keeps its readings until it is asked. It answers whom
it has the question from, together with the answers of those to whom it passed the question on (`Rounds`), so that
question and answer cost each publisher one message. Who does not answer in `wait_s` is not waited for any longer.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from nodes.overlay.collection.aggregation import Bundles, Stream
from nodes.overlay.collection.rules import PARAMETERS, Way, publisher_key, settings
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.base import Action, Place, Refuse, Send
from nodes.overlay.topics.keys import Role, edge, stands_in
from nodes.overlay.topics.sg import SgTbps
from nodes.overlay.topics.topic import Topic
from nodes.protocol.collection_messages import (
    Answer,
    ReadingWord,
    Toward,
    course_of,
    hear,
    is_reading_word,
    say,
    say_nothing,
)
from nodes.protocol.joined import apart
from nodes.protocol.overlay_messages import read
from nodes.protocol.skipgraph_messages import Contact, Multicast
from nodes.protocol.skipgraph_messages import Way as Spreading
from nodes.protocol.topic_messages import Word
from nodes.protocol.wire import CUSTODY, Kind, Message, WireError

# Readings of many sensors to one collector, over a Skip Graph in the order of their periods (Kawakami 2016).
#
# Rules. A broker stands among the publishers of a topic by the period of its guests, which it learns from what they
# publish (`aggregation`); whoever subscribes stands behind them, and the first of those is the collector. A reading
# goes from broker to broker by the rule of the collection (`rules`), and readings for the same next broker leave as one
# message (`aggregation`). The collector delivers it and passes it on to other subscribers, by multicast from where it
# stands. Where the way is not known (a broker that has left, dead neighbours) the multicast of SG-TBPS serves instead:
# it finds it.
#
# An alert does not wait for readings: what has custody, or is of level 4 or 5, travels alone, at once, and as in
# SG-TBPS.


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


# What a node does with a collector's question: it passes it on, waits for answers, and answers with all of them.
#
# heard -> open, until all to whom it was passed on have answered or the time is over -> closed
#          what comes later goes on to the asker by itself, at once
#
# Whoever brought the question first is answered, also if it only passed through here, and is for this node later or
# never: each has heard of it before those whose answers it waits for, so that no answer goes in circles.


MOST_ROUNDS = 256  # the oldest are forgotten


@dataclass(slots=True)
class Round:
    """One question at one node."""

    asker: int
    until: float
    waiting: set[int] = field(default_factory=set)  # nodes to whom the question was passed on
    readings: list[Message] = field(default_factory=list)
    closed: bool = False


class Rounds:
    """All of a node."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._rounds: OrderedDict[Answer, Round] = OrderedDict()

    def heard(self, question: Answer, asker: int, now: float) -> None:
        """The question has come from this node, for this one or on its way to others."""
        if question not in self._rounds:
            self._rounds[question] = Round(asker, now + self._wait_s)
            if len(self._rounds) > MOST_ROUNDS:
                self._rounds.popitem(last=False)

    def asked(self, question: Answer, own: Iterable[Message]) -> None:
        """It was heard, and is for this node, too; `own` is what there is to answer here."""
        one = self._rounds[question]
        one.readings += own
        one.closed = False  # one part of the question may have come before another

    def passed_on(self, question: Answer, node: int) -> None:
        if (one := self._rounds.get(question)) is not None and not one.closed:
            one.waiting.add(node)

    def answered(self, question: Answer, node: int, readings: Iterable[Message]) -> int | None:
        """A node has answered; who is to get that at once, if the question is answered here already.

        None: it waits for the others. KeyError: nobody has asked here.
        """
        one = self._rounds[question]
        if one.closed:
            return one.asker
        one.waiting.discard(node)
        one.readings += readings
        return None

    def lost(self, node: int) -> None:
        """This node answers no more."""
        for one in self._rounds.values():
            one.waiting.discard(node)

    def complete(self, now: float) -> list[tuple[Answer, Round]]:
        """Questions to answer now; they are closed."""
        ready = [
            (question, one)
            for question, one in self._rounds.items()
            if not one.closed and (not one.waiting or now >= one.until)
        ]
        for _, one in ready:
            one.closed = True
        return ready

    def next_deadline(self) -> float | None:
        return min((one.until for one in self._rounds.values() if not one.closed), default=None)


class Collection(Collecting):
    """A node of a collection."""

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._pulls = self._settings.way is Way.PULL
        self._rounds = Rounds(self._settings.wait_s)
        self._ask_collected_at: float | None = None
        self._sender = self.number  # of the message that is handled

    def leave(self, now: float) -> list[Action]:
        out: list[Action] = []
        for stream in self._streams():
            for reading in _taken(stream):
                self._go_on(reading, Toward(self.number), now)
        self._answer_all(self._rounds.complete(float("inf")), now)
        out += self._done()
        return [*out, *super().leave(now)]

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        self._sender = sender
        actions = super().on_message(sender, message, now)
        self._sender = self.number
        return actions

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        self._rounds.lost(number)
        return super().on_peer_lost(number, now)

    def next_deadline(self) -> float | None:
        moments = (
            super().next_deadline(),
            self._rounds.next_deadline(),
            self._ask_collected_at,
        )
        return min((at for at in moments if at is not None), default=None)

    def on_deadline(self, now: float) -> list[Action]:
        self._now = now
        if self._ask_collected_at is not None and now >= self._ask_collected_at:
            self._ask_collected_at = None
            self._collect(now)
        return super().on_deadline(now)

    def _done(self) -> list[Action]:
        self._answer_all(self._rounds.complete(self._now), self._now)
        return super()._done()

    # The collector

    def _on_keys(self, state: Topic, now: float) -> None:
        super()._on_keys(state, now)
        if not self._pulls or Role.SUBSCRIBER not in state.keys:
            return
        if self._ask_collected_at is None:
            self._ask_collected_at = now + self._settings.pull_s
        if isinstance(state, Stream):  # nobody asks one who stands among the subscribers
            for reading in _taken(state):
                self._go_on(reading, Toward(self.number), now)

    def _collect(self, now: float) -> None:
        """Ask for all topics of which this node is the first subscriber."""
        subscribed = [one for one in self._streams() if Role.SUBSCRIBER in one.keys]
        for stream in subscribed:
            key = stream.keys[Role.SUBSCRIBER]
            peer = self.graph.peer(key)
            if peer is None or not peer.in_ring:
                continue
            left = peer.neighbour(0, False)
            if left is None or not stands_in(left.key, stream.name, Role.PUBLISHER):
                continue  # another one is the first, or nobody publishes
            low, body = edge(stream.name, Role.PUBLISHER), say(ReadingWord.COLLECT, stream.name)
            identity = self._next_identity()
            self._act(
                self.graph.multicast(low, key + b"\0", identity, body, now, Spreading.SPLIT), now
            )
        if subscribed:
            self._ask_collected_at = now + self._settings.pull_s

    # Those who are asked

    def _multicast(self, message: Message, now: float) -> None:
        stream = self._stream(message.topic)
        asked = self._pulls and stream is not None and Role.SUBSCRIBER not in stream.keys
        if stream is None or not asked or travels_alone(message):
            super()._multicast(message, now)
        else:
            stream.kept.append(message)

    def _act(self, actions: list[graph.Action], now: float) -> None:
        """Whatever is done with a question is noted: from whom it came, and to whom it goes."""
        for action in actions:
            match action:
                case graph.Delivered(_, Multicast(body=bytes() as body) as multicast) if (
                    _is_question(body)
                ):
                    self._on_question_of_collector(multicast, body, now)
                case graph.Send(node, Multicast(body=bytes() as body) as multicast) if _is_question(
                    body
                ):
                    self._rounds.passed_on(self._heard(multicast, now), node)
                    super()._act([action], now)
                case _:
                    super()._act([action], now)

    def _on_question_of_collector(self, multicast: Multicast, body: bytes, now: float) -> None:
        _, topic = hear(body)
        if multicast.origin == self.number or not isinstance(topic, str):
            return
        stream = self._stream(topic)
        own = [] if stream is None else _taken(stream)
        self._rounds.asked(self._heard(multicast, now), own)

    def _heard(self, multicast: Multicast, now: float) -> Answer:
        """A question is here; the collector's own is answered by nobody here."""
        question = Answer(multicast.origin, multicast.identity)
        if multicast.origin != self.number:
            self._rounds.heard(question, self._sender, now)
        return question

    # Answers on their way back

    def _on_reading(
        self, sender: int, reading: Message, course: Toward | Answer, now: float
    ) -> None:
        if (
            isinstance(course, Toward)
            or course.collector == self.number
            or reading.hops > MOST_HOPS
        ):
            super()._on_reading(sender, reading, course, now)
            return
        try:
            asker = self._rounds.answered(course, sender, [reading])
        except KeyError:
            super()._on_reading(sender, reading, course, now)
            return
        if asker is not None:
            self._pass_on(asker, reading, course)

    def _hear_reading_word(self, sender: int, word: ReadingWord, what: str | Answer) -> None:
        if isinstance(what, Answer) and what.collector != self.number:
            try:
                self._rounds.answered(what, sender, [])
            except KeyError:
                return  # it was asked before this node began anew
        else:
            super()._hear_reading_word(sender, word, what)

    def _answer_all(self, rounds: list[tuple[Answer, Round]], now: float) -> None:
        for question, one in rounds:
            for reading in one.readings:
                if one.asker == self.number:  # who brought the question is not known any more
                    self._go_on(reading, Toward(self.number), now)
                else:
                    self._pass_on(one.asker, reading, question)
            if not one.readings and one.asker != self.number:
                self._act(self.graph.tell(one.asker, say_nothing(question), now), now)
            one.readings = []


def _is_question(body: bytes) -> bool:
    return body[:1] == bytes([ReadingWord.COLLECT])


def _taken(stream: Stream) -> list[Message]:
    """What is kept there; it is not any more."""
    readings = list(stream.kept)
    stream.kept.clear()
    return readings
