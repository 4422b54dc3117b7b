"""A topic node on a Skip Graph whose keys are topics (`keys`), composed of its parts.

- `membership`: the topics that the node takes part in, and its keys in them
- `stop_go`: whether the node sends its publications
- `forwarding`: how a publication reaches the subscribers; here methods differ
- `participants`: the other nodes that take part in a topic, for methods that must know them

A part knows the graph (`topic_graph`) and the parts that it was made with. The `Context` of a call passes it the time
and collects its actions. The node gets the events of the graph and passes them to the parts.
"""

from dataclasses import replace
from math import inf
from typing import Any, ClassVar

from nodes.overlay.reliability.dedup import DedupWindow
from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics import forwarding as forwardings
from nodes.overlay.topics import stop_go as stopping
from nodes.overlay.topics import topic_graph
from nodes.overlay.topics.base import (
    Action,
    Advertised,
    Asked,
    Deliver,
    Duplicate,
    Send,
    Subscribed,
    Suspected,
)
from nodes.overlay.topics.forwarding import WAYS, Forwarding
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.participants import Participants
from nodes.overlay.topics.stop_go import StopGo
from nodes.overlay.topics.topic import Topic
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.overlay_messages import read, written
from nodes.protocol.skipgraph_codec import with_publication
from nodes.protocol.skipgraph_messages import Multicast
from nodes.protocol.topic_messages import decode_question, encode_question, is_question
from nodes.protocol.wire import Message

PARAMETERS = (*forwardings.PARAMETERS, *topic_graph.PARAMETERS, *stopping.PARAMETERS)


