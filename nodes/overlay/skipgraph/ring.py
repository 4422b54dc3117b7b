"""Level 0: all keys in a ring, each change made by one peer alone, so that the ring is exact at every moment.

The left neighbour decides about its gap, from its own key to its right neighbour's. A link to the right has a number
that belongs to the peer it points to: how often its left neighbour changed. It goes on with each change, so an old
message is known by its number. All questions may be lost and are repeated.

Insert, in two steps: Locate is routed to the peer in whose gap the key lies, it answers with the Gap. The new peer
takes over the gap's right neighbour and sends Claim to the left one, who makes it his right neighbour only if the link
still has the number of the Gap. (With one step, as first planned, a lost answer would be the end: the next newcomer
to its left changes the gap, and nobody knows any more whom the first one has to its right.)
Then the new peer tells its right neighbour (Check). It is *settled*, and only then Inserted, when the right neighbour
is settled too: whoever goes left from any peer never passes over a settled one, however late messages are.
A node without peers in the ring asks introducers; if none of them answers or knows a ring, it founds one. Of those that
begin at the same time the one with the lowest number does so; others wait for it, as long as for one that is silent.

Leave: the peer closes its gap and asks for Unlink, routed to its left neighbour; what concerns its gap meanwhile is
held and sent on afterwards. Unlink, too, may be repeated: a key that is not there is out.

Crash: each peer checks its right neighbour. No answer: it is dead, or (`watched`) the layer above is asked whether it
is: answers may be late. Instead of a dead one a peer takes the nearest one it knows and, when that one declines,
goes left from there, to the first that has lost its left neighbour. A peer that nobody checks locates and claims its
own place again. Who hears of a crash from its shell, and is not beside the dead one, tells the one that is (Doubt).
Now and then a peer looks its place up through another node: rings that grew apart become one again. The peer that
learns of another ring takes its place in it, or lets one of the others know of a place in its own.
"""

from nodes.overlay.skipgraph import messages as m
from nodes.overlay.skipgraph.actions import Doubted, Removed
from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.levels import Levels
from nodes.overlay.skipgraph.links import UNHEARD
from nodes.overlay.skipgraph.places import PATIENCE, Places
from nodes.overlay.skipgraph.routing import AROUND, holder
from nodes.overlay.skipgraph.table import SUSPECTED_TICKS, Peer, Standing, Table

UNANSWERED = 3  # checks, then the right neighbour counts as dead
SILENT = 8  # ticks, then the left neighbour of a peer counts as dead
FAREWELLS = 8  # tries to leave in order
LONGEST_WAIT = 8  # ticks between them
LOOK_AROUND = 5  # ticks between two looks through another node, while something changes
ALONE = 20  # the same for a peer that is alone in its ring, always
FOUND_TICKS = 6  # for so long places are looked up through a node that was lost and is there again
LOOKERS = 8  # nodes that look through another one in each idle pause, of a ring of any size


