"""Which points are a broker's own, as the ring says, and the way to the owners of all others."""

from typing import NamedTuple

from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.keys import between
from nodes.overlay.skipgraph.node import SkipGraphNode
from nodes.overlay.skipgraph.routing import MAX_HOPS
from nodes.overlay.zorder_map.keys import Keys
from nodes.overlay.zorder_map.spans import NOTHING, Spans


class Edge(NamedTuple):
    """The neighbours of a key when they were known for sure."""

    left: Contact
    right: Contact


class Areas:
    """Of the keys that a node has in the graph: one, and two while it moves."""

    def __init__(self, keys: Keys, graph: SkipGraphNode) -> None:
        self._keys = keys
        self._graph = graph
        self._edges: dict[bytes, Edge] = {}
        self._heir: int | None = None  # who has the place that was left last

    def owned(self) -> Spans:
        """The points that are this node's. While the ring is being mended beside a key, as it was last."""
        spans = NOTHING
        for key in self._graph.own_keys():
            if (edge := self._edge(key, self._edges)) is not None:
                spans |= self.between(key, edge.right.key)
        return spans

    def between(self, key: bytes, right: bytes) -> Spans:
        """The area that begins with this key, if that is the next one to the right."""
        first, behind = self._keys.start(key), self._keys.start(right)
        if first == behind and key < right:
            return NOTHING
        return Spans.around(first, behind, self._keys.bits)

    def look(self) -> dict[bytes, tuple[Edge | None, Edge | None]]:
        """Each key's neighbours, as they were at the last look and as they are."""
        before, self._edges = self._edges, {}
        for key in self._graph.own_keys():
            if (edge := self._edge(key, before)) is not None:
                self._edges[key] = edge
        for key, edge in before.items():
            if key not in self._edges:
                self._heir = edge.left.node
        return {key: (before.get(key), self._edges.get(key)) for key in {**before, **self._edges}}

    def _edge(self, key: bytes, before: dict[bytes, Edge]) -> Edge | None:
        peer = self._graph.peer(key)
        if peer is None or not peer.in_ring:
            return None
        return before.get(key) if peer.unsure else Edge(peer.left, peer.right)

    def hop_to(self, point: int, hops: int = 0) -> tuple[int, int] | None:
        """The next node towards the owner of this point, and the hops then; None: this one, or nobody is known."""
        if self._graph.stands:
            if self._comes_here(point):
                return None
            hop = self._graph.way_to(self._keys.sought(point), hops)
            return None if hop is None else (hop.to.node, hop.hops)
        if self._graph.own_keys():
            return None  # it is coming, and will know soon
        known = self._heir is not None and not self._graph.suspects(self._heir)
        node = self._heir if known else self._graph.guide()
        return None if node is None or hops >= MAX_HOPS else (node, hops + 1)

    def _comes_here(self, point: int) -> bool:
        """Whether the point seems to become this node's, whose claim is not answered yet."""
        sought = self._keys.sought(point)
        peers = map(self._graph.peer, self._graph.own_keys())
        return any(
            peer is not None
            and not peer.in_ring
            and peer.claim is not None
            and between(peer.key, sought, peer.claim.right.key)
            for peer in peers
        )
