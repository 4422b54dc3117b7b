"""The two neighbours of each peer at level 0, and how they make sure of each other. The rules stand in `ring`."""

from nodes.overlay.skipgraph import messages as m
from nodes.overlay.skipgraph.actions import Inserted, Moved
from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.keys import between
from nodes.overlay.skipgraph.levels import Levels
from nodes.overlay.skipgraph.pace import SLACK
from nodes.overlay.skipgraph.table import Peer, Standing, Table

SUCCESSORS = 4
UNHEARD = 4  # ticks after a check was due, then a peer looks for its place again


class Links:
    """Checks, their answers, and what follows from them."""

    def __init__(self, table: Table, levels: Levels) -> None:
        self._table = table
        self._levels = levels

    def on_check(self, check: m.Check) -> None:
        table = self._table
        peer = table.peers.get(check.at)
        if peer is not None and peer.standing is Standing.JOINING and peer.claim is not None:
            self._linked(peer, check.left, check.number)
        if peer is None or not peer.in_ring:
            table.send(check.left.node, m.Gone(check.left.key, check.at, check.number))
            return
        lost = peer.unheard >= UNHEARD or not table.alive(peer.left)
        if check.left.key == peer.left.key or check.number > peer.left_number:
            self._set_left(peer, check.left, max(check.number, peer.left_number))
        elif lost:
            self._set_left(peer, check.left, peer.left_number + 1)
        else:
            answer = m.Declined(check.left.key, peer.me, check.number, peer.left)
            table.send(check.left.node, answer)
            self._recheck(peer)
            return
        peer.unheard = 1 - check.pause - check.pause // SLACK
        self._confirm_check(peer)

    def _recheck(self, peer: Peer) -> None:
        """Somebody else would be the left neighbour: is the one that was known still there?"""
        peer.unheard = max(peer.unheard, 0)
        peer.pace.wake()
        self._table.send(peer.left.node, m.Recheck(peer.left.key, peer.key))

    def on_recheck(self, question: m.Recheck) -> None:
        peer = self._table.peers.get(question.at)
        if peer is not None and peer.in_ring and peer.right.key == question.right:
            self._check(peer)

    def _confirm_check(self, peer: Peer) -> None:
        successors = (peer.right, *peer.successors)[:SUCCESSORS]
        answer = m.Checked(peer.left.key, peer.me, peer.left_number, peer.settled, successors)
        self._table.send(peer.left.node, answer)

    def on_checked(self, answer: m.Checked) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or not peer.in_ring or peer.right.key != answer.right.key:
            return
        peer.unanswered = 0
        peer.right_number = max(peer.right_number, answer.number)
        peer.successors = answer.successors
        if peer.unsure:
            peer.unsure = False
            self._table.tell(Moved(peer.key))
        if peer.mourned is not None and peer.right != peer.me:
            self._levels.mourn(peer, peer.mourned)
        peer.mourned = None
        # Multicasts never cross the end of the line: there, the right neighbour need not be settled.
        if answer.settled or peer.right.key <= peer.key:
            self._settle(peer)

    def _settle(self, peer: Peer) -> None:
        if peer.settled or peer.unwanted or peer.standing is not Standing.LINKED:
            return
        peer.settled = True
        self._table.tell(Inserted(peer.key))
        self._confirm_check(peer)

    def on_gone(self, answer: m.Gone) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or peer.standing is not Standing.LINKED:
            return
        if (peer.right.key, peer.right_number) == (answer.right, answer.number):
            peer.gone.add(answer.right)
            self._levels.forget_key(answer.right)
            self._replace_right(peer)

    def _replace_right(self, peer: Peer) -> None:
        """The right neighbour is no more: take the nearest one that is known, in the end oneself."""
        if peer.right != peer.me:
            peer.mourned = peer.right
        nearest = peer.me
        out = {peer.right.key, *peer.gone}
        for contact in self._table.known():
            if contact.key not in out and between(peer.key, contact.key, nearest.key):
                nearest = contact
        peer.successors = tuple(c for c in peer.successors if c.key != peer.right.key)
        self._set_right(peer, nearest, peer.left_number if nearest == peer.me else 0)
        peer.unsure = True
        self._check(peer)

    def _linked(self, peer: Peer, left: Contact, number: int) -> None:
        peer.standing = Standing.LINKED
        peer.claim, peer.ticket, peer.tries = None, 0, 0
        peer.left, peer.left_number = left, max(peer.left_number, number)
        peer.unheard = 0
        self._changed(peer)
        self._check(peer)

    def _set_right(self, peer: Peer, right: Contact, number: int) -> None:
        changed = peer.right != right
        peer.right, peer.right_number, peer.unanswered, peer.unsure = right, number, 0, False
        if changed:
            self._changed(peer)

    def _set_left(self, peer: Peer, left: Contact, number: int) -> None:
        changed = peer.left != left
        peer.left, peer.left_number, peer.unheard = left, number, 0
        if changed:
            self._changed(peer)

    def _changed(self, peer: Peer) -> None:
        peer.pace.wake()
        self._table.tell(Moved(peer.key))
        self._levels.changed(peer, 0)

    def _check(self, peer: Peer) -> None:
        check = m.Check(peer.right.key, peer.me, peer.right_number, peer.pace.pause)
        self._table.send(peer.right.node, check)
