"""PSG-TBPS (Kita 2025, 5.3): the more urgent a publication, the more nodes start multicasts to the subscribers at once.

As SG-TBPS; besides, the publisher sends the publication to support nodes, in one hop each, and each of them starts a
multicast of its own. A subscriber takes the copy that arrives first. With `split` nothing is suppressed between starts,
as in the thesis: messages multiply by the number of starts. With `flood` a peer forwards a publication once.

The thesis assumes that a publisher knows the vectors and addresses of the topic's participants; here it has a roster
(`participants`). Support nodes take part in the topic, so no node becomes a relay.

Start nodes (5.3.1): the method uses as many bits of the membership vectors as give each participant of the topic a
value of its own. In this space the start nodes are spaced evenly, from the publisher's own vector upward: the publisher
alone at priority 1, a quarter of the space at 5. `next`: a vector that no node has, or that serves already, is replaced
by the next one upward, cyclically; `exact`: it is dropped. Where the thesis says "until m comes again", the method
takes exactly the number of slots that the thesis counts: with an interval that does not divide the space, all would
serve otherwise.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import ceil, floor, log2
from random import Random
from typing import Any

from nodes.overlay.topics import participants as knowledge
from nodes.overlay.topics.base import Place
from nodes.overlay.topics.forwarding import Forwarding, RangeMulticast, subscribers_range, way_of
from nodes.overlay.topics.keys import Role, edge, stands_in
from nodes.overlay.topics.membership import Membership
from nodes.overlay.topics.method import PARAMETERS, SkipGraphMethod
from nodes.overlay.topics.participants import KnownParticipants, Rosters, presence
from nodes.overlay.topics.stop_go import StopGo
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.parameters import check_known
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact, Multicast, Way
from nodes.protocol.wire import Message

SUPPORT = ("next", "exact")
SUPPORT_FROM = ("publishers", "participants")
SUPPORT_PARAMETERS = ("support", "support_from")


def space_bits(participants: int) -> int:
    """The number of vector bits that the method uses."""
    return max(1, ceil(log2(max(participants, 1))))


def start_count(bits: int, priority: int) -> int:
    """The number of start nodes: the publisher alone at priority 1, a quarter of the space at 5."""
    return max(1, floor(1 + ((1 << bits) / 4 - 1) * (priority - 1) / 4))


def slots(bits: int, own: int, priority: int) -> list[int]:
    """The vectors that should start, the publisher's own one first."""
    space, count = 1 << bits, start_count(bits, priority)
    return [(own + number * (space // count)) % space for number in range(count)]


def support_nodes(
    own: Contact, serving: Sequence[Contact], participants: int, priority: int, support: str
) -> list[Contact]:
    """The start nodes besides the publisher `own`; of equal vectors the smaller key first.

    `serving` are the candidates, `participants` counts all of the topic.
    """
    bits = space_bits(participants)
    shift = VECTOR_BITS - bits
    line = sorted((contact.vector >> shift, contact.key, contact) for contact in serving)
    taken = {own.key}
    found = []
    for slot in slots(bits, own.vector >> shift, priority)[1:]:
        begin = bisect_left(line, (slot, b""), key=lambda entry: entry[:2])
        for prefix, key, contact in line[begin:] + line[:begin]:
            if support == "exact" and prefix != slot:
                break
            if key not in taken:
                taken.add(key)
                found.append(contact)
                break
            if support == "exact":
                break
    return found


class SupportedMulticast(Forwarding):
    """One multicast of the publisher, and one of each support node."""

    def __init__(
        self,
        graph: TopicGraph,
        membership: Membership,
        participants: KnownParticipants,
        way: Way,
        parameters: Mapping[str, Any],
    ) -> None:
        self._support = _choice(parameters, "support", SUPPORT)
        self._support_from = _choice(parameters, "support_from", SUPPORT_FROM)
        self._graph = graph
        self._membership = membership
        self._participants = participants
        self._way = way
        self._own = RangeMulticast(graph, way)

    def support_nodes(self, topic: str, priority: int, now: float) -> list[Contact]:
        """The start nodes of a publication of this priority besides this node."""
        own = self._membership.contact(topic)
        if own is None:
            return []
        serving = self._participants.roster(topic).known(now)
        if self._support_from == "publishers":
            serving = [c for c in serving if stands_in(c.key, topic, Role.PUBLISHER)]
        serving = [contact for contact in serving if not self._graph.suspects(contact.node)]
        count = self._participants.count(topic, now)
        return support_nodes(own, serving, count, priority, self._support)

    def send(self, message: Message, context: Context) -> None:
        self._own.send(message, context)
        low, high = subscribers_range(message.topic)
        floor, identity = edge(message.topic, Role.PUBLISHER), message.message_id
        for contact in self.support_nodes(message.topic, message.priority, context.now):
            start = Multicast(
                contact.key,
                b"",
                self._graph.number,
                self._way,
                floor,
                low,
                high,
                identity,
                message,
            )
            self._graph.start_at(contact.node, start, context)

    def send_again(self, multicast: Multicast, message: Message, context: Context) -> None:
        self._own.send_again(multicast, message, context)

    def on_peer_lost(self, number: int, context: Context) -> None:
        """Do nothing: the node does not remember sent publications."""


class PsgTbps(SkipGraphMethod):
    """A node of PSG-TBPS."""

    method = "psg-tbps"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        known = (*PARAMETERS, *knowledge.PARAMETERS, *SUPPORT_PARAMETERS)
        check_known(self.method, parameters, known)
        graph = TopicGraph(self.method, place, parameters, random)
        membership = Membership(graph)
        present_s = presence(self.method, parameters)
        self.rosters = Rosters(present_s)
        participants = KnownParticipants(graph, membership, self.rosters, present_s)
        way = way_of(parameters)
        forwarding = SupportedMulticast(graph, membership, participants, way, parameters)
        stop_go = StopGo(self.method, parameters, graph, membership, forwarding.send)
        super().__init__(graph, membership, forwarding, stop_go, participants)


def _choice(parameters: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    value = parameters.get(name, known[0])
    if value not in known:
        raise ValueError(f"{name} {value!r}; there are {', '.join(known)}")
    return str(value)
