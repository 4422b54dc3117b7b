"""A node's keys in the graph, by what it wants of each topic; and publications on their way in and out.

A node that is publisher and subscriber of a topic has only the subscriber's key (Banno 2013). It changes keys without a
gap: the old one is taken out when the new one is inserted. What is published before the first key is inserted waits.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from random import Random
from typing import Any, ClassVar

from nodes.overlay.reliability.dedup import Seen
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.node import IDLE_PERIOD_S, PERIOD_S, SkipGraphNode
from nodes.overlay.topics.base import (
    Action,
    Advertised,
    Asked,
    Deliver,
    Doubted,
    Duplicate,
    Place,
    Refuse,
    Restored,
    Send,
    Subscribed,
)
from nodes.overlay.topics.keys import Role, edge, stands_in, topic_key, topic_of
from nodes.overlay.topics.topic import Topic
from nodes.parameters import check_known, seconds
from nodes.protocol.overlay_messages import read, written
from nodes.protocol.skipgraph_codec import with_publication
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Multicast, Way
from nodes.protocol.topic_messages import hear_question, is_question, say_question
from nodes.protocol.wire import Message, WireError, message_id

NEVER_S = 1e9  # the longest period
WAYS = {"flood": Way.FLOOD, "split": Way.SPLIT}
PARAMETERS = ("multicast", "period_s", "idle_period_s")


class Membership:
    """A topic node that publishes by multicast to the subscribers' stretch; the methods are made from it."""

    method = ""
    relay_free: ClassVar[bool] = True
    by_area: ClassVar[bool] = False
    stops: ClassVar[bool] = False
    ways: ClassVar[tuple[str, ...]] = tuple(WAYS)
    more_parameters: tuple[str, ...] = ()

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        check_known(self.method, parameters, (*PARAMETERS, *self.more_parameters))
        way = parameters.get("multicast", "split")
        if way not in WAYS:
            raise ValueError(f"multicast {way!r}; there are {', '.join(WAYS)}")
        self._way = WAYS[way]
        self.number = place.number
        self._idle_s = seconds(self.method, parameters, "idle_period_s", IDLE_PERIOD_S, NEVER_S)
        self.graph = SkipGraphNode(
            place.number,
            random.getrandbits(VECTOR_BITS) if place.vector is None else place.vector,
            place.introducers,
            random,
            place.incarnation,
            seconds(self.method, parameters, "period_s", PERIOD_S, NEVER_S),
            self._idle_s,
            place.watched,
            place.fallbacks,
        )
        self._topics: dict[str, Topic] = {}
        self._seen = Seen()
        self._words = place.incarnation
        self._out: list[Action] = []

    # What the node wants

    def advertise(self, topic: str, now: float) -> list[Action]:
        state = self._topic(topic)
        state.advertised = True
        if state.keys:
            self._out.append(Advertised(topic))
        self._settle_keys(state, now)
        return self._done()

    def withdraw(self, topic: str, now: float) -> list[Action]:
        state = self._topic(topic)
        state.advertised = False
        state.waiting.clear()
        self._settle_keys(state, now)
        return self._done()

    def subscribe(self, topic: str, now: float) -> list[Action]:
        state = self._topic(topic)
        state.subscribed = True
        if Role.SUBSCRIBER in state.keys:
            self._out.append(Subscribed(topic))
        self._settle_keys(state, now)
        return self._done()

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        state = self._topic(topic)
        state.subscribed = False
        self._settle_keys(state, now)
        return self._done()

    def publish(self, message: Message, now: float) -> list[Action]:
        state = self._topics.get(message.topic)
        if state is None or not state.advertised:
            raise ValueError(f"topic {message.topic!r} is not advertised here; advertise it first")
        if state.keys:
            self._publish(state, message, now)
        else:
            state.waiting.append(message, now)
        return self._done()

    def ask(self, topic: str, words: bytes, now: float) -> list[Action]:
        """To the whole stretch of the topic: who publishes and subscribes stands among the subscribers."""
        low, high = edge(topic, Role.PUBLISHER), edge(topic, Role.SUBSCRIBER + 1)
        body = say_question(topic, words)
        self._act(self.graph.multicast(low, high, self._next_identity(), body, now), now)
        return self._done()

    def leave(self, now: float) -> list[Action]:
        for state in list(self._topics.values()):
            state.advertised = state.subscribed = False
            self._settle_keys(state, now)
        return self._done()

    @property
    def left(self) -> bool:
        return self.graph.left

    def serve_again(self, message: Message, now: float) -> list[Action]:
        multicast = with_publication(message)
        unsent = replace(message, routing=b"", hops=message.hops - 1)
        self._serve_again(replace(multicast, body=unsent), unsent, now)
        return self._done()

    def holds(self, message_id: int) -> bool:
        waits = any(state.waiting.since(message_id) > -inf for state in self._topics.values())
        return waits or self.graph.holds(message_id)

    def describe(self) -> dict[str, Any]:
        return self.graph.describe()

    # What happens

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        try:
            self._act(self.graph.on_message(sender, read(message), now), now)
        except WireError as error:
            self._out.append(Refuse(sender, str(error)))
        return self._done()

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        self._act(self.graph.on_peer_lost(number, now), now)
        return self._done()

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        self._act(self.graph.on_peer_found(number, now), now)
        return self._done()

    def next_deadline(self) -> float | None:
        return self.graph.next_deadline()

    def on_deadline(self, now: float) -> list[Action]:
        self._act(self.graph.on_deadline(now), now)
        return self._done()

    # What a method may do otherwise

    def _publish(self, state: Topic, message: Message, now: float) -> None:
        """The node has a key in the topic's stretch: send."""
        self._multicast(message, now)

    def _dispatch(self, node: int, message: Message) -> None:
        """Send it."""
        self._out.append(Send(node, message))

    def _multicast(self, message: Message, now: float) -> None:
        topic = message.topic
        low, high = edge(topic, Role.SUBSCRIBER), edge(topic, Role.SUBSCRIBER + 1)
        floor = edge(topic, Role.PUBLISHER)
        self._act(
            self.graph.multicast(low, high, message.message_id, message, now, self._way, floor), now
        )

    def _serve_again(self, multicast: Multicast, message: Message, now: float) -> None:
        """A part went to a dead node: serve it by others."""
        self._act(self.graph.serve_again(multicast, now), now)

    def _on_event(self, event: graph.Event, now: float) -> None:
        """Something that membership does not care for."""

    def _on_keys(self, state: Topic, now: float) -> None:
        """The keys of the topic have changed."""

    # Keys

    def _topic(self, name: str) -> Topic:
        if name not in self._topics:
            edge(name, Role.PUBLISHER)  # a name that cannot be a key is refused here
            self._topics[name] = self._new_topic(name)
        return self._topics[name]

    def _new_topic(self, name: str) -> Topic:
        return Topic(name)

    def _key(self, state: Topic, role: Role) -> bytes:
        """The key that the node wants in this role; a method may want another one later."""
        return topic_key(state.name, role, self.number)

    def _wanted(self, state: Topic) -> bytes | None:
        return None if state.role is None else self._key(state, state.role)

    def _settle_keys(self, state: Topic, now: float) -> None:
        """Have the one key that is wanted; others go when it is there."""
        wanted = self._wanted(state)
        if wanted is not None:
            self._act(self.graph.insert(wanted, now), now)
        if wanted is None or wanted in state.keys.values():
            state.keys = {role: key for role, key in state.keys.items() if key == wanted}
            for key in self.graph.own_keys():
                if key != wanted and any(stands_in(key, state.name, role) for role in Role):
                    self._act(self.graph.remove(key, now), now)
        if wanted is None and not state.keys:
            self._topics.pop(state.name, None)

    def _inserted(self, key: bytes, now: float) -> None:
        name = topic_of(key)
        role = next(role for role in Role if stands_in(key, name, role))
        state = self._topics.get(name)
        if state is None or self._has_other(state, key):
            self._act(self.graph.remove(key, now), now)
            return
        first = not state.keys
        state.keys[role] = key
        if state.subscribed and role is Role.SUBSCRIBER:
            self._out.append(Subscribed(name))
        if state.advertised and first:
            self._out.append(Advertised(name))
        self._settle_keys(state, now)
        self._on_keys(state, now)
        while state.waiting and state.advertised:
            self._publish(state, state.waiting.popleft().message, now)

    def _has_other(self, state: Topic, key: bytes) -> bool:
        """Whether the node has the key that it wants, and this is not it."""
        wanted = self._wanted(state)
        return key != wanted and wanted in state.keys.values()

    def _restored(self, key: bytes) -> None:
        state = self._topics.get(topic_of(key))
        if state is not None and state.keys.get(Role.SUBSCRIBER) == key:
            self._out.append(Restored(state.name))

    # The graph's actions

    def _act(self, actions: list[graph.Action], now: float) -> None:
        for action in actions:
            match action:
                case graph.Send():
                    self._dispatch(action.node, written(action.message, self.number))
                case graph.Inserted():
                    self._inserted(action.key, now)
                case graph.Doubted():
                    self._out.append(Doubted(action.node))
                case graph.Restored():
                    self._restored(action.key)
                case graph.Delivered(_, Multicast(body=Message() as publication)):
                    self._deliver(publication)
                case graph.Repeated(Multicast(body=Message() as publication)):
                    self._out.append(Duplicate(publication))
                case graph.Delivered(_, Multicast(origin=sender, body=bytes() as body)) if (
                    is_question(body)
                ):
                    self._on_question(sender, body)
                case _:
                    self._on_event(action, now)

    def _deliver(self, publication: Message) -> None:
        state = self._topics.get(publication.topic)
        if state is None or not state.subscribed:
            return
        new = self._seen.add(publication.message_id)
        self._out.append(Deliver(publication) if new else Duplicate(publication))

    def _on_question(self, sender: int, body: bytes) -> None:
        topic, words = hear_question(body)
        state = self._topics.get(topic)
        if state is not None and state.advertised and sender != self.number:
            self._out.append(Asked(sender, topic, words))

    def _next_identity(self) -> int:
        """Of a multicast of words."""
        self._words += 1
        return message_id(self.number, self._words)

    def _done(self) -> list[Action]:
        out, self._out = self._out, []
        return out
