"""Ownership of points: the right to serve a point moves from broker to broker, and only one broker has it at a time.

The ring determines at every moment which broker owns a point (`keys`). But an owner *serves* a point, that is, matches
publications there, only after a handover with all interests that are registered there. Rules:

1. A broker whose area shrinks, because a new broker's claim was granted, hands the lost points over in the same step. A
   leaving broker serves until its left neighbour has removed it from the ring, then hands everything over to it.
2. A handover is repeated until it was received, and counts once, by its sender and ticket. The receiver serves the
   points that it owns, and hands the rest on. So a right is at one broker, or on its way; never at two, never lost.
3. A broker that owns points without serving them expects them: from its former right neighbour or, if it is new, from
   the broker that granted its place. It asks that broker periodically: the broker has them, or expects them itself, or
   knows nothing of them.
4. If that broker is dead or knows nothing, the right is lost, and the broker that expected it makes it anew: it calls
   all brokers to register their interests at these points again, and serves them only after `recover_s` seconds. A
   broker that is alone in its ring expects nothing: it serves all points.

While no message is lost and no broker crashes, no right is made anew (4), and at most one broker serves each point.
Publications and registrations wait at points that are owned, but not served yet.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.overlay.skipgraph.routing import MAX_HOPS, between
from nodes.overlay.topics.base import Suspected
from nodes.overlay.topics.topic_graph import Context
from nodes.overlay.zorder_map.keys import Keys
from nodes.overlay.zorder_map.member import Member
from nodes.overlay.zorder_map.registry import Registry
from nodes.protocol.regions import EMPTY, Spans
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.zorder_map_messages import Entry, Handover, Patience, Received, RollCall, Want

# Areas: the points that a broker owns, and the routes to the owners of all others.


class Edge(NamedTuple):
    """The neighbours of a key when they were known for sure."""

    left: Contact
    right: Contact


class Areas:
    """The areas of the keys that a node has in the graph: one, and two while it moves."""

    def __init__(self, keys: Keys, graph: SkipGraphNode) -> None:
        self._keys = keys
        self._graph = graph
        self._edges: dict[bytes, Edge] = {}
        self._successor: int | None = None  # the node that has the place that was left last

    def owned(self) -> Spans:
        """The points that this node owns. While the ring is being repaired beside a key, the last known area counts."""
        spans = EMPTY
        for key in self._graph.own_keys():
            if (edge := self._edge(key, self._edges)) is not None:
                spans |= self.between(key, edge.right.key)
        return spans

    def between(self, key: bytes, right: bytes) -> Spans:
        """The area that begins with this key, if `right` is the next key."""
        first, behind = self._keys.start(key), self._keys.start(right)
        if first == behind and key < right:
            return EMPTY
        return Spans.around(first, behind, self._keys.bits)

    def look(self) -> dict[bytes, tuple[Edge | None, Edge | None]]:
        """Each key's neighbours, at the last call and now."""
        before, self._edges = self._edges, {}
        for key in self._graph.own_keys():
            if (edge := self._edge(key, before)) is not None:
                self._edges[key] = edge
        for key, edge in before.items():
            if key not in self._edges:
                self._successor = edge.left.node
        return {key: (before.get(key), self._edges.get(key)) for key in {**before, **self._edges}}

    def _edge(self, key: bytes, before: dict[bytes, Edge]) -> Edge | None:
        peer = self._graph.peer(key)
        if peer is None or not peer.in_ring:
            return None
        return before.get(key) if peer.unsure else Edge(peer.left, peer.right)

    def hop_to(self, point: int, hops: int = 0) -> tuple[int, int] | None:
        """The next node towards the owner of this point, and the hops then; None: this node, or none is known."""
        if self._graph.stands:
            if self._comes_here(point):
                return None
            hop = self._graph.way_to(self._keys.sought(point), hops)
            return None if hop is None else (hop.to.node, hop.hops)
        if self._graph.own_keys():
            return None  # it is joining, and will know soon
        known = self._successor is not None and not self._graph.suspects(self._successor)
        node = self._successor if known else self._graph.guide()
        return None if node is None or hops >= MAX_HOPS else (node, hops + 1)

    def _comes_here(self, point: int) -> bool:
        """Whether the point seems to fall to this node, whose claim is not answered yet."""
        sought = self._keys.sought(point)
        peers = map(self._graph.peer, self._graph.own_keys())
        return any(
            peer is not None
            and not peer.in_ring
            and peer.claim is not None
            and between(peer.key, sought, peer.claim.right.key)
            for peer in peers
        )


