"""SG-TBPS with a roster: what the methods have in common whose publishers know who takes part (`roster`).

A publisher that subscribes, too, stands among the subscribers (Banno 2013): it has no roster, and publishes as with
SG-TBPS, from inside the stretch.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.base import Action, Place
from nodes.overlay.topics.keys import Role, edge, stands_in, topic_of
from nodes.overlay.topics.membership import NEVER_S
from nodes.overlay.topics.roster import LATE_S, Roster
from nodes.overlay.topics.sg import SgTbps
from nodes.overlay.topics.topic import Topic
from nodes.parameters import seconds
from nodes.protocol.skipgraph_messages import Contact, Multicast
from nodes.protocol.topic_messages import RosterWord, hear_contacts, is_roster_word, say_contacts

PRESENT_S = 3600.0  # between two words of the same participant
FORGET_AFTER = 3  # of them without a word


class Rostered(SgTbps):
    """A node that tells publishers of itself and, where it publishes, knows the others."""

    more_parameters = (*SgTbps.more_parameters, "present_s")

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._present_s = seconds(self.method, parameters, "present_s", PRESENT_S, NEVER_S)
        self._forget_s = FORGET_AFTER * self._present_s
        self._rosters: dict[str, Roster] = {}
        self._rights: dict[bytes, Contact] = {}  # of own keys
        self._asked: dict[tuple[str, int], float] = {}  # topic, who has asked, until when
        self._present_at: float | None = None

    def next_deadline(self) -> float | None:
        moments = [at for at in (super().next_deadline(), self._present_at) if at is not None]
        return min(moments, default=None)

    def on_deadline(self, now: float) -> list[Action]:
        if self._present_at is not None and now >= self._present_at:
            self._present_at = now + self._present_s if self._topics else None
            for state in self._topics.values():
                self._say_present(state, now)
        return super().on_deadline(now)

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        for roster in self._rosters.values():
            roster.drop_node(number)
        return super().on_peer_lost(number, now)

    def _on_keys(self, state: Topic, now: float) -> None:
        self._rosters.pop(state.name, None)  # of an earlier time; nobody told what happened since
        super()._on_keys(state, now)
        self._present_at = self._present_at or now + self._present_s
        if Role.PUBLISHER in state.keys:
            self._ask_for_roster(state, now)
        self._say_present(state, now)

    def _ask_for_roster(self, state: Topic, now: float) -> None:
        peer = self.graph.peer(state.keys[Role.PUBLISHER])
        if peer is None:
            return
        (words,) = say_contacts(RosterWord.ROSTER, [peer.me])
        beside = [peer.neighbour(0, rightwards) for rightwards in (False, True)]
        publishers = [c for c in beside if c and stands_in(c.key, state.name, Role.PUBLISHER)]
        for contact in publishers:
            self._act(self.graph.tell(contact.node, words, now), now)
        if not publishers:
            low, high = edge(state.name, Role.SUBSCRIBER), edge(state.name, Role.SUBSCRIBER + 1)
            identity = self._next_identity()
            self._act(self.graph.multicast(low, high, identity, words, now), now)

    def _on_event(self, event: graph.Event, now: float) -> None:
        match event:
            case graph.Told(_, body) if is_roster_word(body):
                self._hear_roster(body, now)
            case graph.Delivered(_, Multicast(body=bytes() as body)) if is_roster_word(body):
                self._hear_roster(body, now)
            case graph.Removed(key):
                own = Contact(key, self.number, 0)
                self._multicast_words(topic_of(key), RosterWord.ABSENT, own, now)
            case graph.Moved(key):
                self._look_right(key, now)
                super()._on_event(event, now)
            case _:
                super()._on_event(event, now)

    def _look_right(self, key: bytes, now: float) -> None:
        """Who finds his right neighbour dead tells the publishers."""
        peer = self.graph.peer(key)
        if peer is None:
            self._rights.pop(key, None)
            return
        before, self._rights[key] = self._rights.get(key), peer.right
        if before is None or before.key == peer.right.key or not self.graph.suspects(before.node):
            return
        topic = topic_of(key)
        if any(stands_in(before.key, topic, role) for role in Role):
            self._multicast_words(topic, RosterWord.ABSENT, before, now)

    def _hear_roster(self, body: bytes, now: float) -> None:
        word, contacts = hear_contacts(body)
        for contact in contacts:
            topic = topic_of(contact.key)
            if word is RosterWord.ROSTER:
                self._answer(topic, contact.node, now)
            if self._flow(topic) is None:
                continue
            if word is RosterWord.ABSENT:
                new = self._roster(topic).drop(contact, now)
            else:
                new = self._roster(topic).add(contact, now)
            if new:
                self._pass_on(topic, word, contact, now)

    def _answer(self, topic: str, asker: int, now: float) -> None:
        """A new publisher gets what is known here, and for a while what is heard of later."""
        own = self._own_contact(topic)
        known = [] if own is None else [own]
        if self._flow(topic) is not None:
            known = self._roster(topic).known(now)
            self._asked[topic, asker] = now + LATE_S
        for words in say_contacts(RosterWord.PRESENT, known):
            self._act(self.graph.tell(asker, words, now), now)

    def _pass_on(self, topic: str, word: RosterWord, contact: Contact, now: float) -> None:
        self._asked = {asker: until for asker, until in self._asked.items() if until >= now}
        kind = RosterWord.ABSENT if word is RosterWord.ABSENT else RosterWord.PRESENT
        for name, asker in self._asked:
            if name == topic and asker != contact.node:
                for words in say_contacts(kind, [contact]):
                    self._act(self.graph.tell(asker, words, now), now)

    def _say_present(self, state: Topic, now: float) -> None:
        own = self._own_contact(state.name)
        if own is not None:
            if Role.PUBLISHER in state.keys:
                self._roster(state.name).add(own, now)
            self._multicast_words(state.name, RosterWord.PRESENT, own, now)

    def _multicast_words(self, topic: str, word: RosterWord, contact: Contact, now: float) -> None:
        low, high = edge(topic, Role.PUBLISHER), edge(topic, Role.SUBSCRIBER)
        for words in say_contacts(word, [contact]):
            identity = self._next_identity()
            self._act(self.graph.multicast(low, high, identity, words, now), now)

    def _participants(self, topic: str, now: float) -> int:
        """How many there are, this node too."""
        own = self._own_contact(topic)
        keys = {contact.key for contact in self._roster(topic).known(now)}
        return len(keys if own is None else keys | {own.key})

    def _own_contact(self, topic: str) -> Contact | None:
        state = self._topics.get(topic)
        for role in (Role.SUBSCRIBER, Role.PUBLISHER):
            peer = self.graph.peer(state.keys[role]) if state and role in state.keys else None
            if peer is not None:
                return peer.me
        return None

    def _roster(self, topic: str) -> Roster:
        if topic not in self._rosters:
            self._rosters[topic] = Roster(self._forget_s)
        return self._rosters[topic]
