"""The subscribers' stretch cut into parts, each served by a node that the publisher picks: its helper.

A helper gets the publication with its part, delivers it and forwards it by multicast within the part. Parts leave no
gap, so subscribers that the publisher does not know are not missed. If it knows none, it publishes as SG-TBPS does.
Stop and go are those of SG-TBPS, too.

Guarantee: a subscriber that was confirmed before the publication, and that stays, is delivered it exactly once,
whatever the publisher knows and whatever nodes join and leave meanwhile. Conditions are those of every multicast (no
message is lost, no node crashes, one ring), but one: helpers may crash, if the shell notifies the publisher within
`keep_s` seconds (`on_peer_lost`), and no other crashed node is in the part. Reasons:

- The Skip Graph serves every key of a part, known or not.
- A helper that has left, or has not joined yet, locates the first peer of its part and sends the part there, and
  notifies the publisher that it is absent (the roster may be outdated).
- The publisher keeps parts for a while. When a helper is lost, it serves the stretches before and behind the dead one
  again, each by a member there. Parts are not acknowledged: that would cost another message for each. (Those of
  publications with custody are acknowledged, and not kept here: the layer above knows which did not arrive.)
- Duplicates that this causes are recognized by their id and delivered once.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from nodes.overlay.skipgraph import actions as graph
from nodes.overlay.topics.forwarding import Forwarding, RangeMulticast
from nodes.overlay.topics.keys import node_of
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact, Multicast, Way
from nodes.protocol.topic_messages import RosterControl, encode_contacts
from nodes.protocol.wire import CUSTODY, Message

KEEP_S = 30.0
MOST_KEPT = 1024  # parts; the oldest are dropped
PARAMETERS = ("keep_s",)


@dataclass(frozen=True, slots=True)
class Part:
    """All keys in [low, high), and the helper that serves them; None: no subscriber is known there."""

    low: bytes
    high: bytes
    helper: Contact | None


def fan_parts(subscribers: Sequence[Contact], count: int, low: bytes, high: bytes) -> list[Part]:
    """[low, high) in so many parts, by its known subscribers in key order; fewer if these are fewer.

    Subscriber j of S is in part j * count // S: the sizes of the parts differ by one at most. Ranges leave no gap: the
    first begins at `low`, the last ends at `high`, and each ends where the next one begins, at its first member. So an
    unknown subscriber lies in exactly one of them.
    """
    size = len(subscribers)
    count = min(size, count)
    begins = [-(-number * size // count) for number in range(count)]
    return [
        Part(
            subscribers[begin].key if begin else low,
            subscribers[end].key if end < size else high,
            choose_helper(subscribers[begin:end]),
        )
        for begin, end in pairwise([*begins, size])
    ]


def parts_around(part: Part, lost: Contact, subscribers: Sequence[Contact]) -> list[Part]:
    """The part again, when its helper has crashed: the stretches before and behind the helper.

    Within each of the two, no route leads over the lost helper.
    """
    pieces = []
    for low, high in ((part.low, lost.key), (lost.key + b"\0", part.high)):
        if low < high:
            members = [contact for contact in subscribers if low <= contact.key < high]
            pieces.append(Part(low, high, choose_helper(members) if members else None))
    return pieces


def choose_helper(members: Sequence[Contact]) -> Contact:
    """The helper for these members, a stretch in key order: the member with the most neighbours inside it.

    Of several the one nearest to the middle serves, of two the one with the smaller key. Two members are neighbours if
    all members between them share fewer bits with them than they share with each other: the vectors determine that.
    """
    near = neighbours_inside([contact.vector for contact in members])

    def rank(place: int) -> tuple[int, int, int]:
        off_middle = abs(2 * place - len(members) + 1)
        return -near[place], off_middle, place

    return members[min(range(len(members)), key=rank)]


def neighbours_inside(vectors: Sequence[int]) -> list[int]:
    """The number of neighbours of each member among these, in key order.

    Level after level, one bit splits a list into two. Members that are side by side in a list and separate there, or
    never separate, are neighbours.
    """
    near = [0] * len(vectors)
    lists = [list(range(len(vectors)))]
    for bit in reversed(range(VECTOR_BITS)):
        for line in lists:
            for one, other in pairwise(line):
                if (vectors[one] ^ vectors[other]) >> bit & 1:
                    near[one] += 1
                    near[other] += 1
        halves = (
            [place for place in line if vectors[place] >> bit & 1 == side]
            for line in lists
            for side in (0, 1)
        )
        lists = [half for half in halves if len(half) > 1]
    for line in lists:
        for one, other in pairwise(line):
            near[one] += 1
            near[other] += 1
    return near


class Division(Protocol):
    """How a method cuts the subscribers' stretch of a topic."""

    def parts(self, topic: str, priority: int, now: float) -> list[Part]:
        """The parts for a publication of this priority; none if no subscriber is known."""

    def subscribers(self, topic: str, now: float) -> list[Contact]:
        """The known subscribers, in key order."""