class SkipGraphMethod:
    """Implements `base.TopicNode`; a method is a class that chooses the parts."""

    method: ClassVar[str]
    relay_free: ClassVar[bool] = True
    by_area: ClassVar[bool] = False
    stops: ClassVar[bool] = True
    ways: ClassVar[tuple[str, ...]] = tuple(WAYS)

    def __init__(
        self,
        graph: TopicGraph,
        membership: Membership,
        forwarding: Forwarding,
        stop_go: StopGo,
        participants: Participants,
    ) -> None:
        self.number = graph.number
        self.graph = graph.node
        self.membership = membership
        self.forwarding = forwarding
        self.stop_go = stop_go
        self.participants = participants
        self._topic_graph = graph
        self._seen = DedupWindow()

    # Requests of the layer above

    def advertise(self, topic: str, now: float) -> list[Action]:
        context = self._context(now)
        state = self.membership.enter(topic)
        state.advertised = True
        if state.keys:
            context.do(Advertised(topic))
        self._settle(state, context)
        return self._done(context)

    def withdraw(self, topic: str, now: float) -> list[Action]:
        context = self._context(now)
        state = self.membership.enter(topic)
        state.advertised = False
        state.waiting.clear()
        self._settle(state, context)
        return self._done(context)

    def subscribe(self, topic: str, now: float) -> list[Action]:
        context = self._context(now)
        state = self.membership.enter(topic)
        state.subscribed = True
        if Role.SUBSCRIBER in state.keys:
            context.do(Subscribed(topic))
        self._settle(state, context)
        return self._done(context)

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        context = self._context(now)
        state = self.membership.enter(topic)
        state.subscribed = False
        self._settle(state, context)
        return self._done(context)

    def publish(self, message: Message, now: float) -> list[Action]:
        state = self.membership.get(message.topic)
        if state is None or not state.advertised:
            raise ValueError(f"topic {message.topic!r} is not advertised here; advertise it first")
        context = self._context(now)
        if state.keys:
            self._publish(state, message, context)
        else:
            state.waiting.append(message, now)
        return self._done(context)

    def ask(self, topic: str, payload: bytes, now: float) -> list[Action]:
        """Send to the whole stretch of the topic, because publishers that subscribe are among the subscribers."""
        context = self._context(now)
        low, high = edge(topic, Role.PUBLISHER), edge(topic, Role.SUBSCRIBER + 1)
        self._topic_graph.notify_all(low, high, encode_question(topic, payload), context)
        return self._done(context)

    def leave(self, now: float) -> list[Action]:
        context = self._context(now)
        for state in list(self.membership):
            state.advertised = state.subscribed = False
            self._settle(state, context)
        return self._done(context)

    @property
    def left(self) -> bool:
        return self.graph.left

    def serve_again(self, message: Message, now: float) -> list[Action]:
        multicast = with_publication(message)
        unsent = replace(message, routing=b"", hops=message.hops - 1)
        context = self._context(now)
        self.forwarding.send_again(replace(multicast, body=unsent), unsent, context)
        return self._done(context)

    def holds(self, message_id: int) -> bool:
        waits = any(topic.waiting.since(message_id) > -inf for topic in self.membership)
        return self.stop_go.holds(message_id) or waits or self.graph.holds(message_id)

    def describe(self) -> dict[str, Any]:
        return self.graph.describe()

    # Events

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        context = self._context(now, sender)
        with context.refusing(sender):
            context.perform(self.graph.on_message(sender, read(message), now))
        return self._done(context)

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        context = self._context(now)
        self.participants.forget_node(number)
        context.perform(self.graph.on_peer_lost(number, now))
        self.forwarding.on_peer_lost(number, context)
        return self._done(context)

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        context = self._context(now)
        context.perform(self.graph.on_peer_found(number, now))
        return self._done(context)

    def next_deadline(self) -> float | None:
        moments = (
            self.graph.next_deadline(),
            self.stop_go.next_deadline(),
            self.participants.next_deadline(),
        )
        return min([at for at in moments if at is not None], default=None)

    def on_deadline(self, now: float) -> list[Action]:
        context = self._context(now)
        self.participants.on_deadline(context)
        self.stop_go.on_deadline(context)
        context.perform(self.graph.on_deadline(now))
        return self._done(context)

    # One call

    def _context(self, now: float, sender: int | None = None) -> Context:
        return Context(now, self._on_graph, sender)

    def _done(self, context: Context) -> list[Action]:
        return context.actions

    def _publish(self, topic: Topic, message: Message, context: Context) -> None:
        self.participants.on_publication(message)
        self.stop_go.publish(topic, message, context)

    def _settle(self, topic: Topic, context: Context) -> None:
        self.membership.settle(topic, context)
        self.participants.on_settled()

    # Actions and events of the graph

    def _on_graph(self, actions: list[graph.Action], context: Context) -> None:
        for action in actions:
            self._on_action(action, context)

    def _on_action(self, action: graph.Action, context: Context) -> None:
        match action:
            case graph.Send():
                context.do(Send(action.node, written(action.message, self.number)))
            case graph.Inserted():
                self._on_inserted(action.key, context)
            case graph.Suspected():
                context.do(Suspected(action.node))
            case graph.Restored():
                self.membership.on_restored(action.key, context)
            case graph.Delivered(_, Multicast(body=Message() as publication)):
                self._deliver(publication, context)
            case graph.Repeated(Multicast(body=Message() as publication)):
                context.do(Duplicate(publication))
            case graph.Delivered(_, Multicast(origin=sender, body=bytes() as body)) if is_question(
                body
            ):
                self._on_question(sender, body, context)
            case _:
                for part in (self.forwarding, self.participants, self.stop_go):
                    if part.on_event(action, context):
                        break

    def _on_inserted(self, key: bytes, context: Context) -> None:
        topic = self.membership.add_key(key, context)
        if topic is None:
            return
        self._settle(topic, context)
        self._on_keys(topic, context)
        while topic.waiting and topic.advertised:
            self._publish(topic, topic.waiting.popleft().message, context)

    def _on_keys(self, topic: Topic, context: Context) -> None:
        self.participants.forget(topic)
        self.stop_go.on_keys(topic, context)
        self.participants.on_keys(topic, context)

    def _deliver(self, publication: Message, context: Context) -> None:
        topic = self.membership.get(publication.topic)
        if topic is None or not topic.subscribed:
            return
        new = self._seen.add(publication.message_id)
        context.do(Deliver(publication) if new else Duplicate(publication))

    def _on_question(self, sender: int, body: bytes, context: Context) -> None:
        name, payload = decode_question(body)
        topic = self.membership.get(name)
        if topic is not None and topic.advertised and sender != self.number:
            context.do(Asked(sender, name, payload))
