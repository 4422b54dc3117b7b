"""SG-TBPS with a roster: what the methods have in common whose publishers know who takes part (`roster`)."""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.messages import Multicast
from nodes.overlay.tbps.base import Action, Place
from nodes.overlay.tbps.keys import Role, edge, topic_of
from nodes.overlay.tbps.membership import Topic
from nodes.overlay.tbps.roster import (
    Roster,
    RosterWord,
    hear_contacts,
    is_roster_word,
    say_contacts,
)
from nodes.overlay.tbps.sg import SgTbps

PRESENT_S = 60.0  # between two words of the same participant
FORGET_AFTER = 3  # of them without a word


class Rostered(SgTbps):
    """A node that tells publishers of itself and, where it publishes, knows the others."""

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._rosters: dict[str, Roster] = {}
        self._present_at: float | None = None

    def next_deadline(self) -> float | None:
        moments = [at for at in (super().next_deadline(), self._present_at) if at is not None]
        return min(moments, default=None)

    def on_deadline(self, now: float) -> list[Action]:
        if self._present_at is not None and now >= self._present_at:
            self._present_at = now + PRESENT_S if self._topics else None
            for state in self._topics.values():
                self._say_present(state, now)
        return super().on_deadline(now)

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        for roster in self._rosters.values():
            roster.drop_node(number)
        return super().on_peer_lost(number, now)

    def _on_keys(self, state: Topic, now: float) -> None:
        super()._on_keys(state, now)
        self._present_at = self._present_at or now + PRESENT_S
        self._say_present(state, now)
        own = self._own_contact(state.name)
        peer = None if own is None else self.graph.peer(own.key)
        if own is not None and peer is not None and state.advertised:
            for neighbour in (peer.neighbour(0, False), peer.neighbour(0, True)):
                if neighbour is not None and topic_of(neighbour.key) == state.name:
                    for words in say_contacts(RosterWord.ROSTER, [own]):
                        self._act(self.graph.tell(neighbour.node, words, now), now)

    def _on_event(self, event: graph.Event, now: float) -> None:
        match event:
            case graph.Told(_, body) if is_roster_word(body):
                self._hear_roster(body, now)
            case graph.Delivered(_, Multicast(body=bytes() as body)) if is_roster_word(body):
                self._hear_roster(body, now)
            case graph.Removed(key):
                own = Contact(key, self.number, 0)
                self._multicast_words(topic_of(key), RosterWord.ABSENT, own, now)
            case _:
                super()._on_event(event, now)

    def _hear_roster(self, body: bytes, now: float) -> None:
        word, contacts = hear_contacts(body)
        for contact in contacts:
            topic = topic_of(contact.key)
            if topic not in self._topics:
                continue
            roster = self._roster(topic)
            if word is RosterWord.ROSTER:
                for words in say_contacts(RosterWord.PRESENT, roster.known(now)):
                    self._act(self.graph.tell(contact.node, words, now), now)
            if word is RosterWord.ABSENT:
                roster.drop(contact)
            else:
                roster.add(contact, now)

    def _say_present(self, state: Topic, now: float) -> None:
        own = self._own_contact(state.name)
        if own is not None:
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
            self._rosters[topic] = Roster(FORGET_AFTER * PRESENT_S)
        return self._rosters[topic]
