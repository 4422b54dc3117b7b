"""Scribe on the same Skip Graph, the alternative to SG-TBPS (Banno 2013, 2.2): a tree for each topic.

Every node has one key in the graph, its number, whatever it subscribes to. A topic's hash leads to its root, by
membership vectors (`routing`). The routes of the subscribers to the root, reversed, are the topic's tree (`tree`). A
publisher looks for the root once, remembers it, and sends to it directly (`publishing`); from there everything goes
down the tree (`forwarding`). So nodes forward topics in which they take no part, and publishers send even if there is
no subscriber.

The root changes when nodes join or crash. Children and publishers find the new root as they refresh, each `renew_s`
seconds or, the longer nothing changes nearby, less often (up to two `idle_period_s`). The old root joins the tree of
the new one. A node that is not the root any more forwards a publication to the nodes below it and towards the root. A
new node does not take itself for a root at once.

Guarantee: a subscriber that was confirmed before the publication, and that stays, is delivered it exactly once, if no
message is lost and the graph has not changed for a while (the lists of all levels, and `renew_s`). Subscriptions may
come and go. Otherwise subscribers may miss publications: those that were sent to a crashed root until the publisher has
found the next, and those below a crashed node, or below one of two roots, until the branches are refreshed. A publisher
whose shell reports the crash (`on_peer_lost`) keeps its publications until it knows the next root. With custody no
subscriber is missed: `forwarding` explains why.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics import topic_graph
from nodes.overlay.topics.base import Action, Asked, Place, Restored, Send, Suspected
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.topics.scribe.forwarding import TreeForwarding, Uplink, Upward
from nodes.overlay.topics.scribe.publishing import Publishers, Sources
from nodes.overlay.topics.scribe.routing import VectorRouting
from nodes.overlay.topics.scribe.tree import Tree
from nodes.overlay.topics.topic_graph import NEVER_S, Context, TopicGraph
from nodes.parameters import check_known, seconds
from nodes.protocol.overlay_messages import written
from nodes.protocol.scribe_messages import (
    Answer,
    Ask,
    Inquiry,
    Join,
    Joined,
    Leave,
    Look,
    Question,
    Root,
    decode_scribe,
)
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.wire import Kind, Message

RENEW_S = 5.0
IDLE_PERIODS = 2  # of the graph, between two refreshes in calm: each costs two messages a branch
FORGET_AFTER = 3  # refreshes without a message
KEEP_S = 60.0  # publications with custody stay for new children: at least, and until a refresh
SELDOM = 2  # refreshes where nothing changes, then publishers ask for the root


class Refresh:
    """When a node repeats its messages: each `renew_s` seconds after a change, then less and less often.

    The pause doubles up to `idle_s`, unless that is shorter than `renew_s`.
    """

    def __init__(self, renew_s: float, idle_s: float) -> None:
        self._renew_s = renew_s
        self._idle_s = max(renew_s, idle_s)
        self._pause_s = renew_s
        self._at = 0.0
        self._count = 0
        self.calm = False  # nothing had changed for a while at the last refresh

    def soon(self, now: float) -> None:
        """Something has changed: neighbours and roots may have, too."""
        self._pause_s = self._renew_s
        self._at = min(self._at, now + self._renew_s)

    def due(self, now: float) -> bool:
        """Whether a refresh is due."""
        if now < self._at:
            return False
        self.calm = self._pause_s > self._renew_s
        self._at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, self._idle_s)
        self._count += 1
        return True

    def every(self, number: int) -> bool:
        """Whether this refresh is one of so many."""
        return self._count % number == 0


class Scribe:
    """A node of Scribe; implements `base.TopicNode`."""

    method: ClassVar[str] = "scribe"
    relay_free: ClassVar[bool] = False
    by_area: ClassVar[bool] = False
    stops: ClassVar[bool] = False
    ways: ClassVar[tuple[str, ...]] = ()

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        check_known(self.method, parameters, (*topic_graph.PARAMETERS, "renew_s"))
        renew_s = seconds(self.method, parameters, "renew_s", RENEW_S, NEVER_S)
        topics = TopicGraph(self.method, place, parameters, random)
        longest_s = max(renew_s, IDLE_PERIODS * topics.idle_s)
        self.number = place.number
        self.graph = topics.node
        self.routing = VectorRouting(topics, place.incarnation)
        self.tree = Tree(self.routing, FORGET_AFTER * longest_s)
        self._uplink = Uplink(self.routing, self._arrive)
        self._forwarding = TreeForwarding(
            self.routing, self.tree, self._uplink, place.incarnation, max(KEEP_S, longest_s)
        )
        self._sources = Sources(topics, self.routing, self._uplink, self._forwarding)
        self._publishers = Publishers(FORGET_AFTER * SELDOM * longest_s)
        self._refresh = Refresh(renew_s, longest_s)
        self._period_s = topics.period_s
        self._random = random
        self._tick_at: float | None = None

    # Requests of the layer above

    def advertise(self, topic: str, now: float) -> list[Action]:
        edge(topic, Role.PUBLISHER)  # every method refuses the same topics
        context = self._begin(now)
        self._sources.advertise(topic, context)
        return self._done(context)

    def withdraw(self, topic: str, now: float) -> list[Action]:
        context = self._begin(now)
        self._sources.withdraw(topic)
        return self._done(context)

    def subscribe(self, topic: str, now: float) -> list[Action]:
        edge(topic, Role.SUBSCRIBER)
        context = self._begin(now)
        self.tree.subscribe(topic, context)
        return self._done(context)

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        context = self._begin(now)
        self.tree.unsubscribe(topic, context)
        return self._done(context)

    def publish(self, message: Message, now: float) -> list[Action]:
        if message.topic not in self._sources:
            raise ValueError(f"topic {message.topic!r} is not advertised here; advertise it first")
        context = self._begin(now)
        self._sources.publish(message, context)
        return self._done(context)

    def ask(self, topic: str, payload: bytes, now: float) -> list[Action]:
        context = self._begin(now)
        self._uplink.send(Question(self.number, 0, topic, payload), context)
        return self._done(context)

    def leave(self, now: float) -> list[Action]:
        context = self._begin(now)
        self.tree.leave(context)
        self._sources.leave()
        self.routing.leave(context)
        return self._done(context)

    @property
    def left(self) -> bool:
        return self.graph.left

    def serve_again(self, message: Message, now: float) -> list[Action]:
        context = self._begin(now)
        self._forwarding.serve_again(message, context)
        return self._done(context)

    def describe(self) -> dict[str, Any]:
        return self.graph.describe()

    def holds(self, message_id: int) -> bool:
        parts = (self._uplink, self._sources, self._forwarding)
        return any(part.holds(message_id) for part in parts)

    # Events

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        context = self._begin(now, sender)
        with context.refusing(sender):
            if message.kind is Kind.OVERLAY:
                context.perform(self.graph.on_message(sender, decode(message.payload), now))
            else:
                self._forwarding.on_publication(sender, message, context)
        return self._done(context)

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        context = self._begin(now)
        self._refresh.soon(now)
        context.perform(self.graph.on_peer_lost(number, now))
        self.tree.forget_node(number, context)
        self._sources.forget_node(number)
        self._publishers.forget_node(number)
        return self._done(context)

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        context = self._begin(now)
        self._refresh.soon(now)
        context.perform(self.graph.on_peer_found(number, now))
        return self._done(context)

    def next_deadline(self) -> float | None:
        if not self.routing.begun:
            return 0.0  # at once: every node has its key
        moments = [at for at in (self.graph.next_deadline(), self._tick_at) if at is not None]
        return min(moments, default=None)

    def on_deadline(self, now: float) -> list[Action]:
        context = self._begin(now)
        if self._tick_at is not None and now >= self._tick_at:
            self._tick_at = None
            self._tick(context)
        context.perform(self.graph.on_deadline(now))
        return self._done(context)

    # One call

    def _begin(self, now: float, sender: int | None = None) -> Context:
        context = Context(now, self._on_graph, sender)
        self.routing.begin(context)
        return context

    def _done(self, context: Context) -> list[Action]:
        parts = (self.tree, self._sources, self._uplink, self._forwarding, self._publishers)
        if self._tick_at is None and any(parts):
            self._tick_at = context.now + self._period_s * (0.9 + 0.2 * self._random.random())
        return context.actions

    def _tick(self, context: Context) -> None:
        refresh = self._refresh.due(context.now)
        self.routing.tick(refresh, context)
        self.tree.tick(refresh, context)
        self._uplink.go_on(context)
        # The old root forwards publications: publishers need not be notified at once.
        seldom = refresh and (not self._refresh.calm or self._refresh.every(SELDOM))
        self._sources.tick(seldom, context)
        self._forwarding.tick(context)
        self._publishers.forget_old(context.now)

        def is_elsewhere(topic: str) -> bool:
            """Whether another node is the topic's root, as far as is known."""
            return isinstance(self.routing.next_hop(topic, context), int)

        for topic, node in self._publishers.hand_over(is_elsewhere):
            self._uplink.send(Look(node, 0, topic), context)

    def _arrive(self, one: Upward, context: Context) -> None:
        """A message has reached this node, its root."""
        match one:
            case Look():
                self._publishers.add(one.topic, one.asker, context.now)
                self.routing.notify(one.asker, Root(one.topic), context)
            case Question():
                context.do(Asked(one.asker, one.topic, one.payload))
                for node in self._publishers.of(one.topic):
                    if node not in (one.asker, self.number):
                        inquiry = Inquiry(one.asker, one.topic, one.payload)
                        self.routing.notify(node, inquiry, context)
            case Message():
                self._forwarding.on_top(one)

    # Actions and events of the graph

    def _on_graph(self, actions: list[graph.Action], context: Context) -> None:
        for action in actions:
            self._on_action(action, context)

    def _on_action(self, action: graph.Action, context: Context) -> None:
        match action:
            case graph.Send():
                context.do(Send(action.node, written(action.message, self.number)))
            case graph.Notified(sender, body):
                self._on_control(sender, body, context)
            case graph.Moved():
                self._refresh.soon(context.now)
            case graph.Restored():
                for topic in self.tree.subscribed():
                    context.do(Restored(topic))
            case graph.Suspected():
                context.do(Suspected(action.node))
            case graph.Inserted():
                self.routing.on_inserted(context)

    def _on_control(self, sender: int, body: bytes, context: Context) -> None:
        match message := decode_scribe(body):
            case Ask():
                self.routing.on_ask(message, context)
            case Answer():
                self.routing.on_answer(message)
                self.tree.look(context)
                self._uplink.go_on(context)
            case Join():
                if self.tree.on_join(sender, message, context):
                    self._forwarding.welcome(sender, message.topic, context)
            case Joined():
                self.tree.on_joined(sender, message, context)
            case Leave():
                self._refresh.soon(context.now)
                self.tree.on_leave(sender, message, context)
            case Look() | Question():
                self._uplink.send(message, context)
            case Inquiry():
                context.do(Asked(message.asker, message.topic, message.payload))
            case Root():
                self._sources.on_root(sender, message.topic, context)
