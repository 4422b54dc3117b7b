"""Scribe on the same Skip Graph, the rival of SG-TBPS (Banno 2013, 2.2): a tree for each topic.

Every node has one key in the graph, its number, whatever it subscribes to. A topic's hash leads to its root, by
membership vectors (`compass`). The ways of the subscribers to the root, reversed, are the topic's tree (`branches`).
A publisher looks for the root once, remembers it, and sends to it directly; from there everything goes down the tree.
So nodes pass on what they take no part in, and publishers send also if nobody subscribes.

When the root changes, because nodes come or crash: children and publishers find the new one as they renew, each
`renew_s` seconds or, the longer nothing changes nearby, more seldom (up to two `idle_period_s`). The old one joins the
tree of the new one, and a publication that comes to a node that is the root no more serves those below it and is passed
on towards the root. A new node does not take itself for a root at once.
What is promised: a subscriber that was confirmed before the publication, and that stays, is delivered it exactly once,
if no message is lost and the graph has not changed for a while (the lists of all levels, and `renew_s`). Subscriptions
may come and go. Else publications may miss subscribers: those that were sent to a crashed root until the publisher
has found the next, and those below a crashed node, or below one of two roots, until the branches are renewed. A
publisher whose shell knows of the crash (`on_peer_lost`) keeps what it publishes until it knows the next root. With
custody nobody is missed: `traffic` says why.
"""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

from nodes.overlay.topics.base import Action, Advertised, Asked, Place, Refuse, Restored, Subscribed
from nodes.overlay.topics.keys import Role, edge
from nodes.overlay.topics.membership import NEVER_S
from nodes.overlay.topics.scribe.forwarding import Traffic
from nodes.overlay.topics.scribe.member import Rooted, node_key
from nodes.overlay.topics.scribe.publishers import Publishers
from nodes.overlay.topics.scribe.refresh import Renewals
from nodes.overlay.topics.scribe.sources import Sources
from nodes.overlay.topics.scribe.tree import Branches
from nodes.overlay.topics.scribe.uplink import Climber, Climbing
from nodes.parameters import check_known, seconds
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
    ScribeWord,
    course_of,
)
from nodes.protocol.skipgraph_codec import decode
from nodes.protocol.wire import Kind, Message, WireError, message_id

RENEW_S = 5.0
IDLE_PERIODS = 2  # of the graph, between two renewals where nothing changes: a branch costs two messages each time
FORGET_AFTER = 3  # renewals without a word
KEEP_S = 60.0  # for new children, what somebody is responsible for: at least, and until branches are renewed
SELDOM = 2  # renewals where nothing changes, then publishers ask for the root
MOST_HOPS = 255


