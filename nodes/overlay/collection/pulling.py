"""Pull (SFB in Kawakami 2016): publishers send readings when the collector requests them.

The first subscriber sends a request to all publishers each `pull_s` seconds, by a multicast from its own key to the
beginning of the topic's stretch. Each publisher keeps its readings until a request arrives. It answers the node that
sent it the request, together with the answers of the nodes to which it forwarded the request (`Rounds`). So request and
answer cost each publisher one message. A node waits at most `wait_s` for the answers of others.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from nodes.overlay.collection.aggregation import stream_of, streams_of
from nodes.overlay.collection.forwarding import MOST_HOPS, ReadingForwarding
from nodes.overlay.collection.rules import Settings, Way
from nodes.overlay.topics.keys import Role, edge, stands_in
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.topic import Topic
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.collection_messages import (
    Answer,
    ReadingControl,
    Toward,
    decode_control,
    encode_control,
    encode_nothing,
)
from nodes.protocol.skipgraph_messages import Multicast
from nodes.protocol.wire import Message

# A collector's request at one node: forward it, wait for answers, and answer with all of them.
#
# request arrives -> open, until all nodes to which it was forwarded have answered or the time is over -> closed
#                    a later answer goes on to the asker by itself, at once
#
# The node answers the first sender of the request, even if the request only passes through here, and reaches an own key
# later or never. Each node has received the request before the nodes whose answers it waits for, so no answer goes in a
# cycle.


MOST_ROUNDS = 256  # the oldest are forgotten


@dataclass(slots=True)
class Round:
    """One request at one node."""

    asker: int
    until: float
    waiting: set[int] = field(default_factory=set)  # nodes to which the request was forwarded
    readings: list[Message] = field(default_factory=list)
    closed: bool = False


class Rounds:
    """The requests at a node."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._rounds: OrderedDict[Answer, Round] = OrderedDict()

    def record(self, question: Answer, asker: int, now: float) -> None:
        """The request came from the node `asker`, for this node or on its way to others."""
        if question not in self._rounds:
            self._rounds[question] = Round(asker, now + self._wait_s)
            if len(self._rounds) > MOST_ROUNDS:
                self._rounds.popitem(last=False)

    def asked(self, question: Answer, own: Iterable[Message]) -> None:
        """The request is for this node, too; `own` are the readings to answer with."""
        one = self._rounds[question]
        one.readings += own
        one.closed = False  # one part of the request may have come before another

    def passed_on(self, question: Answer, node: int) -> None:
        if (one := self._rounds.get(question)) is not None and not one.closed:
            one.waiting.add(node)

    def answered(self, question: Answer, node: int, readings: Iterable[Message]) -> int | None:
        """A node has answered. Return the node that gets the answer at once, if the request is answered here already.

        None: the answer waits for the others. KeyError: no such request came here.
        """
        one = self._rounds[question]
        if one.closed:
            return one.asker
        one.waiting.discard(node)
        one.readings += readings
        return None

    def lost(self, node: int) -> None:
        """Wait no more for answers of this node."""
        for one in self._rounds.values():
            one.waiting.discard(node)

    def complete(self, now: float) -> list[tuple[Answer, Round]]:
        """Close and return the requests to answer now."""
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


def is_collect(body: object) -> bool:
    """Whether this is a collector's request."""
    return isinstance(body, bytes) and body[:1] == bytes([ReadingControl.COLLECT])


