"""What the methods have in common whose publishers give parts of the subscribers' stretch to nodes that they pick.

A helper gets the publication with its part, delivers it and goes on by multicast within the part. Parts leave no gap,
so nobody is missed whom the publisher does not know. Nobody known: as SG-TBPS. Stop and go are SG-TBPS', too.

What is promised: a subscriber that was confirmed before the publication, and that stays, is delivered it exactly once,
whomever the publisher knows and whatever inserts and leaves go on meanwhile. Conditions as for every multicast (no
message is lost, no node crashes, one ring), but one: helpers may crash, if the shell tells the publisher within
`keep_s` seconds (`on_peer_lost`), and no other crashed node is in the part. Why:
- The Skip Graph serves every key of a part, known or not.
- A helper that has left, or is only about to come, locates the first peer of its part and sends the part there, and
  tells the publisher that it is absent (what is known may be old).
- The publisher keeps parts for a while. When a helper is lost, it serves what lies before and behind the dead one
  again, each by a member there. Nothing acknowledges a part: that would be a message more for each of them. (Those of
  publications with custody are acknowledged, and not kept here: the layer above knows which did not arrive.)
- What comes twice by this is known by its id and delivered once.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.base import Action, Place
from nodes.overlay.topics.keys import Role, node_of, stands_in
from nodes.overlay.topics.parts import Part, parts_around
from nodes.overlay.topics.rostered import Rostered
from nodes.protocol.skipgraph_messages import Contact, Multicast, Way
from nodes.protocol.topic_messages import RosterWord, say_contacts
from nodes.protocol.wire import CUSTODY, Message

KEEP_S = 30.0
MOST_KEPT = 1024  # parts; the oldest are forgotten


class _Sent(NamedTuple):
    """A part that was given to a helper, and how long it is kept."""

    until: float
    part: Part
    message: Message


class Parted(Rostered, ABC):
    """A node that publishes in parts."""

    more_parameters = (*Rostered.more_parameters, "keep_s")

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        super().__init__(place, parameters, random)
        self._keep_s = float(parameters.get("keep_s", KEEP_S))
        self._sent: deque[_Sent] = deque(maxlen=MOST_KEPT)

    @abstractmethod
    def parts(self, topic: str, priority: int, now: float) -> list[Part]:
        """How a publication of this priority would be cut; none if no subscriber is known."""

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        actions = super().on_peer_lost(number, now)
        sent, self._sent = self._sent, deque(maxlen=MOST_KEPT)
        for entry in sent:
            lost = entry.part.helper
            if entry.until < now:
                continue
            if lost is None or lost.node != number:
                self._sent.append(entry)
            else:
                self._serve_around(entry.part, lost, entry.message, now)
        return actions + self._done()

    def _serve_again(self, multicast: Multicast, message: Message, now: float) -> None:
        if multicast.origin != self.number or multicast.by != multicast.at:
            super()._serve_again(multicast, message, now)
            return
        lost = Contact(multicast.at, node_of(multicast.at), 0)
        part = Part(multicast.low, multicast.high, lost)
        self._serve_around(part, lost, message, now)

    def _serve_around(self, part: Part, lost: Contact, message: Message, now: float) -> None:
        for piece in parts_around(part, lost, self._subscribers(message.topic, now)):
            # By split: a flood would stop at those who have it already.
            self._serve(piece, message, Way.SPLIT, now)

    def _multicast(self, message: Message, now: float) -> None:
        parts = self.parts(message.topic, message.priority, now)
        for part in parts:
            self._serve(part, message, self._way, now)
        if not parts:
            Rostered._multicast(self, message, now)

    def _serve(self, part: Part, message: Message, way: Way, now: float) -> None:
        low, high, helper = part.low, part.high, part.helper
        identity = message.message_id
        if helper is None:
            self._act(self.graph.multicast(low, high, identity, message, now, way), now)
            return
        start = Multicast(
            helper.key, helper.key, self.number, way, low, low, high, identity, message
        )
        self._act(self.graph.start_at(helper.node, start, now), now)
        while self._sent and self._sent[0].until < now:
            self._sent.popleft()
        if helper.node != self.number and not message.flags & CUSTODY:
            self._sent.append(_Sent(now + self._keep_s, part, message))

    def _on_event(self, event: graph.Event, now: float) -> None:
        match event:
            case graph.Missed(key, Multicast(body=Message()) as multicast):
                for words in say_contacts(RosterWord.ABSENT, [Contact(key, self.number, 0)]):
                    self._act(self.graph.tell(multicast.origin, words, now), now)
            case _:
                super()._on_event(event, now)

    def _subscribers(self, topic: str, now: float) -> list[Contact]:
        """Those that are known and not taken for dead, in key order."""
        return [
            contact
            for contact in self._roster(topic).known(now)
            if stands_in(contact.key, topic, Role.SUBSCRIBER)
            and not self.graph.suspects(contact.node)
        ]
