"""Participants of a topic, as each of its publishers knows them: for methods that send to nodes of their choice.

A node that has inserted a key announces itself to all publishers (PRESENT, by multicast to their stretch), and repeats
that periodically. A leaving node sends ABSENT; for a dead node its left neighbour does. A new publisher asks the
publishers beside it for their rosters (ROSTER, answered by PRESENT), and if there are none, all subscribers. A
publisher that was asked forwards later changes for a while. Participants without a message for a long time are
forgotten. Only nodes with a publisher's key get these messages, and have a roster. A roster may be outdated: no
delivery may depend on it.

A publisher that subscribes, too, is among the subscribers (Banno 2013): it has no roster, and publishes as with
SG-TBPS, from inside the stretch.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.keys import Role, edge, stands_in, topic_of
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.topic import Topic
from nodes.overlay.topics.topic_graph import NEVER_S, Context, TopicGraph
from nodes.parameters import seconds
from nodes.protocol.skipgraph_messages import Contact, Multicast
from nodes.protocol.topic_messages import (
    RosterControl,
    decode_contacts,
    encode_contacts,
    is_roster_control,
)
from nodes.protocol.wire import Message

LATE_S = 10.0  # the longest delay of a message: an older PRESENT may arrive so long after ABSENT
PRESENT_S = 3600.0  # between two messages of the same participant
FORGET_AFTER = 3  # of them without a message
PARAMETERS = ("present_s",)


def presence(method: str, parameters: Mapping[str, Any]) -> float:
    """How often a participant announces itself to publishers, by the parameter `present_s`."""
    return seconds(method, parameters, "present_s", PRESENT_S, NEVER_S)


class Roster:
    """The participants of one topic, and the time of the last message about each."""

    def __init__(self, forget_s: float) -> None:
        self._forget_s = forget_s
        self._contacts: dict[bytes, tuple[Contact, float]] = {}
        self._gone: dict[bytes, float] = {}

    def add(self, contact: Contact, now: float) -> bool:
        """Add a participant; whether it is new. A participant that has just left is not added."""
        if now - self._gone.get(contact.key, -LATE_S) < LATE_S:
            return False
        new = contact.key not in self._contacts
        self._contacts[contact.key] = contact, now
        return new

    def drop(self, contact: Contact, now: float) -> bool:
        """Remove a participant; whether it was known."""
        self._gone = {key: at for key, at in self._gone.items() if now - at < LATE_S}
        self._gone[contact.key] = now
        return self._contacts.pop(contact.key, None) is not None

    def drop_node(self, node: int) -> None:
        self._contacts = {k: entry for k, entry in self._contacts.items() if entry[0].node != node}

    def known(self, now: float) -> list[Contact]:
        """The participants with a message within `forget_s`, in key order."""
        self._contacts = {
            key: entry for key, entry in self._contacts.items() if now - entry[1] <= self._forget_s
        }
        return [self._contacts[key][0] for key in sorted(self._contacts)]


class Rosters:
    """The rosters of a node, by topic; made when they are needed."""

    def __init__(self, present_s: float) -> None:
        self._forget_s = FORGET_AFTER * present_s
        self._rosters: dict[str, Roster] = {}

    def __iter__(self) -> Iterator[Roster]:
        return iter(self._rosters.values())

    def of(self, topic: str) -> Roster:
        if topic not in self._rosters:
            self._rosters[topic] = Roster(self._forget_s)
        return self._rosters[topic]

    def forget(self, topic: str) -> None:
        self._rosters.pop(topic, None)

    def on_keys(self) -> None:
        """The node's keys, or the keys that it wants, have changed."""

    def on_publication(self, message: Message) -> None:
        """The node publishes this message."""


class Participants:
    """No participants are known: for methods whose publishers need not know them."""

    def forget(self, topic: Topic) -> None:
        """Forget the participants of the topic before its keys changed: the node got no messages about them since."""

    def on_keys(self, topic: Topic, context: Context) -> None:
        """The node's keys in the topic have changed."""

    def on_settled(self) -> None:
        """The node may want other keys than before."""

    def on_publication(self, message: Message) -> None:
        """The node publishes this message."""

    def forget_node(self, number: int) -> None:
        """The node of this number is dead; the graph has not been notified yet."""

    def on_event(self, event: graph.Event, context: Context) -> bool:
        """Handle an event of the graph; whether no other part is concerned."""
        return False

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, context: Context) -> None:
        """A deadline has passed, perhaps that of another part."""