class Pulling:
    """A broker's part: it sends requests where it is the first subscriber, and answers them where it publishes."""

    def __init__(
        self,
        settings: Settings,
        graph: TopicGraph,
        membership: Membership,
        forwarding: ReadingForwarding,
    ) -> None:
        self._pulls = settings.way is Way.PULL
        self._pull_s = settings.pull_s
        self._graph = graph
        self._membership = membership
        self._forwarding = forwarding
        self._rounds = Rounds(settings.wait_s)
        self._ask_at: float | None = None

    def next_deadline(self) -> float | None:
        moments = (self._rounds.next_deadline(), self._ask_at)
        return min([at for at in moments if at is not None], default=None)

    def on_deadline(self, context: Context) -> None:
        if self._ask_at is not None and context.now >= self._ask_at:
            self._ask_at = None
            self._collect(context)

    def on_peer_lost(self, number: int) -> None:
        """The node of this number is dead: wait no more for its answers."""
        self._rounds.lost(number)

    def leave(self, context: Context) -> None:
        """Send all readings that wait here."""
        for stream in streams_of(self._membership):
            self._send(stream.take_pending(), context)
        self._answer_all(self._rounds.complete(inf), context)

    # The collector

    def on_keys(self, topic: Topic, context: Context) -> None:
        """The node's keys in the topic have changed."""
        if not self._pulls or Role.SUBSCRIBER not in topic.keys:
            return
        if self._ask_at is None:
            self._ask_at = context.now + self._pull_s
        stream = stream_of(self._membership, topic.name)
        if stream is not None:  # a node among the subscribers gets no request
            self._send(stream.take_pending(), context)

    def _collect(self, context: Context) -> None:
        """Request the readings of all topics of which this node is the first subscriber."""
        subscribed = [one for one in streams_of(self._membership) if Role.SUBSCRIBER in one.keys]
        for stream in subscribed:
            key = stream.keys[Role.SUBSCRIBER]
            peer = self._graph.node.peer(key)
            if peer is None or not peer.in_ring:
                continue
            left = peer.neighbour(0, False)
            if left is None or not stands_in(left.key, stream.name, Role.PUBLISHER):
                continue  # another node is the first subscriber, or there is no publisher
            low, body = (
                edge(stream.name, Role.PUBLISHER),
                encode_control(ReadingControl.COLLECT, stream.name),
            )
            self._graph.notify_all(low, key + b"\0", body, context)
        if subscribed:
            self._ask_at = context.now + self._pull_s

    # Publishers

    def on_question(self, multicast: Multicast, body: bytes, context: Context) -> None:
        """A collector's request has reached one of the node's keys."""
        _, topic = decode_control(body)
        if multicast.origin == self._graph.number or not isinstance(topic, str):
            return
        stream = stream_of(self._membership, topic)
        own = [] if stream is None else stream.take_pending()
        self._rounds.asked(self._record_question(multicast, context), own)

    def on_passed_on(self, multicast: Multicast, node: int, context: Context) -> None:
        """A collector's request is forwarded to this node."""
        self._rounds.passed_on(self._record_question(multicast, context), node)

    def _record_question(self, multicast: Multicast, context: Context) -> Answer:
        """Record a request, unless it is this node's own: the collector does not answer itself."""
        question = Answer(multicast.origin, multicast.identity)
        if multicast.origin != self._graph.number:
            asker = self._graph.number if context.sender is None else context.sender
            self._rounds.record(question, asker, context.now)
        return question

    # Answers

    def on_answer(
        self, sender: int, reading: Message, section: Toward | Answer, context: Context
    ) -> bool:
        """Take a reading that answers a request of another collector; whether it is one."""
        if (
            isinstance(section, Toward)
            or section.collector == self._graph.number
            or reading.hops > MOST_HOPS
        ):
            return False
        try:
            asker = self._rounds.answered(section, sender, [reading])
        except KeyError:
            return False
        if asker is not None:
            self._forwarding.pass_on(asker, reading, section, context)
        return True

    def on_nothing(self, sender: int, answer: Answer) -> None:
        """A node has no readings to answer with."""
        if answer.collector == self._graph.number:
            return
        try:
            self._rounds.answered(answer, sender, [])
        except KeyError:
            return  # the request is from before this node's restart

    def answer_complete(self, at: float, context: Context) -> None:
        """Answer the requests that wait for nothing more at this time."""
        self._answer_all(self._rounds.complete(at), context)

    def _answer_all(self, rounds: list[tuple[Answer, Round]], context: Context) -> None:
        for question, one in rounds:
            for reading in one.readings:
                if one.asker == self._graph.number:  # the asker is not known any more
                    self._send([reading], context)
                else:
                    self._forwarding.pass_on(one.asker, reading, question, context)
            if not one.readings and one.asker != self._graph.number:
                self._graph.notify(one.asker, encode_nothing(question), context)
            one.readings = []

    def _send(self, readings: list[Message], context: Context) -> None:
        for reading in readings:
            self._forwarding.go_on(reading, Toward(self._graph.number), context)
