"""Levels from 1 on: level i links the peers whose vectors share the first i bits, in key order.

Levels repair themselves. To find its neighbour in level i, a peer sends Find along level i - 1, in each direction, to
the next peer that shares i bits. The peer that is found also takes the asking peer as its neighbour, if that one is
nearer than its present one. A peer sends Find when a level below has changed, and periodically: one or two levels at
each check (`table.Pace`). The answer replaces what the peer knew before. So once level 0 is right, level 1 becomes
right, then level 2, and so on, from any wrong state and without any node detecting a crash. A peer that leaves notifies
its neighbours (Bye). If a peer has died, its neighbours at level 0 notify the others (PeerDead), level by level.

A node has as many levels as it needs to be alone: level i + 1 exists for all its peers, if one of them has a neighbour
of another node in level i. (Peers of one node share all their bits, and would never be alone.)
"""

from collections.abc import Callable

from nodes.overlay.skipgraph.table import Peer, Sides, Standing, Step, Table
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact


class Levels:
    """The part of a node that keeps the neighbours of its peers above level 0."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._idle_looks = 0

    def changed(self, peer: Peer, level: int, step: Step) -> None:
        """A neighbour in this level has changed: check the level above soon."""
        self._fit_height(step)
        if level < len(peer.levels):
            for rightwards in (False, True):
                self._find(peer, level + 1, rightwards, step)

    def stand(self) -> None:
        """The neighbours are known to be right: send no Find, and end the levels where they must end."""
        height = self._height()
        for peer in self._table.in_ring():
            del peer.levels[height:]
            peer.levels.extend(Sides() for _ in range(height - len(peer.levels)))

    def _fit_height(self, step: Step) -> None:
        height = self._height()
        for peer in self._table.in_ring():
            del peer.levels[height:]
            while len(peer.levels) < height:
                peer.levels.append(Sides())
                for rightwards in (False, True):
                    self._find(peer, len(peer.levels), rightwards, step)

    def _height(self) -> int:
        peers = self._table.in_ring()
        height = 0
        while height < VECTOR_BITS and any(self._meets_others(peer, height) for peer in peers):
            height += 1
        return height

    def _meets_others(self, peer: Peer, level: int) -> bool:
        sides = (peer.neighbour(level, rightwards) for rightwards in (False, True))
        return any(contact is not None and contact.node != peer.me.node for contact in sides)

    def _find(self, peer: Peer, level: int, rightwards: bool, step: Step) -> None:
        below = peer.neighbour(level - 1, rightwards)
        if below is None:
            self._set(peer, level, rightwards, None, step)
        else:
            step.send(below.node, m.Find(below.key, level, rightwards, peer.me))

    def _set(
        self, peer: Peer, level: int, rightwards: bool, contact: Contact | None, step: Step
    ) -> None:
        if peer.neighbour(level, rightwards) == contact:
            return
        sides = peer.levels[level - 1]
        if rightwards:
            sides.right = contact
        else:
            sides.left = contact
        peer.pace.wake()
        self.changed(peer, level, step)

    def on_find(self, find: m.Find, step: Step) -> None:
        table = self._table
        peer = table.peers.get(find.at)
        if peer is None or not peer.in_ring or not find.level:
            return
        asker = find.asker
        if peer.standing is Standing.LINKED and peer.me.shares(asker, find.level):
            step.send(asker.node, m.Found(asker.key, find.level, find.rightwards, peer.me))
            self._meet(peer, find.level, not find.rightwards, asker, step)
            return
        onward = peer.neighbour(find.level - 1, find.rightwards)
        if onward is None:
            step.send(asker.node, m.Found(asker.key, find.level, find.rightwards, None))
        else:
            message = m.Find(onward.key, find.level, find.rightwards, asker)
            step.send(onward.node, message)

    def _meet(self, peer: Peer, level: int, rightwards: bool, asker: Contact, step: Step) -> None:
        """Another peer has found this one: make it the neighbour, if it is nearer than the present one."""
        if level > len(peer.levels) or (asker.key > peer.key) is not rightwards:
            return
        now = peer.neighbour(level, rightwards)
        if now is not None and self._table.alive(now):
            nearer = asker.key < now.key if rightwards else asker.key > now.key
            if not nearer:
                return
        self._set(peer, level, rightwards, asker, step)

    def on_found(self, found: m.Found, step: Step) -> None:
        peer = self._table.peers.get(found.at)
        if peer is None or not peer.in_ring or not 1 <= found.level <= len(peer.levels):
            return
        contact = found.contact
        if contact is not None:
            right_side = (contact.key > peer.key) is found.rightwards and contact.key != peer.key
            if not right_side or not peer.me.shares(contact, found.level):
                return
        self._set(peer, found.level, found.rightwards, contact, step)

    def peer_dead(self, peer: Peer, dead: Contact, step: Step) -> None:
        """The peer's right neighbour in the ring died and was replaced: notify all peers that had it as a neighbour."""
        for at, rightwards in ((peer.me, False), (peer.right, True)):
            step.send(at.node, m.PeerDead(at.key, dead, 1, rightwards))

    def on_peer_dead(self, peer_dead: m.PeerDead, step: Step) -> None:
        peer = self._table.peers.get(peer_dead.at)
        if peer is None or not peer.in_ring:
            return
        level = max(1, peer_dead.level)
        while level <= VECTOR_BITS and peer.me.shares(peer_dead.dead, level):
            level += 1
        self._forget(lambda contact: contact == peer_dead.dead, step)
        onward = peer.neighbour(level - 1, peer_dead.rightwards)
        if onward is not None and level <= VECTOR_BITS:
            message = m.PeerDead(onward.key, peer_dead.dead, level, peer_dead.rightwards)
            step.send(onward.node, message)

    def on_bye(self, bye: m.Bye, step: Step) -> None:
        self._forget(lambda contact: contact == bye.peer, step)

    def forget_node(self, node: int, step: Step) -> None:
        """The node is dead: remove all its peers from the neighbours."""
        self._forget(lambda contact: contact.node == node, step)

    def forget_key(self, key: bytes, step: Step) -> None:
        """No peer with this key is in the ring: remove it from the neighbours. Its node may be alive."""
        self._forget(lambda contact: contact.key == key, step)

    def _forget(self, is_gone: Callable[[Contact], bool], step: Step) -> None:
        for peer in self._table.in_ring():
            for level in range(1, VECTOR_BITS + 1):
                for rightwards in (False, True):
                    contact = peer.neighbour(level, rightwards)
                    if contact is not None and is_gone(contact):
                        self._set(peer, level, rightwards, None, step)
                        if level <= len(peer.levels):
                            self._find(peer, level, rightwards, step)

    def announce_leave(self, peer: Peer, step: Step) -> None:
        """The peer has left the ring: notify its neighbours above level 0."""
        above = {contact.key: contact for sides in peer.levels for contact in _both(sides)}
        for contact in above.values():
            step.send(contact.node, m.Bye(peer.me))
        self._fit_height(step)

    def refresh(self, peers: list[Peer], step: Step) -> None:
        """Check one level of each of these peers, two soon after a change; after a long calm, one level of one peer."""
        for peer in peers:
            height = len(peer.levels)
            if not peer.in_ring or not height:
                continue
            if not peer.pace.sweeps(height):
                self._idle_looks += 1
                if self._idle_looks % len(self._table.in_ring()):
                    continue
            for _ in range(2 if peer.pace.calm <= height else 1):
                peer.turn = peer.turn % height + 1
                for rightwards in (False, True):
                    self._find(peer, peer.turn, rightwards, step)


def _both(sides: Sides) -> list[Contact]:
    return [contact for contact in (sides.left, sides.right) if contact is not None]