class KnownParticipants(Participants):
    """A node announces itself to publishers and, where it publishes, knows the other participants."""

    def __init__(
        self, graph: TopicGraph, membership: Membership, rosters: Rosters, present_s: float
    ) -> None:
        self._graph = graph
        self._membership = membership
        self._rosters = rosters
        self._present_s = present_s
        self._rights: dict[bytes, Contact] = {}  # right neighbours of own keys
        self._asked: dict[tuple[str, int], float] = {}  # topic, asking node -> until when
        self._present_at: float | None = None

    def roster(self, topic: str) -> Roster:
        """The known participants of the topic."""
        return self._rosters.of(topic)

    def count(self, topic: str, now: float) -> int:
        """The number of participants, including this node."""
        own = self._membership.contact(topic)
        keys = {contact.key for contact in self._rosters.of(topic).known(now)}
        return len(keys if own is None else keys | {own.key})

    def subscribers(self, topic: str, now: float) -> list[Contact]:
        """The known subscribers that are not taken for dead, in key order."""
        return [
            contact
            for contact in self._rosters.of(topic).known(now)
            if stands_in(contact.key, topic, Role.SUBSCRIBER)
            and not self._graph.suspects(contact.node)
        ]

    def next_deadline(self) -> float | None:
        return self._present_at

    def on_deadline(self, context: Context) -> None:
        if self._present_at is not None and context.now >= self._present_at:
            topics = list(self._membership)
            self._present_at = context.now + self._present_s if topics else None
            for topic in topics:
                self._announce_present(topic, context)

    def on_publication(self, message: Message) -> None:
        self._rosters.on_publication(message)

    def forget_node(self, number: int) -> None:
        for roster in self._rosters:
            roster.drop_node(number)

    def on_settled(self) -> None:
        self._rosters.on_keys()

    def forget(self, topic: Topic) -> None:
        self._rosters.forget(topic.name)

    def on_keys(self, topic: Topic, context: Context) -> None:
        self._present_at = self._present_at or context.now + self._present_s
        if Role.PUBLISHER in topic.keys:
            self._ask_for_roster(topic, context)
        self._announce_present(topic, context)
        self._rosters.on_keys()

    def on_event(self, event: graph.Event, context: Context) -> bool:
        match event:
            case graph.Notified(_, body) if is_roster_control(body):
                self._on_control(body, context)
            case graph.Delivered(_, Multicast(body=bytes() as body)) if is_roster_control(body):
                self._on_control(body, context)
            case graph.Removed(key):
                own = Contact(key, self._graph.number, 0)
                self._notify_publishers(topic_of(key), RosterControl.ABSENT, own, context)
            case graph.Moved(key):
                self._look_right(key, context)
                return False
            case _:
                return False
        return True

    def _ask_for_roster(self, topic: Topic, context: Context) -> None:
        peer = self._graph.node.peer(topic.keys[Role.PUBLISHER])
        if peer is None:
            return
        (body,) = encode_contacts(RosterControl.ROSTER, [peer.me])
        beside = [peer.neighbour(0, rightwards) for rightwards in (False, True)]
        publishers = [c for c in beside if c and stands_in(c.key, topic.name, Role.PUBLISHER)]
        for contact in publishers:
            self._graph.notify(contact.node, body, context)
        if not publishers:
            low, high = edge(topic.name, Role.SUBSCRIBER), edge(topic.name, Role.SUBSCRIBER + 1)
            self._graph.notify_all(low, high, body, context)

    def _look_right(self, key: bytes, context: Context) -> None:
        """If the right neighbour has died, notify the publishers."""
        peer = self._graph.node.peer(key)
        if peer is None:
            self._rights.pop(key, None)
            return
        before, self._rights[key] = self._rights.get(key), peer.right
        if before is None or before.key == peer.right.key or not self._graph.suspects(before.node):
            return
        topic = topic_of(key)
        if any(stands_in(before.key, topic, role) for role in Role):
            self._notify_publishers(topic, RosterControl.ABSENT, before, context)

    def _on_control(self, body: bytes, context: Context) -> None:
        control, contacts = decode_contacts(body)
        for contact in contacts:
            topic = topic_of(contact.key)
            if control is RosterControl.ROSTER:
                self._answer(topic, contact.node, context)
            if self._membership.published(topic) is None:
                continue
            if control is RosterControl.ABSENT:
                new = self._rosters.of(topic).drop(contact, context.now)
            else:
                new = self._rosters.of(topic).add(contact, context.now)
            if new:
                self._pass_on(topic, control, contact, context)

    def _answer(self, topic: str, asker: int, context: Context) -> None:
        """Send a new publisher the known participants, and changes for a while."""
        own = self._membership.contact(topic)
        known = [] if own is None else [own]
        if self._membership.published(topic) is not None:
            known = self._rosters.of(topic).known(context.now)
            self._asked[topic, asker] = context.now + LATE_S
        for body in encode_contacts(RosterControl.PRESENT, known):
            self._graph.notify(asker, body, context)

    def _pass_on(
        self, topic: str, control: RosterControl, contact: Contact, context: Context
    ) -> None:
        self._asked = {asker: until for asker, until in self._asked.items() if until >= context.now}
        kind = RosterControl.ABSENT if control is RosterControl.ABSENT else RosterControl.PRESENT
        for name, asker in self._asked:
            if name == topic and asker != contact.node:
                for body in encode_contacts(kind, [contact]):
                    self._graph.notify(asker, body, context)

    def _announce_present(self, topic: Topic, context: Context) -> None:
        own = self._membership.contact(topic.name)
        if own is not None:
            if Role.PUBLISHER in topic.keys:
                self._rosters.of(topic.name).add(own, context.now)
            self._notify_publishers(topic.name, RosterControl.PRESENT, own, context)

    def _notify_publishers(
        self, topic: str, control: RosterControl, contact: Contact, context: Context
    ) -> None:
        low, high = edge(topic, Role.PUBLISHER), edge(topic, Role.SUBSCRIBER)
        for body in encode_contacts(control, [contact]):
            self._graph.notify_all(low, high, body, context)
