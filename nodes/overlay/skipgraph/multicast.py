"""To every peer with a key in a range, in one of two ways.

flood: over every link inside the range, both directions, all levels, but not back; a peer passes it on once, when it
comes first. (A peer, not a node: a key that was inserted meanwhile must pass on what its node has seen before.)
The first arrival took the shortest path inside the range. Most messages.
split: each neighbour serves a part of the range, from its own key to the next neighbour's; the leftmost one also all
that lies farther left. No duplicates while neighbours do not change; longer paths.

What is promised, both ways: a peer that was Inserted before the multicast began, and that stays, gets it, whatever
inserts and leaves go on meanwhile and however long messages take; provided that no message is lost, that no node
crashes, and that all keys are in one ring. Why: links to the right at level 0 are exact at every moment (`ring`), and
every part, and every flood, goes over the one of each peer it reaches; so nobody to the right is passed over. Links to
the left lead past no settled peer. Links of upper levels may be old: they only carry parts to a peer that may be gone.
Its node then locates the first peer of the part (a question that anybody may pass on) and sends the part there: the
multicast itself is only ever handled by nodes with a key in the range, or that had one when it was sent to them.
A multicast that another node lets a peer begin (`by` is the peer itself) must not count on a claim that may be refused:
only a left neighbour knows that it has been taken. Such a peer locates, too.

Where a node beside the way is known to be dead, nobody is passed over either: a stretch that only the dead one could
have served, or behind which somebody may stand who is not known yet, is located as well, until the ring is whole there.
`around`: the same for a part that was sent to a node and did not arrive. A flood goes on from both sides of the dead
peer: whoever it cut off is connected with one of them by level 0.
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

ENTRIES = (
    30  # tries to find the first peer of a part; without end, if somebody is responsible for it
)


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
        """Whether a part of this publication, or of any, waits for its first peer."""
        return bool(self._held) if message_id is None else message_id in self._held

    def begin(self, multicast: m.Multicast, step: Step) -> list[m.Locate]:
        """From this node; questions, if it has no peer in the range or beside it."""
        for peer in self._table.peers.values():
            if peer.in_ring and multicast.floor <= peer.key < multicast.high:
                return self.on_multicast(replace(multicast, at=peer.key), step)
        return self._enter(multicast, multicast.low, step)

    def on_multicast(self, multicast: m.Multicast, step: Step) -> list[m.Locate]:
        """It came here; questions, if the peer it was meant for is gone."""
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
        """It was sent to the peer `at`, whose node is dead: questions for those who serve its part instead."""
        at = multicast.at
        if multicast.way is m.Way.FLOOD:
            return self._enter(multicast, at, step)
        before = self._enter_part(multicast, multicast.low, min(multicast.high, at), step)
        return before + self._enter_part(
            multicast, max(multicast.low, at + b"\0"), multicast.high, step
        )

    def _beside(self, peer: Peer, multicast: m.Multicast, step: Step) -> list[m.Locate]:
        """Questions for stretches beside a peer that it could not give to anybody, as its neighbours have died."""
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
        """All peers of this node get it at once, each passes it on over its links; those to which it was new."""
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
        """Those that are worth sending to."""
        if peer.in_ring:
            yield from (contact for contact in peer.neighbours() if self._table.alive(contact))
        elif peer.right.key > peer.key:
            yield peer.right  # its claim is under way and may have been taken

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
        """None, if nobody is left here who knows the way: then the origin of the multicast is asked."""
        table, entry = self._table, self._entries[ticket]
        question = m.Locate(entry.key, table.number, ticket)
        origin = entry.multicast.origin
        if table.in_ring() or table.introducers or origin == table.number:
            return [question]
        step.send(origin, question)
        return []

    def on_gap(self, gap: m.Gap, step: Step) -> None:
        """Who stands there is sent the part; if it is one that has died, the question is asked again later."""
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
        """Questions that are asked again."""
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
    """Who serves what of [low, high) but `key`: each neighbour from its own key to the next one's.

    Of neighbours before the range, the last one serves its beginning; the leftmost of those left of `key` serves all
    that lies farther left.
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