MOST_RECEIVED = 4096  # handovers that are remembered
MOST_HOPS = 32  # then a handover waits until the ring may have changed
SILENT = 5  # requests without an answer, then the broker counts as dead, unless the shell decides
SILENT_WATCHED = 20  # the same, if the shell reports dead brokers
MOST_ASKED = (
    40  # requests, whatever the answers: brokers may expect points from one another, in a cycle
)


@dataclass(frozen=True, slots=True)
class _Transfer:
    """Points on their way, with the interests registered there."""

    spans: Spans
    entries: tuple[Entry, ...]
    unsure: bool
    hops: int = 0
    to: int = -1


@dataclass(slots=True)
class _Expected:
    """Points that are expected from this node, the number of requests, and those unanswered since its last answer."""

    spans: Spans
    node: int
    asked: int = 0
    in_vain: int = 0


@dataclass(slots=True)
class _Recovering:
    """Points whose interests are being registered again until then."""

    spans: Spans
    until: float


class Holdings:
    """The points that one broker serves, expects and hands over."""

    def __init__(
        self, member: Member, areas: Areas, registry: Registry, recover_s: float, watched: bool
    ) -> None:
        self._member = member
        self._graph = member.graph
        self._areas = areas
        self._registry = registry
        self._recover_s = recover_s
        self._silent = SILENT_WATCHED if watched else SILENT
        self._watched = watched
        self.served = EMPTY
        self._recovering: list[_Recovering] = []
        self._sent: dict[int, _Transfer] = {}  # by ticket, until they are received
        self._resting: list[_Transfer] = []  # their owner is not known just now
        self._expected: list[_Expected] = []
        self._received: OrderedDict[tuple[int, int], None] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether a handover or recovery is going on."""
        return bool(self._sent or self._resting or self._expected or self._recovering)

    @property
    def accepts(self) -> Spans:
        """The points at which interests can be registered: served, or about to be."""
        return self.served | self._collecting()

    @property
    def sending(self) -> bool:
        """Whether handovers to other brokers are not complete."""
        return bool(self._sent or self._resting)

    def concerned(self) -> Spans:
        """All points at which interests must be known here."""
        return self.accepts | self._areas.owned() | self._coming()

    def begin(self) -> None:
        """Begin in a graph that is set up already, without any registration."""
        self._areas.look()
        self.served = self._areas.owned()

    # The ring

    def settle(self, context: Context) -> None:
        """The ring may have changed: hand over the points that are no longer owned, and expect new ones."""
        changes = self._areas.look()
        owned = self._areas.owned()
        for key, (before, after) in changes.items():
            if before is None:
                continue
            lost = self._areas.between(key, before.right.key) - owned
            to = before.left.node if after is None else after.right.node
            if after is None and to == self._graph.number:
                self._forget(lost)  # it was alone
            else:
                self._give(lost, to, context)
        self._give((self.served | self._collecting()) - owned, None, context)
        resting, self._resting = self._resting, []
        for transfer in resting:
            self._take(replace(transfer, hops=0), context)
        for key, (before, after) in changes.items():
            if after is not None:
                area = self._areas.between(key, after.right.key)
                missing = area - self.accepts - self._coming()
                if missing:
                    self._expect(missing, before, after)
        self._give_up_on_dead(context)

    def _expect(self, missing: Spans, before: Edge | None, after: Edge) -> None:
        """Expect points from the former right neighbour, which is gone, or from the left one, which gave the place."""
        former = after.left if before is None else before.right
        others = [each.node for each in (former, after.left, after.right)]
        node = next((each for each in others if each != self._graph.number), None)
        if node is None:
            self.served |= missing
        else:
            self._expected.append(_Expected(missing, node))

    def _give(self, spans: Spans, to: int | None, context: Context) -> None:
        """Hand over points that are served here, and no longer owned."""
        for unsure, mine in ((False, self.served & spans), (True, self._collecting() & spans)):
            if mine:
                transfer = _Transfer(mine, self._registry.meeting(mine), unsure)
                if to is None or to == self._graph.number:
                    self._resting.append(transfer)
                else:
                    self._send(transfer, to, context)
        self._forget(spans)

    def _forget(self, spans: Spans) -> None:
        self.served -= spans
        self._recovered(spans)

    def _recovered(self, spans: Spans) -> None:
        for each in self._recovering:
            each.spans -= spans
        self._recovering = [each for each in self._recovering if each.spans]

    def _collecting(self) -> Spans:
        return _all(each.spans for each in self._recovering)

    def _coming(self) -> Spans:
        """The points that are expected, or that wait for the repair of the ring."""
        expected = _all(each.spans for each in self._expected)
        return expected | _all(transfer.spans for transfer in self._resting)

    # Handovers

    def on_handover(self, sender: int, message: Handover, context: Context) -> None:
        self._member.notify(sender, Received(message.ticket), context)
        if (sender, message.ticket) in self._received:
            return
        self._received[sender, message.ticket] = None
        if len(self._received) > MOST_RECEIVED:
            self._received.popitem(last=False)
        self._registry.merge(message.entries, context.now)
        self._take(_Transfer(message.spans, message.entries, message.unsure, message.hops), context)

    def on_received(self, sender: int, ticket: int) -> None:
        if ticket in self._sent and self._sent[ticket].to == sender:
            del self._sent[ticket]

    def _take(self, transfer: _Transfer, context: Context) -> None:
        for each in self._expected:
            each.spans -= transfer.spans
        self._expected = [each for each in self._expected if each.spans]
        mine = transfer.spans & self._areas.owned()
        if transfer.unsure:
            self._recover(mine - self.accepts, context)
        else:
            self.served |= mine
            self._recovered(mine)
        if rest := transfer.spans - mine:
            self._pass_on(replace(transfer, spans=rest), context)

    def _pass_on(self, transfer: _Transfer, context: Context) -> None:
        hop = self._areas.hop_to(transfer.spans.first)
        if hop is None or transfer.hops >= MOST_HOPS:
            self._resting.append(transfer)
        else:
            self._send(transfer, hop[0], context)

    def _send(self, transfer: _Transfer, to: int, context: Context) -> None:
        ticket = self._member.next_number()
        self._sent[ticket] = replace(transfer, to=to, hops=transfer.hops + 1)
        self._send_handover(ticket, context)

    def _send_handover(self, ticket: int, context: Context) -> None:
        transfer = self._sent[ticket]
        message = Handover(
            ticket, min(transfer.hops, 255), transfer.unsure, transfer.spans, transfer.entries
        )
        self._member.notify(transfer.to, message, context)

    # Points that do not arrive

    def on_want(self, sender: int, message: Want, context: Context) -> None:
        expected = _all(each.spans for each in self._expected if each.node != sender)
        transfers = (*self._sent.values(), *self._resting)
        known = self.accepts | expected | _all(transfer.spans for transfer in transfers)
        self._member.notify(sender, Patience(message.spans - known), context)

    def on_patience(self, sender: int, message: Patience, context: Context) -> None:
        for each in self._expected:
            if each.node == sender:
                each.in_vain = 0
        self._make_anew(sender, message.unknown, context)

    def lose(self, number: int, context: Context) -> None:
        """The node is dead: redirect the handovers that it has not received; the points expected from it are lost."""
        lost = [ticket for ticket, transfer in self._sent.items() if transfer.to == number]
        for ticket in lost:
            self._resting.append(replace(self._sent.pop(ticket), hops=0))
        self.settle(context)
        for each in [each for each in self._expected if each.node == number]:
            self._make_anew(number, each.spans, context)

    def tick(self, context: Context) -> None:
        """A period has passed: repeat handovers and requests."""
        self.settle(context)
        for ticket in list(self._sent):
            self._send_handover(ticket, context)
        for each in list(self._expected):
            each.asked += 1
            each.in_vain += 1
            if each.in_vain > self._silent or each.asked > MOST_ASKED:
                self._make_anew(each.node, each.spans, context)
                continue
            if each.in_vain > SILENT and self._watched:
                context.do(Suspected(each.node))
            self._member.notify(each.node, Want(each.spans), context)
        over = [each for each in self._recovering if each.until <= context.now]
        self._recovering = [each for each in self._recovering if each.until > context.now]
        for recovered in over:
            self.served |= recovered.spans

    def _give_up_on_dead(self, context: Context) -> None:
        for each in list(self._expected):
            if self._graph.suspects(each.node):
                self._make_anew(each.node, each.spans, context)

    def _make_anew(self, node: int, spans: Spans, context: Context) -> None:
        """Make the right to serve these points anew, as far as they were expected from this node."""
        lost = spans & _all(each.spans for each in self._expected if each.node == node)
        if lost:
            self._take(_Transfer(lost, (), unsure=True), context)

    def _recover(self, spans: Spans, context: Context) -> None:
        if spans:
            self._recovering.append(_Recovering(spans, context.now + self._recover_s))
            self._member.notify_all(RollCall(spans), context)


def _all(several: Iterable[Spans]) -> Spans:
    return Spans(stretch for spans in several for stretch in spans)