class Ring(Places):
    """The part of a node that keeps its peers in the ring, from insert to leave."""

    def __init__(self, table: Table, levels: Levels) -> None:
        super().__init__(table, levels)
        self._ticks = 0
        self._found: dict[int, int] = {}  # nodes that were lost and are there again -> ticks left

    def remove(self, key: bytes) -> None:
        """Begin to leave; Removed comes when it is done."""
        peer = self._table.peers.get(key)
        if peer is None:
            return
        peer.again = False
        if peer.standing is Standing.LEAVING:
            return
        if peer.standing is Standing.LINKED:
            self._leave(peer)
        elif peer.claim is None:
            self._finish(peer)
        else:
            peer.unwanted = True

    def _leave(self, peer: Peer) -> None:
        peer.standing, peer.tries, peer.ticket, peer.again = Standing.LEAVING, 0, 0, False
        self._ask_to_leave(peer)

    def _ask_to_leave(self, peer: Peer) -> None:
        peer.wait = min(2 << peer.tries, LONGEST_WAIT)
        peer.tries += 1
        if peer.right == peer.me or peer.tries > FAREWELLS:
            self._finish(peer)
        else:
            self._request_unlink(peer)

    def _request_unlink(self, peer: Peer) -> None:
        request = m.Unlink(peer.me, peer.right, peer.right_number)
        self._table.send(peer.left.node, request)

    def _set_left(self, peer: Peer, left: Contact, number: int) -> None:
        """One that leaves asks its new left neighbour, too: the old one may be gone, and the question with it."""
        changed = peer.left != left
        super()._set_left(peer, left, number)
        if changed and peer.standing is Standing.LEAVING:
            self._request_unlink(peer)

    def on_unlink(self, request: m.Unlink) -> None:
        table = self._table
        peer = holder(table, request.peer.key)
        if peer is None:
            self._pass_on(request.peer.key, request)
            return
        if peer.standing is Standing.LEAVING:
            peer.held.append(request)
            return
        if peer.right == request.peer:
            self._set_right(peer, request.right, request.number + 1)
            self._check(peer)
        table.send(request.peer.node, m.Unlinked(request.peer.key))

    def on_unlinked(self, answer: m.Unlinked) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is not None and peer.standing is Standing.LEAVING:
            self._finish(peer)

    def _finish(self, peer: Peer) -> None:
        table = self._table
        del table.peers[peer.key]
        self._levels.farewell(peer)
        for message in peer.held:
            table.send(peer.left.node, message)
        table.tell(Removed(peer.key))
        if peer.again:
            self.insert(peer.key)

    def suspect(self, node: int) -> None:
        """The node is dead, or seems so."""
        table = self._table
        if node == table.number:
            return
        news = node not in table.suspects
        table.suspects[node] = SUSPECTED_TICKS
        others: set[bytes] = set()  # keys that somebody else has to his right
        for peer in list(table.peers.values()):
            known = {contact.key for contact in peer.contacts() if contact.node == node}
            if not known:
                continue
            peer.pace.wake()
            if peer.left.node == node:
                peer.unheard = max(peer.unheard, UNHEARD)
            if peer.right.node == node:
                known.discard(peer.right.key)
                if peer.standing is Standing.LINKED:
                    self._replace_right(peer)
            others |= known
        self._levels.forget_node(node)
        for key in sorted(others) if news and table.in_ring() else ():
            self.on_doubt(m.Doubt(key, AROUND))  # from the left, not over the dead one

    def _doubt(self, node: int) -> None:
        """It is silent: dead, unless somebody else knows better."""
        if not self._table.watched:
            self.suspect(node)
        elif Doubted(node) not in self._table.actions and node != self._table.number:
            self._table.tell(Doubted(node))

    def found(self, node: int) -> None:
        """The node was lost and is there again, or this one was: there may be two rings now."""
        self._table.suspects.pop(node, None)
        if self._table.peers:
            self._found[node] = FOUND_TICKS
            self.look_through(node)

    def tick(self) -> list[Peer]:
        """One period has gone by; the peers whose turn it is to look after their neighbours."""
        table = self._table
        self._ticks += 1
        for node in list(table.suspects):
            table.suspects[node] -= 1
            if not table.suspects[node]:
                del table.suspects[node]
        looking = []
        for peer in list(table.peers.values()):
            if peer.key in table.peers:
                busy = peer.standing is not Standing.LINKED or not peer.settled or peer.unsure
                if busy or peer.unwanted:
                    peer.pace.wake()
                late = table.watched and peer.unanswered > UNANSWERED
                if peer.unanswered and not (late and self._ticks % SILENT):
                    peer.pace.hurry()
                look = peer.pace.tick(len(peer.levels), table.idle_ticks)
                self._tick_peer(peer, look)
                if look:
                    looking.append(peer)
        self._tick_found()
        self._tick_around()
        return looking

    def _tick_found(self) -> None:
        for node, left in list(self._found.items()):
            if not left or node in self._table.suspects:
                del self._found[node]
                continue
            self._found[node] = left - 1
            if left % PATIENCE == 1:
                self.look_through(node)

    def _tick_peer(self, peer: Peer, look: bool) -> None:
        peer.wait -= 1
        if peer.standing is Standing.JOINING:
            if peer.wait <= 0:
                self._look_for_place(peer)
            return
        if peer.unwanted and peer.standing is Standing.LINKED:
            self._leave(peer)
        if peer.right == peer.me:
            peer.left, peer.unheard = peer.me, 0
            if peer.unsure:  # its last left neighbour kept it from being sure that it is alone
                self._check(peer)
        else:
            self._tick_neighbours(peer, look)
        if peer.standing is Standing.LEAVING and peer.wait <= 0:
            self._ask_to_leave(peer)

    def _tick_neighbours(self, peer: Peer, look: bool) -> None:
        peer.unheard += 1
        if not self._ticks % SILENT:
            peer.gone.clear()
        if look:
            peer.unanswered += 1
            silent = peer.unanswered > UNANSWERED and peer.standing is Standing.LINKED
            if silent and (peer.unanswered == UNANSWERED + 1 or not self._ticks % SILENT):
                self._doubt(peer.right.node)
            if not silent or self._table.watched:
                self._check(peer)
        again = self._table.watched and peer.unheard > 0 and not peer.unheard % SILENT
        if peer.unheard == SILENT or again:
            self._doubt(peer.left.node)
        if peer.standing is Standing.LINKED:
            if peer.unheard < UNHEARD:
                peer.tries = 0
            elif peer.wait <= 0:
                self._look_for_place(peer)

    def _tick_around(self) -> None:
        """Time to look for other rings? If nothing changes, few of a ring do so: its levels tell how many it has."""
        peers, idle = self._table.in_ring(), self._table.idle_ticks
        if idle <= LOOK_AROUND or any(peer.pace.sweeps(len(peer.levels)) for peer in peers):
            if self._ticks % LOOK_AROUND == 0:
                self._look_around()
            return
        if all(peer.right == peer.me for peer in peers) and self._ticks % ALONE == 0:
            self._look_around()
            return
        height = max((len(peer.levels) for peer in peers), default=0)
        size = 2.0 ** (height - 2)  # about
        if self._table.random.random() * idle * max(1, size / LOOKERS) < 1:
            self._look_around()

    def _look_around(self) -> None:
        """One peer asks another node for its own place: is there more than our ring?"""
        table = self._table
        linked = [peer for peer in table.peers.values() if peer.standing is Standing.LINKED]
        if not linked:
            return
        peer = table.random.choice(linked)
        others = (*table.introducers, *table.fallbacks)
        alive = [node for node in others if node not in table.suspects]
        if alive:
            node = table.random.choice(alive)
            peer.ticket = peer.ticket or table.ticket()
            table.send(node, m.Locate(peer.key, table.number, peer.ticket))
