"""The whole of a collection's node: readings that are sent as they come, and those that the collector asks for.

Pull (SFB in Kawakami 2016): the first subscriber asks all publishers each `pull_s` seconds, by a multicast from where
it stands to the beginning of the topic's stretch. Each publisher keeps its readings until it is asked. It answers whom
it has the question from, together with the answers of those to whom it passed the question on (`rounds`), so that
question and answer cost each publisher one message. Who does not answer in `wait_s` is not waited for any longer.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.collection.collecting import MOST_HOPS, Collecting, travels_alone
from nodes.overlay.collection.courses import (
    Answer,
    ReadingWord,
    Toward,
    hear,
    say,
    say_nothing,
)
from nodes.overlay.collection.rounds import Round, Rounds
from nodes.overlay.collection.settings import Way
from nodes.overlay.collection.stream import Stream
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.messages import Multicast
from nodes.overlay.skipgraph.messages import Way as Spreading
from nodes.overlay.tbps.base import Action, Place
from nodes.overlay.tbps.keys import Role, edge, stands_in
from nodes.overlay.tbps.topic import Topic
from nodes.wire import Message


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
