"""Stop and go (Banno 2013): publishers of a topic send nothing while it has no subscriber.

The rendezvous point is the last publisher before the subscribers. It keeps no list: if its right neighbour at level 0
is a subscriber, there are some. When that changes it sends all publishers *stop* or *go*, by multicast to their
stretch. A stopped publisher sends nothing. Repairs after crashes and losses:
(1) a publication that finds no subscriber reaches the rendezvous point, which answers its sender with *stop*;
(2) a stopped publisher asks its right neighbour periodically, less often the longer nothing changes; if they do not
    agree, it asks the rendezvous point to check, which notifies all publishers.
A new publisher asks its right neighbour, too; if that is no publisher, the new one is the rendezvous point itself.

Our addition: a stopped publisher keeps withheld publications for `hold_s` seconds, and sends them if *go* comes in that
time. Otherwise a publication would be lost that is made after the first subscription was confirmed, but before *go* has
arrived. With custody that is not enough, as control messages may take longer: the publisher keeps such a publication
until the rendezvous point, asked afterwards, has answered that there is no subscriber. One request serves all
publications withheld before it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.base import Withheld
from nodes.overlay.topics.keys import Role, edge, stands_in
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.topic import Topic
from nodes.overlay.topics.topic_graph import NEVER_S, Context, TopicGraph
from nodes.parameters import seconds
from nodes.protocol.skipgraph_messages import Multicast
from nodes.protocol.topic_messages import (
    TopicControl,
    decode_control,
    decode_timed,
    encode_control,
    encode_timed,
    is_timed,
)
from nodes.protocol.wire import Message

HOLD_S = 10.0
ASK_S = 5.0
PARAMETERS = ("hold_s", "ask_s")

Forward = Callable[[Message, Context], None]


class StopGo:
    """Whether a node sends its publications. `forward` sends a publication to the subscribers of its topic."""

    def __init__(
        self,
        method: str,
        parameters: Mapping[str, Any],
        graph: TopicGraph,
        membership: Membership,
        forward: Forward,
    ) -> None:
        self._hold_s = float(parameters.get("hold_s", HOLD_S))
        self._ask_s = seconds(method, parameters, "ask_s", ASK_S, NEVER_S)
        self._graph = graph
        self._membership = membership
        self._forward = forward
        self._ask_at: float | None = None
        self._ask_pause = self._ask_s
        self._held_at: float | None = None  # when to check the held publications

    def publish(self, topic: Topic, message: Message, context: Context) -> None:
        """Forward a publication, or withhold it."""
        flow = topic.flow
        if flow.going or Role.SUBSCRIBER in topic.keys:
            self._forward(message, context)
            return
        self._forget_held(topic, context)
        flow.held.append(message, context.now)
        context.do(Withheld(message))
        self._ask_if_wanted(topic, context)

    def holds(self, message_id: int) -> bool:
        """Whether this publication is withheld, and may still find a subscriber."""
        flows = [topic.flow for topic in self._membership.publishing()]
        return any(flow.held.since(message_id) > flow.unwanted for flow in flows)

    def on_keys(self, topic: Topic, context: Context) -> None:
        """The node's keys in the topic have changed."""
        if Role.SUBSCRIBER in topic.keys:
            self._set(topic, True, context)
        else:
            topic.flow.sure = False
            self._ask_soon(context)
            self.look(topic, context)
            self._ask(topic, context)

    def next_deadline(self) -> float | None:
        moments = (self._ask_at, self._held_at)
        return min([at for at in moments if at is not None], default=None)

    def on_deadline(self, context: Context) -> None:
        now = context.now
        if self._ask_at is not None and now >= self._ask_at:
            topics = self._membership.publishing()
            if all(topic.flow.sure for topic in topics):  # then less and less often
                self._ask_pause = max(self._ask_s, min(2 * self._ask_pause, self._graph.idle_s))
            self._ask_at = now + self._ask_pause if topics else None
            for topic in topics:
                self.look(topic, context)
                if not (topic.flow.going and topic.flow.sure):
                    self._ask(topic, context)
        if self._held_at is not None and now >= self._held_at:
            self._held_at = None
            for topic in self._membership.publishing():
                self._forget_held(topic, context)
                self._ask_if_wanted(topic, context)

    def on_event(self, event: graph.Event, context: Context) -> bool:
        """Handle an event of the graph; no other part is concerned."""
        match event:
            case graph.Moved():
                for topic in self._membership.publishing():
                    if topic.keys[Role.PUBLISHER] == event.key:
                        self._ask_soon(context)
                        self.look(topic, context)
            case graph.Exhausted(_, Multicast(body=Message() as publication) as multicast):
                own = self._membership.published(publication.topic)
                # Perhaps only a part of the range is empty: the rendezvous point checks by itself.
                if own is not None and self.has_subscribers(own) is False:  # repair 1
                    self.notify(multicast.origin, TopicControl.STOP, publication.topic, context)
            case graph.Carried(_, sender, body) | graph.Notified(sender, body) if is_timed(body):
                self._on_timed(sender, body, context)
            case graph.Carried(_, sender, body) | graph.Notified(sender, body):
                self._on_control(sender, body, context)
            case graph.Delivered(_, Multicast(origin=sender, body=bytes() as body)):
                self._on_control(sender, body, context)
        return True

    # The rendezvous point

    def has_subscribers(self, topic: Topic) -> bool | None:
        """At the rendezvous point: whether there are subscribers. None: this node is not it, or cannot decide now."""
        peer = self._graph.node.peer(topic.keys[Role.PUBLISHER])
        if peer is None or not peer.in_ring or peer.unsure:
            return None
        right = peer.neighbour(0, True)
        if right is not None and stands_in(right.key, topic.name, Role.PUBLISHER):
            return None
        return right is not None and stands_in(right.key, topic.name, Role.SUBSCRIBER)

    def look(self, topic: Topic, context: Context) -> None:
        """At the rendezvous point: if the state has changed, notify all publishers."""
        seen, flow = self.has_subscribers(topic), topic.flow
        if seen is None or (flow.sure and flow.going == seen):
            return
        if flow.sure:
            self._announce(topic, context)
        else:
            self._set(topic, seen, context)
            peer = self._graph.node.peer(topic.keys[Role.PUBLISHER])
            left = None if peer is None else peer.neighbour(0, False)
            if left is not None and stands_in(left.key, topic.name, Role.PUBLISHER):
                self.notify(left.node, TopicControl.ASK, topic.name, context)

    def _announce(self, topic: Topic, context: Context) -> None:
        seen = self.has_subscribers(topic)
        if seen is None:
            return
        self._set(topic, seen, context)
        low, high = edge(topic.name, Role.PUBLISHER), edge(topic.name, Role.SUBSCRIBER)
        body = encode_control(TopicControl.GO if seen else TopicControl.STOP, topic.name)
        self._graph.notify_all(low, high, body, context)

    # Between publishers

    def notify(self, node: int, control: TopicControl, topic: str, context: Context) -> None:
        """Send a control message about the topic to this node."""
        self._graph.notify(node, encode_control(control, topic), context)

    def _set(self, topic: Topic, going: bool, context: Context) -> None:
        flow = topic.flow
        flow.going, flow.sure = going, True
        self._forget_held(topic, context)
        while going and flow.held:
            entry = flow.held.popleft()
            if entry.has_custody or entry.since + self._hold_s >= context.now:
                self._forward(entry.message, context)

    def _ask(self, topic: Topic, context: Context) -> None:
        """Ask the right neighbour, if it is a publisher (repair 2, and a new publisher)."""
        peer = self._graph.node.peer(topic.keys[Role.PUBLISHER])
        right = None if peer is None else peer.neighbour(0, True)
        if right is not None and stands_in(right.key, topic.name, Role.PUBLISHER):
            self.notify(right.node, TopicControl.ASK, topic.name, context)

    def _ask_soon(self, context: Context) -> None:
        """Something has changed: ask with short pauses again."""
        self._ask_pause = self._ask_s
        soon = context.now + self._ask_s
        self._ask_at = soon if self._ask_at is None else min(self._ask_at, soon)

    def _on_control(self, sender: int, body: bytes, context: Context) -> None:
        control, name = decode_control(body)
        topic = self._membership.published(name)
        if topic is None:
            return
        match control:
            case TopicControl.LOOK:
                self._announce(topic, context)
            case TopicControl.ASK if topic.flow.sure:
                answer = TopicControl.GOING if topic.flow.going else TopicControl.STOPPED
                self.notify(sender, answer, name, context)
            case TopicControl.STOP | TopicControl.GO if self.has_subscribers(topic) is None:
                self._set(topic, control is TopicControl.GO, context)
            case TopicControl.STOP | TopicControl.GO:
                self.look(topic, context)  # the rendezvous point relies on its own neighbour only
            case TopicControl.STOPPED | TopicControl.GOING:
                self._compare(topic, control is TopicControl.GOING, context)

    def _compare(self, topic: Topic, going: bool, context: Context) -> None:
        """A neighbour has reported its state."""
        seen = self.has_subscribers(topic)
        if seen is not None:
            if going != seen:
                self._announce(topic, context)
        elif not topic.flow.sure:
            self._set(topic, going, context)
        elif topic.flow.going != going:
            self._ask_soon(context)
            self._ask_rendezvous(topic, encode_control(TopicControl.LOOK, topic.name), context)

    def _ask_rendezvous(self, topic: Topic, body: bytes, context: Context) -> None:
        self._graph.carry(edge(topic.name, Role.SUBSCRIBER), body, context)

    # Withheld publications

    def _forget_held(self, topic: Topic, context: Context) -> None:
        long_ago = context.now - self._hold_s
        topic.flow.held.forget(long_ago, min(long_ago, topic.flow.unwanted))

    def _ask_if_wanted(self, topic: Topic, context: Context) -> None:
        """Ask the rendezvous point, if held publications with custody are newer than its last answer; not too often."""
        flow, now = topic.flow, context.now
        if not flow.held:
            return
        later = now + self._ask_s
        self._held_at = later if self._held_at is None else min(self._held_at, later)
        if flow.held.last_custody > flow.unwanted and now >= flow.asked_at + self._ask_s:
            flow.asked_at = now
            self._ask_rendezvous(topic, encode_timed(TopicControl.WANTED, now, topic.name), context)

    def _on_timed(self, sender: int, body: bytes, context: Context) -> None:
        control, moment, name = decode_timed(body)
        topic = self._membership.published(name)
        if topic is None:
            return
        if control is TopicControl.UNWANTED:
            if topic.flow.unwanted < moment <= context.now:
                topic.flow.unwanted = moment
                self._forget_held(topic, context)
            return
        seen = self.has_subscribers(topic)
        if seen:
            self.notify(sender, TopicControl.GO, name, context)
        elif seen is False:
            self._graph.notify(sender, encode_timed(TopicControl.UNWANTED, moment, name), context)
