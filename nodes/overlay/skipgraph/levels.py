"""Levels from 1 on: in level i the peers whose vectors share the first i bits, in key order. They mend themselves.

A peer finds its neighbour in level i by asking along level i - 1, in each direction, for the next one that shares i
bits (Find); whoever is found takes the asker as neighbour too, if it is nearer than the one it has. Asked when a level
below has changed, and again and again, one or two levels at each look (`table.Pace`). The answer holds, whatever was
known before: so once level 0 is right, level 1 becomes right, then level 2, and so on, from any mistake and without
anybody noticing a crash. Who leaves tells its neighbours (Bye); for one that died, its neighbours at level 0 do so
(Mourn),
from level to level.

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
        """A neighbour in this level is another one: the level above must be looked at."""
        self._fit_height(step)
        if level < len(peer.levels):
            for rightwards in (False, True):
                self._find(peer, level + 1, rightwards, step)

    def stand(self) -> None:
        """The neighbours are said to be right: nobody is asked, levels end where they must."""
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
        """Somebody has found this peer: is it nearer than who was known?"""
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
        """The right neighbour of the peer in the ring died, and another has taken its place: tell all who knew it."""
        for at, rightwards in ((peer.me, False), (peer.right, True)):
            step.send(at.node, m.Mourn(at.key, dead, 1, rightwards))

    def on_peer_dead(self, peer_dead: m.Mourn, step: Step) -> None:
        peer = self._table.peers.get(peer_dead.at)
        if peer is None or not peer.in_ring:
            return
        level = max(1, peer_dead.level)
        while level <= VECTOR_BITS and peer.me.shares(peer_dead.dead, level):
            level += 1
        self._forget(lambda contact: contact == peer_dead.dead, step)
        onward = peer.neighbour(level - 1, peer_dead.rightwards)
        if onward is not None and level <= VECTOR_BITS:
            message = m.Mourn(onward.key, peer_dead.dead, level, peer_dead.rightwards)
            step.send(onward.node, message)

    def on_bye(self, bye: m.Bye, step: Step) -> None:
        self._forget(lambda contact: contact == bye.peer, step)

    def forget_node(self, node: int, step: Step) -> None:
        """The node is dead: none of its peers is a neighbour."""
        self._forget(lambda contact: contact.node == node, step)

    def forget_key(self, key: bytes, step: Step) -> None:
        """No peer of this key stands in the ring; its node may live."""
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
        """The peer has left the ring; its neighbours above level 0 are told."""
        above = {contact.key: contact for sides in peer.levels for contact in _both(sides)}
        for contact in above.values():
            step.send(contact.node, m.Bye(peer.me))
        self._fit_height(step)

    def refresh(self, peers: list[Peer], step: Step) -> None:
        """One level of each of these peers, two soon after a change; if there was none for long, of one in all."""
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
