"""Routing to a topic's root by membership vectors, on a Skip Graph with one key a node.

Level by level: if the node's own bit is the wanted one, the next level decides. Otherwise the route goes along the list
of this level, to the nearest member that has the bit, on either side; of two at the same distance, to the right one.
Where no member has it, all members take the other bit for it, and the next level decides. A node that is alone in a
list is the end of all routes: the root. The next hop depends on nothing but node and bits, so routes that meet stay
together.

The vectors of neighbours are known, which often suffices. Otherwise the node asks on both sides: a request goes along
the list to the first member that has the bit, or to the end, and is answered to the asking node at once. Answers hold
for all topics. The node asks again when the neighbours of the level change, and periodically, because the list may
change farther off.
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from hashlib import blake2b
from typing import Protocol

from nodes.overlay.skipgraph.table import Peer
from nodes.overlay.topics.topic_graph import Context, TopicGraph
from nodes.protocol.scribe_messages import Answer, Ask, ScribeMessage, encode_scribe
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact
from nodes.protocol.wire import encode_topic

UNSURE_PERIODS = 3  # after a node has joined, before it takes itself for a root
_SIDES = (False, True)  # left, right
_MOST_STEPS = 0xFFFFFFFF
_Near = tuple[Contact | None, Contact | None]


def topic_hash(topic: str) -> int:
    """The bits by which the topic's root is found; the same everywhere and always."""
    return int.from_bytes(blake2b(encode_topic(topic), digest_size=VECTOR_BITS // 8).digest())


def node_key(number: int) -> bytes:
    """The one key of a node."""
    return number.to_bytes(4)


class NoHop(Enum):
    """Why there is no next hop."""

    HERE = auto()  # this node is the root
    UNKNOWN = auto()  # a request for it is under way


class Routing(Protocol):
    """The interface for the other parts of a node: the next hop to a root, and control messages to other nodes."""

    number: int

    def next_hop(self, topic: str, context: Context) -> int | NoHop:
        """The next node on the route to the topic's root, if it is known and not taken for dead."""

    def notify(self, node: int, word: ScribeMessage, context: Context) -> None:
        """Send a control message to this node."""

    def ticket(self) -> int:
        """A number that grows, also from one incarnation of the node to the next."""


@dataclass(slots=True)
class _Nearest:
    """The nearest member of a list with the other bit, as far as it is known."""

    near: _Near  # neighbours at the time of the request
    ticket: int
    steps: dict[bool, int] = field(default_factory=dict)  # answers so far; 0: no such member
    toward: Contact | None = None  # by the answers before; None: no member has the bit
    known: bool = False
    used: bool = True

    def conclude(self) -> None:
        """If both sides have answered, choose the nearer one."""
        if len(self.steps) < len(_SIDES):
            return
        left, right = (self.steps[rightwards] for rightwards in _SIDES)
        rightwards = bool(right) and (not left or right <= left)
        self.toward = self.near[rightwards] if left or right else None
        self.known = True


class VectorRouting:
    """Implements `Routing` for the one key of a node."""

    def __init__(self, graph: TopicGraph, incarnation: int) -> None:
        self.number = graph.number
        self._graph = graph
        self._tickets = (incarnation & 0xFFFFFFFF) << 32
        self._nearest: dict[int, _Nearest] = {}  # by level
        self._sure_at: float | None = None  # None: not in the graph yet
        self.begun = False

    # The node's place in the graph

    def begin(self, context: Context) -> None:
        """Begin a call: the first one inserts the key, unless the graph is set up already."""
        if self.begun:
            return
        self.begun = True
        if self._graph.node.own_keys():
            self._sure_at = context.now
        self._graph.insert(node_key(self.number), context)

    def leave(self, context: Context) -> None:
        self._graph.remove(node_key(self.number), context)

    def on_inserted(self, context: Context) -> None:
        """The key is in the ring: for a while, the node does not take itself for a root."""
        self._sure_at = context.now + UNSURE_PERIODS * self._graph.period_s

    # Interface for other parts

    def next_hop(self, topic: str, context: Context) -> int | NoHop:
        if self.begun and not self._graph.node.own_keys():  # it has left: others know the route
            guide = self._graph.node.guide()
            return NoHop.UNKNOWN if guide is None else guide
        hop = self._next_hop(topic_hash(topic), context)
        if isinstance(hop, int):
            return NoHop.UNKNOWN if self._graph.suspects(hop) else hop
        sure = self._sure_at is not None and context.now >= self._sure_at
        return hop if sure or hop is not NoHop.HERE else NoHop.UNKNOWN

    def notify(self, node: int, word: ScribeMessage, context: Context) -> None:
        self._graph.notify(node, encode_scribe(word), context)

    def ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    # Requests along the lists

    def on_ask(self, ask: Ask, context: Context) -> None:
        """A request of another node has come along a list."""
        peer = self._peer()
        if peer is None or not peer.in_ring:
            return
        steps = ask.steps
        if _bit(peer.me.vector, ask.level) != ask.bit:
            onward = peer.neighbour(ask.level, bool(ask.rightwards))
            if onward is not None and steps < _MOST_STEPS:
                self.notify(onward.node, replace(ask, steps=steps + 1), context)
                return
            steps = 0
        self.notify(ask.asker, Answer(ask.level, ask.rightwards, steps, ask.ticket), context)

    def on_answer(self, answer: Answer) -> None:
        nearest = self._nearest.get(answer.level)
        if nearest is not None and nearest.ticket == answer.ticket:
            nearest.steps[bool(answer.rightwards)] = answer.steps
            nearest.conclude()

    def tick(self, refresh: bool, context: Context) -> None:
        """Repeat requests without an answer; and all that are in use, if a refresh is due.

        A request without an answer keeps its ticket: the answer may only be late.
        """
        for level, nearest in list(self._nearest.items()):
            if refresh and not nearest.used:
                del self._nearest[level]
            elif refresh or not nearest.known:
                nearest.used = False
                if len(nearest.steps) == len(_SIDES):
                    nearest.ticket = self.ticket()
                    nearest.steps.clear()
                self._ask(level, nearest, context)

    def _next_hop(self, target: int, context: Context) -> int | NoHop:
        """The next node on the route to the root of this bit string."""
        peer = self._peer()
        if peer is None or not peer.in_ring:
            return NoHop.UNKNOWN
        for level in range(VECTOR_BITS):
            near = peer.neighbour(level, False), peer.neighbour(level, True)
            if near == (None, None):
                break
            if _bit(peer.me.vector, level) == _bit(target, level):
                continue
            nearest = self._find(peer, level, near, context)
            if not nearest.known:
                return NoHop.UNKNOWN
            if nearest.toward is not None:
                return nearest.toward.node
        return NoHop.HERE

    def _find(self, peer: Peer, level: int, near: _Near, context: Context) -> _Nearest:
        own = _bit(peer.me.vector, level)
        for contact in reversed(near):  # the right one first
            if contact is not None and _bit(contact.vector, level) != own:
                return _Nearest(near, 0, toward=contact, known=True)
        nearest = self._nearest.get(level)
        if nearest is None or nearest.near != near:
            nearest = self._nearest[level] = _Nearest(near, self.ticket())
            self._ask(level, nearest, context)
        nearest.used = True
        return nearest

    def _ask(self, level: int, nearest: _Nearest, context: Context) -> None:
        peer = self._peer()
        if peer is None:
            return
        wanted = 1 - _bit(peer.me.vector, level)
        for rightwards, contact in zip(_SIDES, nearest.near, strict=True):
            if contact is None:
                nearest.steps[rightwards] = 0
            else:
                ask = Ask(level, wanted, int(rightwards), 1, self.number, nearest.ticket)
                self.notify(contact.node, ask, context)

    def _peer(self) -> Peer | None:
        return self._graph.node.peer(node_key(self.number))


def _bit(bits: int, level: int) -> int:
    return bits >> (VECTOR_BITS - 1 - level) & 1