class Scribe(Rooted):
    """A node of Scribe."""

    method = "scribe"
    relay_free: ClassVar[bool] = False
    by_area: ClassVar[bool] = False
    stops: ClassVar[bool] = False
    ways: ClassVar[tuple[str, ...]] = ()

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        check_known(self.method, parameters, ("period_s", "idle_period_s", "renew_s"))
        super().__init__(self.method, place, parameters, random)
        renew_s = seconds(self.method, parameters, "renew_s", RENEW_S, NEVER_S)
        longest_s = max(renew_s, IDLE_PERIODS * self._idle_s)
        self._renewals = Renewals(renew_s, longest_s)
        self.branches = Branches(
            self._heading,
            self._tell,
            self._next_ticket,
            lambda topic: self._out.append(Subscribed(topic)),
            self._welcome,
            FORGET_AFTER * longest_s,
        )
        self._climbing = Climbing(self._heading, self._send_up, self._arrive)
        self._traffic = Traffic(
            self.branches,
            self._climbing.climb,
            self._heading,
            self._next_attempt,
            self._do,
            max(KEEP_S, longest_s),
        )
        self._sources = Sources(
            self._look_for_root,
            lambda root, message: self._traffic.publish(root, self.number, message, self._now),
            lambda topic: self._out.append(Advertised(topic)),
        )
        self._publishers = Publishers(FORGET_AFTER * SELDOM * longest_s)
        self._attempts = place.incarnation
        self._tick_at: float | None = None

    # What the node wants

    def advertise(self, topic: str, now: float) -> list[Action]:
        edge(topic, Role.PUBLISHER)  # every method refuses the same topics
        self._begin(now)
        self._sources.advertise(topic)
        return self._done()

    def withdraw(self, topic: str, now: float) -> list[Action]:
        self._begin(now)
        self._sources.withdraw(topic)
        return self._done()

    def subscribe(self, topic: str, now: float) -> list[Action]:
        edge(topic, Role.SUBSCRIBER)
        self._begin(now)
        self.branches.subscribe(topic)
        return self._done()

    def unsubscribe(self, topic: str, now: float) -> list[Action]:
        self._begin(now)
        self.branches.unsubscribe(topic)
        return self._done()

    def publish(self, message: Message, now: float) -> list[Action]:
        self._begin(now)
        self._sources.publish(message, now)
        return self._done()

    def ask(self, topic: str, words: bytes, now: float) -> list[Action]:
        self._begin(now)
        self._climbing.climb(Question(self.number, 0, topic, words))
        return self._done()

    def leave(self, now: float) -> list[Action]:
        self._begin(now)
        self.branches.leave()
        self._sources.leave()
        self._act(self.graph.remove(node_key(self.number), now))
        return self._done()

    @property
    def left(self) -> bool:
        return self.graph.left

    def serve_again(self, message: Message, now: float) -> list[Action]:
        self._begin(now)
        self._traffic.serve_again(message, now)
        return self._done()

    def describe(self) -> dict[str, Any]:
        return self.graph.describe()

    def holds(self, message_id: int) -> bool:
        waiting = [
            one for one in (*self._climbing, *self._sources.waiting()) if _is(one, message_id)
        ]
        return bool(waiting) or self._traffic.holds(message_id)

    # What happens

    def on_message(self, sender: int, message: Message, now: float) -> list[Action]:
        self._begin(now)
        try:
            if message.kind is Kind.OVERLAY:
                self._act(self.graph.on_message(sender, decode(message.payload), now))
            else:
                self._traffic.on_publication(sender, message, now)
        except WireError as error:
            self._out.append(Refuse(sender, str(error)))
        return self._done()

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        self._begin(now)
        self._renewals.soon(now)
        self._act(self.graph.on_peer_lost(number, now))
        self.branches.forget_node(number)
        self._sources.forget_node(number)
        self._publishers.forget_node(number)
        return self._done()

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        self._begin(now)
        self._renewals.soon(now)
        self._act(self.graph.on_peer_found(number, now))
        return self._done()

    def next_deadline(self) -> float | None:
        if not self._begun:
            return 0.0  # at once: every node has its key
        moments = [at for at in (self.graph.next_deadline(), self._tick_at) if at is not None]
        return min(moments, default=None)

    def on_deadline(self, now: float) -> list[Action]:
        self._begin(now)
        if self._tick_at is not None and now >= self._tick_at:
            self._tick_at = None
            self._tick()
        self._act(self.graph.on_deadline(now))
        return self._done()

    # From time to time

    def _tick(self) -> None:
        renew = self._renewals.due(self._now)
        self.compass.tick(renew)
        self.branches.tick(renew, self._now)
        self._climbing.go_on()
        # The old root passes on what comes to it: publishers need not be told at once.
        self._sources.tick(renew and (not self._renewals.calm or self._renewals.every(SELDOM)))
        self._traffic.tick(self._now)
        self._publishers.forget_old(self._now)
        for topic, node in self._publishers.hand_over(self._is_elsewhere):
            self._climbing.climb(Look(node, 0, topic))

    def _is_elsewhere(self, topic: str) -> bool:
        """The topic's root, as far as it is known."""
        return isinstance(self._heading(topic), int)

    def _done(self) -> list[Action]:
        parts = (self.branches, self._sources, self._climbing, self._traffic, self._publishers)
        if self._tick_at is None and any(parts):
            self._tick_at = self._now + self._period_s * (0.9 + 0.2 * self._random.random())
        out, self._out = self._out, []
        return out

    def _next_attempt(self) -> int:
        self._attempts += 1
        return message_id(self.number, self._attempts)

    def _look_for_root(self, topic: str, root: int | None) -> None:
        """Where it was, if that is known: it answers itself, or passes the question on."""
        look = Look(self.number, 0, topic)
        if root is None or root == self.number or self.graph.suspects(root):
            self._climbing.climb(look)
        else:
            self._tell(root, look)

    def _do(self, action: Action) -> None:
        self._out.append(action)

    def _welcome(self, child: int, topic: str) -> None:
        self._traffic.welcome(child, topic)

    def _send_up(self, node: int, one: Climber) -> None:
        if isinstance(one, Message):
            self._traffic.send(node, one, course_of(one))
        elif one.hops < MOST_HOPS:
            self._tell(node, replace(one, hops=one.hops + 1))

    def _arrive(self, one: Climber) -> None:
        """This node is the root."""
        match one:
            case Look():
                self._publishers.add(one.topic, one.asker, self._now)
                self._tell(one.asker, Root(one.topic))
            case Question():
                self._out.append(Asked(one.asker, one.topic, one.words))
                for node in self._publishers.of(one.topic):
                    if node not in (one.asker, self.number):
                        self._tell(node, Inquiry(one.asker, one.topic, one.words))
            case Message():
                self._traffic.on_top(one)

    # Words

    def _on_restored(self) -> None:
        self._out += [Restored(topic) for topic in self.branches.subscribed()]

    def _on_moved(self) -> None:
        self._renewals.soon(self._now)

    def _hear(self, sender: int, word: ScribeWord) -> None:
        match word:
            case Ask():
                self.compass.on_ask(word)
            case Answer():
                self.compass.on_answer(word)
                self.branches.look()
                self._climbing.go_on()
            case Join():
                self.branches.on_join(sender, word, self._now)
            case Joined():
                self.branches.on_joined(sender, word)
            case Leave():
                self._renewals.soon(self._now)
                self.branches.on_leave(sender, word)
            case Look() | Question():
                self._climbing.climb(word)
            case Inquiry():
                self._out.append(Asked(word.asker, word.topic, word.words))
            case Root():
                self._sources.on_root(sender, word.topic)


def _is(one: Climber, message_id: int) -> bool:
    return isinstance(one, Message) and one.message_id == message_id
