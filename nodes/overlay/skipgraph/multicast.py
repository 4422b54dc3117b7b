"""Multicast to every peer with a key in a range, in one of two ways.

flood: over every link inside the range, in both directions, at all levels, but not back. A peer forwards it once, when
it arrives first. (A peer, not a node: a key that was inserted meanwhile must forward what its node has received
before.) The first arrival took the shortest path inside the range. This way needs the most messages.

split: each neighbour serves a part of the range, from its own key to the next neighbour's. The leftmost neighbour also
serves everything farther left. No duplicates while neighbours do not change; longer paths.

Guarantee of both ways: a peer that was Inserted before the multicast began, and that stays, gets the multicast,
whatever peers join and leave meanwhile and however long messages take. Conditions: no message is lost, no node crashes,
and all keys are in one ring. Reasons: links to the right at level 0 are exact at every moment (`ring`). Every part, and
every flood, goes over that link of each peer it reaches, so it skips no peer to the right. Links to the left skip no
settled peer. Links of upper levels may be outdated: they only carry parts to a peer that may be gone. The node of that
peer then locates the first peer of the part (any node may forward this request) and sends the part there. So only nodes
that have a key in the range, or had one when the message was sent to them, handle the multicast itself.

If another node lets a peer begin a multicast (`by` is the peer itself), the peer must not rely on a claim that may be
refused: only a left neighbour knows that the claim was granted. Such a peer locates, too.

A known dead node causes no gap either. A stretch that only the dead node could have served, or behind which there may
be a peer that is not known yet, is located as well, until the ring is whole there. `around` does the same for a part
that was sent to a node and did not arrive. A flood continues from both sides of the dead peer: level 0 connects every
peer that was cut off with one of them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nodes.overlay.skipgraph.actions import Delivered, Exhausted, Missed, Repeated
from nodes.overlay.skipgraph.table import Peer, Step, Table
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.wire import CUSTODY
from nodes.protocol.wire import Message as Publication

ENTRIES = 30  # attempts to find the first peer of a part; no limit for a publication with custody


@dataclass(slots=True)
class _Entry:
    """A part whose first peer must be found."""

    multicast: m.Multicast
    key: bytes
    tries: int = 0


class Multicaster:
    """The part of a node that serves ranges."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._entries: dict[int, _Entry] = {}
        self._held: Counter[int] = Counter()  # ids of publications -> parts that wait

    @property
    def waiting(self) -> bool:
        return bool(self._entries)

    def holds(self, message_id: int | None = None) -> bool:
        """Whether a part of this publication, or of any, waits until its first peer is found."""
        return bool(self._held) if message_id is None else message_id in self._held

    def begin(self, multicast: m.Multicast, step: Step) -> list[m.Locate]:
        """Begin a multicast of this node. Return Locate requests, if the node has no peer in the range or beside it."""
        for peer in self._table.peers.values():
            if peer.in_ring and multicast.floor <= peer.key < multicast.high:
                return self.on_multicast(replace(multicast, at=peer.key), step)
        return self._enter(multicast, multicast.low, step)

    def on_multicast(self, multicast: m.Multicast, step: Step) -> list[m.Locate]:
        """A multicast arrived. Return Locate requests, if the peer that it was sent to is gone."""
        peer = self._table.peers.get(multicast.at)
        if peer is None:
            step.notify(Missed(multicast.at, multicast))
        begins = multicast.by == multicast.at
        here = peer is not None and (peer.in_ring if begins else peer.reachable)
        questions: list[m.Locate] = []
        if multicast.way is m.Way.FLOOD:
            served = self._flood(multicast, step)
            if not served and here:
                step.notify(Repeated(multicast))
            for each in served:
                questions += self._beside(each, multicast, step)
        elif peer is not None and here:
            self._split(peer, multicast, step)
            questions += self._beside(peer, multicast, step)
        if not here:
            flood = multicast.way is m.Way.FLOOD
            questions += self._enter(multicast, multicast.at if flood else multicast.low, step)
        return questions

    def around(self, multicast: m.Multicast, step: Step) -> list[m.Locate]:
        """The node of the peer `at`, which was sent the part, is dead. Return Locate requests for other peers to serve
        it.
        """
        at = multicast.at
        if multicast.way is m.Way.FLOOD:
            return self._enter(multicast, at, step)
        before = self._enter_part(multicast, multicast.low, min(multicast.high, at), step)
        return before + self._enter_part(
            multicast, max(multicast.low, at + b"\0"), multicast.high, step
        )

    def _beside(self, peer: Peer, multicast: m.Multicast, step: Step) -> list[m.Locate]:
        """Locate requests for stretches beside a peer that it could not assign, because its neighbours have died."""
        questions: list[m.Locate] = []
        neighbours = list(self._neighbours(peer))
        right = [c.key for c in neighbours if c.key > peer.key]
        left = [c for c in neighbours if multicast.low <= c.key < peer.key]
        flood = multicast.way is m.Way.FLOOD
        if peer.unsure:
            begin, end = peer.key + b"\0", min([multicast.high, *right])
            if flood and begin < multicast.high:
                questions += self._enter(multicast, begin, step)
            elif not flood:
                questions += self._enter_part(multicast, max(multicast.low, begin), end, step)
        if peer.left.key < peer.key and not self._table.alive(peer.left):
            if flood and multicast.floor <= peer.left.key:
                questions += self._enter(multicast, peer.left.key, step)
            elif not flood and not left:
                end = min(multicast.high, peer.key)
                questions += self._enter_part(multicast, multicast.low, end, step)
        return questions

    # The two ways

    def _flood(self, multicast: m.Multicast, step: Step) -> list[Peer]:
        """Deliver to all peers of this node at once; each forwards over its links. Return those to which it was new."""
        onward: dict[Contact, bytes] = {}
        new = []
        for peer in self._table.peers.values():
            inside = multicast.floor <= peer.key < multicast.high
            if not (inside and peer.reachable and _is_new(peer, multicast)):
                continue
            new.append(peer)
            neighbours = list(self._neighbours(peer))
            self._serve(peer, multicast, neighbours, step)
            for contact in neighbours:
                if multicast.floor <= contact.key < multicast.high and contact.key != multicast.by:
                    onward.setdefault(contact, peer.key)
        for contact, by in onward.items():
            if contact.node != self._table.number:
                step.send(contact.node, replace(multicast, at=contact.key, by=by))
        return new

    def _split(self, peer: Peer, multicast: m.Multicast, step: Step) -> None:
        neighbours = list(self._neighbours(peer))
        self._serve(peer, multicast, neighbours, step)
        for contact, low, high in parts(peer.key, multicast.low, multicast.high, neighbours):
            step.send(contact.node, replace(multicast, at=contact.key, low=low, high=high))

    def _serve(
        self, peer: Peer, multicast: m.Multicast, neighbours: list[Contact], step: Step
    ) -> None:
        if multicast.low <= peer.key < multicast.high:
            step.notify(Delivered(peer.key, multicast))
        elif not any(peer.key < contact.key < multicast.high for contact in neighbours):
            step.notify(Exhausted(peer.key, multicast))

    def _neighbours(self, peer: Peer) -> Iterator[Contact]:
        """The neighbours to which a message may be sent."""
        if peer.in_ring:
            yield from (contact for contact in peer.neighbours() if self._table.alive(contact))
        elif peer.right.key > peer.key:
            yield peer.right  # its claim is under way and may have been granted

    # Entering a range

    def _enter_part(
        self, multicast: m.Multicast, low: bytes, high: bytes, step: Step
    ) -> list[m.Locate]:
        if low >= high:
            return []
        part = replace(multicast, at=b"", by=b"", floor=low, low=low, high=high)
        return self._enter(part, low, step)

    def _enter(self, multicast: m.Multicast, key: bytes, step: Step) -> list[m.Locate]:
        ticket = self._table.ticket()
        self._entries[ticket] = _Entry(multicast, key)
        if isinstance(multicast.body, Publication):
            self._held[multicast.body.message_id] += 1
        return self._questions(ticket, step)

    def _questions(self, ticket: int, step: Step) -> list[m.Locate]:
        """Locate requests for a part. None if no node is known to ask: then the origin of the multicast is asked."""
        table, entry = self._table, self._entries[ticket]
        question = m.Locate(entry.key, table.number, ticket)
        origin = entry.multicast.origin
        if table.in_ring() or table.introducers or origin == table.number:
            return [question]
        step.send(origin, question)
        return []

    def on_gap(self, gap: m.Gap, step: Step) -> None:
        """Send the part to the peer that was found. If that peer has died, repeat the request later."""
        entry = self._entries.get(gap.ticket)
        if entry is None:
            return
        multicast = entry.multicast
        flood = multicast.way is m.Way.FLOOD
        low = multicast.floor if flood else multicast.low
        beside = (gap.left, gap.right) if flood else (gap.right,)
        inside = [contact for contact in beside if low <= contact.key < multicast.high]
        if not all(map(self._table.alive, inside)):
            return
        self._remove(gap.ticket)
        for contact in inside:
            step.send(contact.node, replace(multicast, at=contact.key, by=b""))
        if flood:
            self._flood(multicast, step)

    def _remove(self, ticket: int) -> None:
        body = self._entries.pop(ticket).multicast.body
        if isinstance(body, Publication):
            self._held[body.message_id] -= 1
            if not self._held[body.message_id]:
                del self._held[body.message_id]

    def tick(self, step: Step) -> list[m.Locate]:
        """The Locate requests that are due again."""
        again: list[m.Locate] = []
        for ticket, entry in list(self._entries.items()):
            entry.tries += 1
            if entry.tries > ENTRIES and not _has_custody(entry.multicast):
                self._remove(ticket)
            else:
                again.extend(self._questions(ticket, step))
        return again


