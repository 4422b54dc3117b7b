"""How a key gets its place in the ring, and gets it back. The rules stand in `ring`."""

from collections import Counter
from dataclasses import replace

from nodes.overlay.skipgraph import messages as m
from nodes.overlay.skipgraph.actions import Restored
from nodes.overlay.skipgraph.contacts import Contact
from nodes.overlay.skipgraph.keys import between
from nodes.overlay.skipgraph.levels import Levels
from nodes.overlay.skipgraph.links import SUCCESSORS, UNHEARD, Links
from nodes.overlay.skipgraph.routing import holder, next_hop
from nodes.overlay.skipgraph.table import Peer, Standing, Table

PATIENCE = 2  # ticks between two questions for a place
UNASKED = 0  # ticket of a Gap that somebody else asked for
HELPLESS = 4  # questions without an answer; if no introducer helps, a ring is founded
LATE = 8  # times as many, if the dead are known and answers are only late


class Places(Links):
    """Locate, Gap, Claim and their like."""

    def __init__(self, table: Table, levels: Levels) -> None:
        super().__init__(table, levels)
        self._asked: Counter[int] = Counter()  # introducers, how often each was no help
        self._helpless = HELPLESS * LATE if table.watched else HELPLESS

    def insert(self, key: bytes) -> None:
        """Begin to insert; Inserted comes when it is done."""
        table = self._table
        if (peer := table.peers.get(key)) is not None:
            peer.unwanted = False
            peer.again = peer.standing is Standing.LEAVING
            return
        me = Contact(key, table.number, table.vector)
        table.peers[key] = Peer(me, table.birth(), me, me)
        self._asked.clear()
        self._look_for_place(table.peers[key])

    def _look_for_place(self, peer: Peer) -> None:
        """Ask who has the key in its gap; the answer is a Gap."""
        table = self._table
        if peer.standing is Standing.JOINING and not table.in_ring() and self._alone():
            self._found_ring(peer)
            return
        peer.ticket = peer.ticket or table.ticket()
        peer.wait = PATIENCE
        peer.tries += 1
        question = m.Locate(peer.key, table.number, peer.ticket)
        if table.in_ring() and (peer.tries % 2 or not table.introducers):
            self.on_locate(question)
            return
        for node in self._introducers(peer.tries):
            self._asked[node] += 1
            table.send(node, question)

    def _introducers(self, turn: int) -> list[int]:
        """Whom to ask: one of the introducers that may help yet; if there is none, all that one can fall back on."""
        table = self._table
        fallbacks = self._hopeful(table.fallbacks)
        if fallbacks and not self._hopeful(table.introducers):
            return fallbacks
        alive = [node for node in table.introducers if node not in table.suspects]
        least = min((self._asked[node] for node in alive), default=0)
        best = [node for node in alive if self._asked[node] == least]
        return [best[turn % len(best)]] if best else []

    def _hopeful(self, nodes: tuple[int, ...]) -> list[int]:
        suspects, most = self._table.suspects, self._helpless
        return [node for node in nodes if self._asked[node] < most and node not in suspects]

    def _alone(self) -> bool:
        table = self._table
        return not self._hopeful(table.introducers) and not self._hopeful(table.fallbacks)

    def _found_ring(self, peer: Peer) -> None:
        peer.right_number = peer.left_number
        peer.standing = Standing.LINKED
        self._changed(peer)
        self._settle(peer)

    def on_locate(self, question: m.Locate) -> None:
        table = self._table
        peer = holder(table, question.key)
        if peer is not None and peer.standing is Standing.LEAVING:
            peer.held.append(question)
        elif peer is not None and not peer.unsure:
            gap = m.Gap(question.ticket, peer.me, peer.right, peer.right_number)
            table.send(question.asker, gap)
        else:
            if not question.hops and question.asker != table.number:
                table.send(question.asker, m.Noted(question.ticket, empty=False))
            if peer is None:
                self._pass_on(question.key, question)

    def on_doubt(self, doubt: m.Doubt) -> None:
        """Somebody has lost the peer of this key."""
        peer = holder(self._table, doubt.key)
        if peer is None:
            self._pass_on(doubt.key, doubt)
        elif peer.right.key == doubt.key and not peer.unanswered:
            peer.pace.wake()
            self._check(peer)

    def look_through(self, node: int) -> None:
        """All own peers ask this node for their places: it may stand in another ring."""
        table = self._table
        for peer in table.peers.values():
            if peer.standing is Standing.JOINING:
                ticket = peer.ticket = peer.ticket or table.ticket()
            else:
                ticket = peer.abroad = table.ticket()
            table.send(node, m.Locate(peer.key, table.number, ticket))

    def _pass_on(self, key: bytes, message: m.Locate | m.Unlink | m.Doubt) -> None:
        hop = next_hop(self._table, key, message.hops)
        if hop is not None:
            self._table.send(hop.to.node, replace(message, hops=hop.hops))

    def on_noted(self, sender: int, answer: m.Noted) -> None:
        """An introducer has passed the question on, or cannot."""
        if not answer.empty:
            del self._asked[sender]
            return
        table = self._table
        if sender > table.number or sender not in table.introducers:
            # who has the lower number founds a ring, the other waits a while for it
            self._asked[sender] = self._helpless
        else:
            self._asked[sender] += self._helpless // HELPLESS - 1
        self._levels.forget_node(sender)
        hopeful = self._hopeful(table.introducers) or self._hopeful(table.fallbacks)
        unasked = any(not self._asked[node] for node in hopeful)
        founds = self._alone() and not table.in_ring()
        for peer in list(table.peers.values()):
            waits = peer.ticket == answer.ticket and peer.standing is Standing.JOINING
            if waits and (unasked or founds):  # else it asks again when it has waited: no storm
                self._look_for_place(peer)

    def on_gap(self, gap: m.Gap) -> bool:
        """Whether the answer was for a peer that looks for its place, or that others have looked for."""
        if gap.ticket == UNASKED:
            for peer in self._table.in_ring():
                if between(gap.left.key, peer.key, gap.right.key) and self._is_closer(peer, gap):
                    self._ask_for(peer, gap)
                    break
            return True
        for peer in self._table.peers.values():
            if peer.abroad == gap.ticket and peer.standing is Standing.LINKED:
                peer.abroad = 0
                self._rejoin(peer, gap)
                return True
            if peer.ticket == gap.ticket:
                peer.ticket = 0
                self._asked.pop(gap.left.node, None)
                if peer.standing is Standing.JOINING:
                    self._join(peer, gap)
                elif peer.standing is Standing.LINKED:
                    self._rejoin(peer, gap)
                return True
        return False

    def _join(self, peer: Peer, gap: m.Gap) -> None:
        if gap.right.key == peer.key:
            if peer.claim is not None:
                self._linked(peer, gap.left, gap.number)
            else:  # of an earlier life
                gone = m.Gone(gap.left.key, peer.key, gap.number)
                self._table.send(gap.left.node, gone)
        else:
            peer.right, peer.right_number = gap.right, gap.number + 1
            self._ask_for(peer, gap)

    def _rejoin(self, peer: Peer, gap: m.Gap) -> None:
        """A peer in the ring has looked for its place: is there a better one?"""
        lost = peer.unheard >= UNHEARD or not self._table.alive(peer.left)
        if peer.key in (gap.right.key, gap.left.key):
            return
        if lost or self._is_closer(peer, gap):
            self._ask_for(peer, gap)
        else:  # another ring, whose next one to the right has its place in ours
            self._find_place_for(gap.right)

    def _is_closer(self, peer: Peer, gap: m.Gap) -> bool:
        return peer.standing is Standing.LINKED and between(peer.left.key, gap.left.key, peer.key)

    def _ask_for(self, peer: Peer, gap: m.Gap) -> None:
        table = self._table
        peer.claim = gap
        peer.ticket = table.ticket()
        claim = m.Claim(gap.left.key, peer.me, peer.left_number, gap.right, gap.number, peer.ticket)
        table.send(gap.left.node, claim)

    def on_claim(self, claim: m.Claim) -> None:
        table = self._table
        peer = table.peers.get(claim.at)
        if peer is not None and peer.standing is Standing.LEAVING:
            peer.held.append(claim)
            return
        if peer is not None and peer.in_ring:
            if peer.right == claim.peer:
                self._confirm_claim(peer)
                return
            same = (peer.right, peer.right_number) == (claim.right, claim.number)
            if same and between(peer.key, claim.peer.key, peer.right.key):
                peer.successors = (peer.right, *peer.successors)[:SUCCESSORS]
                self._set_right(peer, claim.peer, claim.own_number + 1)
                self._confirm_claim(peer)
                if not peer.settled:
                    self._check(peer)
                return
        self.on_locate(m.Locate(claim.peer.key, claim.peer.node, claim.ticket))

    def _confirm_claim(self, peer: Peer) -> None:
        answer = m.Claimed(peer.right.key, peer.me, peer.right_number)
        self._table.send(peer.right.node, answer)

    def on_claimed(self, answer: m.Claimed) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or peer.claim is None:
            return
        if peer.standing is Standing.JOINING:
            self._linked(peer, answer.left, answer.number)
        elif peer.standing is Standing.LINKED and peer.claim.left == answer.left:
            gap, peer.claim = peer.claim, None
            self._table.tell(Restored(peer.key))
            self._set_left(peer, answer.left, max(answer.number, peer.left_number))
            if gap.right == peer.right:
                peer.right_number = max(peer.right_number, gap.number + 1)
                self._check(peer)
            elif between(peer.key, gap.right.key, peer.right.key):
                passed_over = peer.right
                self._set_right(peer, gap.right, gap.number + 1)
                self._check(peer)
                self._find_place_for(passed_over)
            else:
                self._find_place_for(gap.right)

    def _find_place_for(self, other: Contact) -> None:
        """Two rings become one, and nobody stands left of this peer any more: it hears of a place in the other ring."""
        self.on_locate(m.Locate(other.key, other.node, UNASKED, hops=1))

    def on_declined(self, answer: m.Declined) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or peer.standing is not Standing.LINKED:
            return
        if (peer.right.key, peer.right_number) != (answer.right.key, answer.number):
            return
        peer.unanswered = 0
        peer.pace.wake()
        if between(peer.key, answer.left.key, peer.right.key):
            if self._table.alive(answer.left) and answer.left.key not in peer.gone:
                self._set_right(peer, answer.left, 0)
                peer.unsure = True
                self._check(peer)
        elif peer.wait <= 0:
            self._look_for_place(peer)
