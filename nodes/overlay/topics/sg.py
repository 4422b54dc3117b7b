"""SG-TBPS (Banno 2013): topics on a Skip Graph, where nobody passes on what he takes no part in, and publishers stop.

The rendezvous point is the last publisher before the subscribers. It keeps no list: if its right neighbour at level 0
is a subscriber, there are some. When that changes it tells all publishers *stop* or *go*, by multicast to their
stretch. A stopped publisher sends nothing. What may be wrong after crashes and losses is repaired:
(1) a publication that finds nobody comes to the rendezvous point, which answers its sender with *stop*;
(2) a stopped publisher asks its right neighbour now and then, more seldom the longer nothing changes; if they do not
agree, the rendezvous point is asked to look, and tells all publishers what is so.
A new publisher asks its right neighbour, too; if that is no publisher, it is the rendezvous point itself and looks.

Ours: a stopped publisher keeps what it withholds for `hold_s` seconds, and sends it if *go* comes in that time. Else a
publication would be lost that is made after the first subscription was confirmed, but before *go* has arrived.
With custody that is not enough, as words may take longer: such a publication is kept until the rendezvous point has
said, asked after it was made, that there is nobody. One question serves all that was withheld before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.base import Action, Place, Withheld
from nodes.overlay.topics.keys import Role, edge, stands_in
from nodes.overlay.topics.membership import NEVER_S, Membership
from nodes.overlay.topics.topic import Topic
from nodes.overlay.topics.waiting import Waiting
from nodes.parameters import seconds
from nodes.protocol.skipgraph_messages import Multicast
from nodes.protocol.topic_messages import Word, hear, hear_timed, is_timed, say, say_timed
from nodes.protocol.wire import Message

HOLD_S = 10.0
ASK_S = 5.0
MOST_HELD = 64  # publications of a topic without custody


@dataclass(slots=True)
class Flow(Topic):
    """A topic, and whether its publishers send."""

    going: bool = True
    sure: bool = False  # has it heard, or seen for itself, whether to go?
    held: Waiting = field(default_factory=lambda: Waiting(MOST_HELD))
    unwanted: float = -inf  # what was withheld until then is wanted by nobody, for sure
    asked_at: float = -inf  # when the rendezvous point was asked for that


class SgTbps(Membership):
    """A node of SG-TBPS."""

    method = "sg-tbps"
    stops = True
    more_parameters: tuple[str, ...] = ("hold_s", "ask_s")

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._hold_s = float(parameters.get("hold_s", HOLD_S))
        self._ask_s = seconds(self.method, parameters, "ask_s", ASK_S, NEVER_S)
        self._ask_at: float | None = None
        self._ask_pause = self._ask_s
        self._held_at: float | None = None  # when what is held is looked at

    def next_deadline(self) -> float | None:
        moments = (self.graph.next_deadline(), self._ask_at, self._held_at)
        return min((at for at in moments if at is not None), default=None)

    def holds(self, message_id: int) -> bool:
        withheld = any(flow.held.since(message_id) > flow.unwanted for flow in self._flows())
        return withheld or super().holds(message_id)

    def on_deadline(self, now: float) -> list[Action]:
        if self._ask_at is not None and now >= self._ask_at:
            flows = self._flows()
            if all(flow.sure for flow in flows):  # and so more and more seldom
                self._ask_pause = max(self._ask_s, min(2 * self._ask_pause, self._idle_s))
            self._ask_at = now + self._ask_pause if flows else None
            for flow in flows:
                self._look(flow, now)
                if not (flow.going and flow.sure):
                    self._ask(flow, now)
        if self._held_at is not None and now >= self._held_at:
            self._held_at = None
            for flow in self._flows():
                self._forget_held(flow, now)
                self._ask_if_wanted(flow, now)
        return super().on_deadline(now)

    def _new_topic(self, name: str) -> Topic:
        return Flow(name)

    def _flows(self) -> list[Flow]:
        """Topics in which this node stands among the publishers."""
        flows = (state for state in self._topics.values() if isinstance(state, Flow))
        return [flow for flow in flows if Role.PUBLISHER in flow.keys]

    def _publish(self, state: Topic, message: Message, now: float) -> None:
        if not isinstance(state, Flow) or state.going or Role.SUBSCRIBER in state.keys:
            self._multicast(message, now)
            return
        self._forget_held(state, now)
        state.held.append(message, now)
        self._out.append(Withheld(message))
        self._ask_if_wanted(state, now)

    def _on_keys(self, state: Topic, now: float) -> None:
        if not isinstance(state, Flow):
            return
        if Role.SUBSCRIBER in state.keys:
            self._set(state, True, now)
        else:
            state.sure = False
            self._ask_soon(now)
            self._look(state, now)
            self._ask(state, now)

    def _on_event(self, event: graph.Event, now: float) -> None:
        match event:
            case graph.Moved():
                for flow in self._flows():
                    if flow.keys[Role.PUBLISHER] == event.key:
                        self._ask_soon(now)
                        self._look(flow, now)
            case graph.Exhausted(_, Multicast(body=Message() as publication) as multicast):
                own = self._flow(publication.topic)
                # It may be a part of the range only that is empty: the rendezvous point looks for itself.
                if own is not None and self._rendezvous(own) is False:  # repair 1
                    self._tell(multicast.origin, Word.STOP, publication.topic, now)
            case graph.Carried(_, sender, body) | graph.Told(sender, body) if is_timed(body):
                self._hear_timed(sender, body, now)
            case graph.Carried(_, sender, body) | graph.Told(sender, body):
                self._hear(sender, body, now)
            case graph.Delivered(_, Multicast(origin=sender, body=bytes() as body)):
                self._hear(sender, body, now)

    def _flow(self, topic: str) -> Flow | None:
        state = self._topics.get(topic)
        return state if isinstance(state, Flow) and Role.PUBLISHER in state.keys else None

    # Stop and go

    def _rendezvous(self, flow: Flow) -> bool | None:
        """At the rendezvous point: are there subscribers? None: this node is not it, or cannot tell now."""
        peer = self.graph.peer(flow.keys[Role.PUBLISHER])
        if peer is None or not peer.in_ring or peer.unsure:
            return None
        right = peer.neighbour(0, True)
        if right is not None and stands_in(right.key, flow.name, Role.PUBLISHER):
            return None
        return right is not None and stands_in(right.key, flow.name, Role.SUBSCRIBER)

    def _look(self, flow: Flow, now: float) -> None:
        """At the rendezvous point: if it is not as it was, tell all."""
        seen = self._rendezvous(flow)
        if seen is None or (flow.sure and flow.going == seen):
            return
        if flow.sure:
            self._announce(flow, now)
        else:
            self._set(flow, seen, now)
            peer = self.graph.peer(flow.keys[Role.PUBLISHER])
            left = None if peer is None else peer.neighbour(0, False)
            if left is not None and stands_in(left.key, flow.name, Role.PUBLISHER):
                self._tell(left.node, Word.ASK, flow.name, now)

    def _announce(self, flow: Flow, now: float) -> None:
        seen = self._rendezvous(flow)
        if seen is None:
            return
        self._set(flow, seen, now)
        low, high = edge(flow.name, Role.PUBLISHER), edge(flow.name, Role.SUBSCRIBER)
        body = say(Word.GO if seen else Word.STOP, flow.name)
        self._act(self.graph.multicast(low, high, self._next_identity(), body, now), now)

    def _set(self, flow: Flow, going: bool, now: float) -> None:
        flow.going, flow.sure = going, True
        self._forget_held(flow, now)
        while going and flow.held:
            entry = flow.held.popleft()
            if entry.has_custody or entry.since + self._hold_s >= now:
                self._multicast(entry.message, now)

    def _ask(self, flow: Flow, now: float) -> None:
        """The right neighbour, if it is a publisher (repair 2, and what a new publisher does)."""
        peer = self.graph.peer(flow.keys[Role.PUBLISHER])
        right = None if peer is None else peer.neighbour(0, True)
        if right is not None and stands_in(right.key, flow.name, Role.PUBLISHER):
            self._tell(right.node, Word.ASK, flow.name, now)

    def _ask_soon(self, now: float) -> None:
        """Something has changed."""
        self._ask_pause = self._ask_s
        soon = now + self._ask_s
        self._ask_at = soon if self._ask_at is None else min(self._ask_at, soon)

    def _hear(self, sender: int, body: bytes, now: float) -> None:
        word, topic = hear(body)
        flow = self._flow(topic)
        if flow is None:
            return
        match word:
            case Word.LOOK:
                self._announce(flow, now)
            case Word.ASK if flow.sure:
                self._tell(sender, Word.GOING if flow.going else Word.STOPPED, topic, now)
            case Word.STOP | Word.GO if self._rendezvous(flow) is None:
                self._set(flow, word is Word.GO, now)
            case Word.STOP | Word.GO:
                self._look(flow, now)  # the rendezvous point believes only its own eyes
            case Word.STOPPED | Word.GOING:
                self._compare(flow, word is Word.GOING, now)

    def _compare(self, flow: Flow, going: bool, now: float) -> None:
        """A neighbour has told its state."""
        seen = self._rendezvous(flow)
        if seen is not None:
            if going != seen:
                self._announce(flow, now)
        elif not flow.sure:
            self._set(flow, going, now)
        elif flow.going != going:
            self._ask_soon(now)
            words = say(Word.LOOK, flow.name)
            self._act(self.graph.carry(edge(flow.name, Role.SUBSCRIBER), words, now), now)

    # What is withheld

    def _forget_held(self, flow: Flow, now: float) -> None:
        long_ago = now - self._hold_s
        flow.held.forget(long_ago, min(long_ago, flow.unwanted))

    def _ask_if_wanted(self, flow: Flow, now: float) -> None:
        """The rendezvous point, if something with custody is held that it was not asked for; not too often."""
        if not flow.held:
            return
        later = now + self._ask_s
        self._held_at = later if self._held_at is None else min(self._held_at, later)
        if flow.held.last_custody > flow.unwanted and now >= flow.asked_at + self._ask_s:
            flow.asked_at = now
            words = say_timed(Word.WANTED, now, flow.name)
            self._act(self.graph.carry(edge(flow.name, Role.SUBSCRIBER), words, now), now)

    def _hear_timed(self, sender: int, body: bytes, now: float) -> None:
        word, moment, topic = hear_timed(body)
        flow = self._flow(topic)
        if flow is None:
            return
        if word is Word.UNWANTED:
            if flow.unwanted < moment <= now:
                flow.unwanted = moment
                self._forget_held(flow, now)
            return
        seen = self._rendezvous(flow)
        if seen:
            self._tell(sender, Word.GO, topic, now)
        elif seen is False:
            answer = say_timed(Word.UNWANTED, moment, topic)
            self._act(self.graph.tell(sender, answer, now), now)

    def _tell(self, node: int, word: Word, topic: str, now: float) -> None:
        self._act(self.graph.tell(node, say(word, topic), now), now)