def _has_custody(multicast: m.Multicast) -> bool:
    body = multicast.body
    return isinstance(body, Publication) and bool(body.flags & CUSTODY)


def _is_new(peer: Peer, multicast: m.Multicast) -> bool:
    dedup = peer.dedup_control if isinstance(multicast.body, bytes) else peer.dedup
    return dedup.add(multicast.identity)


def parts(
    key: bytes, low: bytes, high: bytes, neighbours: list[Contact]
) -> list[tuple[Contact, bytes, bytes]]:
    """Assign [low, high) without `key` to the neighbours: each serves from its own key to the next one's.

    Of neighbours before the range, the last one serves its beginning. The leftmost of those left of `key` serves
    everything farther left.
    """
    shares = []
    right = sorted({c.key: c for c in neighbours if key < c.key < high}.items())
    for place, (begin, contact) in enumerate(right):
        end = right[place + 1][0] if place + 1 < len(right) else high
        shares.append((contact, max(low, begin), end))
    left = sorted({c.key: c for c in neighbours if low <= c.key < key}.items())
    for place, (begin, contact) in enumerate(left):
        end = left[place + 1][0] if place + 1 < len(left) else key
        shares.append((contact, low if not place else begin, min(end, high)))
    return [(contact, begin, end) for contact, begin, end in shares if begin < end]