class _Sent(NamedTuple):
    """A part that was sent to a helper, and how long it is kept."""

    until: float
    part: Part
    message: Message


class PartMulticast(Forwarding):
    """Sends each part of the stretch to its helper."""

    def __init__(
        self, graph: TopicGraph, division: Division, way: Way, parameters: Mapping[str, Any]
    ) -> None:
        self._keep_s = float(parameters.get("keep_s", KEEP_S))
        self._graph = graph
        self._division = division
        self._way = way
        self._undivided = RangeMulticast(graph, way)
        self._sent: deque[_Sent] = deque(maxlen=MOST_KEPT)

    def send(self, message: Message, context: Context) -> None:
        parts = self._division.parts(message.topic, message.priority, context.now)
        for part in parts:
            self.serve(part, message, self._way, context)
        if not parts:
            self._undivided.send(message, context)

    def send_again(self, multicast: Multicast, message: Message, context: Context) -> None:
        if multicast.origin != self._graph.number or multicast.by != multicast.at:
            self._undivided.send_again(multicast, message, context)
            return
        lost = Contact(multicast.at, node_of(multicast.at), 0)
        part = Part(multicast.low, multicast.high, lost)
        self._serve_around(part, lost, message, context)

    def serve(self, part: Part, message: Message, way: Way, context: Context) -> None:
        """Send the part to its helper; if it has none, by multicast to its keys."""
        low, high, helper = part.low, part.high, part.helper
        if helper is None:
            self._graph.publish(low, high, message, context, way)
            return
        number, identity = self._graph.number, message.message_id
        start = Multicast(helper.key, helper.key, number, way, low, low, high, identity, message)
        self._graph.start_at(helper.node, start, context)
        while self._sent and self._sent[0].until < context.now:
            self._sent.popleft()
        if helper.node != number and not message.flags & CUSTODY:
            self._sent.append(_Sent(context.now + self._keep_s, part, message))

    def on_peer_lost(self, number: int, context: Context) -> None:
        sent, self._sent = self._sent, deque(maxlen=MOST_KEPT)
        for entry in sent:
            lost = entry.part.helper
            if entry.until < context.now:
                continue
            if lost is None or lost.node != number:
                self._sent.append(entry)
            else:
                self._serve_around(entry.part, lost, entry.message, context)

    def on_event(self, event: graph.Event, context: Context) -> bool:
        match event:
            case graph.Missed(key, Multicast(body=Message()) as multicast):
                own = Contact(key, self._graph.number, 0)
                for body in encode_contacts(RosterControl.ABSENT, [own]):
                    self._graph.notify(multicast.origin, body, context)
                return True
            case _:
                return False

    def _serve_around(self, part: Part, lost: Contact, message: Message, context: Context) -> None:
        for piece in parts_around(
            part, lost, self._division.subscribers(message.topic, context.now)
        ):
            # By split: a flood would stop at peers that have it already.
            self.serve(piece, message, Way.SPLIT, context)
