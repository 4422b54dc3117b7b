"""Level 0: all keys in a ring. One peer alone makes each change, so the ring is exact at every moment.

The left neighbour decides about its gap, from its own key to its right neighbour's. A link to the right has a number
that belongs to the peer it points to: how often its left neighbour changed. The number grows with each change, so a
peer recognizes an outdated message by its number. Every request may be lost and is repeated.

Insert has two steps. Locate is routed to the peer in whose gap the key lies, and this peer answers with the Gap. The
new peer takes over the gap's right neighbour and sends Claim to the left one. The left one makes it its right neighbour
only if the link still has the number of the Gap. (With one step, as first planned, a lost answer would be fatal: the
next new peer to its left changes the gap, and then no peer knows the right neighbour of the first one.) Then the new
peer sends Check to its right neighbour. It is *settled*, and only then Inserted, when the right neighbour is settled
too: a message that goes left from any peer never skips a settled one, however late messages are.

A node without peers in the ring asks introducers. If none of them answers or knows a ring, it founds one. Of nodes that
begin at the same time, the one with the lowest number does so. The others wait for it, as long as for a silent node.

Leave: the peer closes its gap and sends Unlink, routed to its left neighbour. It holds messages about its gap meanwhile
and forwards them afterwards. Unlink may be repeated, too: a key that is not there counts as removed.

Crash: each peer checks its right neighbour. If no answer comes, the neighbour is dead; with `watched`, the layer above
decides, because answers may be late. The peer replaces a dead neighbour by the nearest peer it knows. If that one
declines, it goes left from there, to the first peer that has lost its left neighbour. A peer that gets no checks
locates and claims its own place again. A node whose shell reports a crash, and that is not beside the dead peer,
notifies the peer that is (Suspect). Now and then a peer looks its place up through another node: so separate rings
become one again. The peer that learns of another ring takes its place in it, or notifies a peer of that ring of a place
in its own.

Three classes do this: `Links` keeps the two neighbours of each peer, `Places` finds a peer's place, and `Ring` removes
peers, counts time and handles nodes that are silent or dead.
"""

from collections import Counter
from dataclasses import replace

from nodes.overlay.skipgraph.actions import Inserted, Moved, Removed, Restored, Suspected
from nodes.overlay.skipgraph.levels import Levels
from nodes.overlay.skipgraph.routing import AROUND, between, holder, next_hop
from nodes.overlay.skipgraph.table import SLACK, SUSPECTED_TICKS, Peer, Standing, Step, Table
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact

# Links at level 0


SUCCESSORS = 4
UNCHECKED = 4  # ticks after a check was due, then a peer looks for its place again


class Links:
    """The two neighbours of each peer at level 0: checks, their answers, and the resulting changes."""

    def __init__(self, table: Table, levels: Levels) -> None:
        self._table = table
        self._levels = levels

    def on_check(self, check: m.Check, step: Step) -> None:
        table = self._table
        peer = table.peers.get(check.at)
        if peer is not None and peer.standing is Standing.JOINING and peer.claim is not None:
            self.linked(peer, check.left, check.number, step)
        if peer is None or not peer.in_ring:
            step.send(check.left.node, m.Gone(check.left.key, check.at, check.number))
            return
        lost = peer.unchecked >= UNCHECKED or not table.alive(peer.left)
        if check.left.key == peer.left.key or check.number > peer.left_number:
            self.set_left(peer, check.left, max(check.number, peer.left_number), step)
        elif lost:
            self.set_left(peer, check.left, peer.left_number + 1, step)
        else:
            answer = m.Declined(check.left.key, peer.me, check.number, peer.left)
            step.send(check.left.node, answer)
            self._recheck(peer, step)
            return
        peer.unchecked = 1 - check.pause - check.pause // SLACK
        self._confirm_check(peer, step)

    def _recheck(self, peer: Peer, step: Step) -> None:
        """Another peer would be the left neighbour: check whether the present one is still there."""
        peer.unchecked = max(peer.unchecked, 0)
        peer.pace.wake()
        step.send(peer.left.node, m.Recheck(peer.left.key, peer.key))

    def on_recheck(self, question: m.Recheck, step: Step) -> None:
        peer = self._table.peers.get(question.at)
        if peer is not None and peer.in_ring and peer.right.key == question.right:
            self.check(peer, step)

    def _confirm_check(self, peer: Peer, step: Step) -> None:
        successors = (peer.right, *peer.successors)[:SUCCESSORS]
        answer = m.Checked(peer.left.key, peer.me, peer.left_number, peer.settled, successors)
        step.send(peer.left.node, answer)

    def on_checked(self, answer: m.Checked, step: Step) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or not peer.in_ring or peer.right.key != answer.right.key:
            return
        peer.unanswered = 0
        peer.right_number = max(peer.right_number, answer.number)
        peer.successors = answer.successors
        if peer.unsure:
            peer.unsure = False
            step.notify(Moved(peer.key))
        if peer.dead_right is not None and peer.right != peer.me:
            self._levels.peer_dead(peer, peer.dead_right, step)
        peer.dead_right = None
        # Multicasts never cross the end of the key order: there, the right neighbour need not be settled.
        if answer.settled or peer.right.key <= peer.key:
            self.settle(peer, step)

    def settle(self, peer: Peer, step: Step) -> None:
        """The right neighbour is settled: so is this peer, if no condition fails."""
        if peer.settled or peer.unwanted or peer.standing is not Standing.LINKED:
            return
        peer.settled = True
        step.notify(Inserted(peer.key))
        self._confirm_check(peer, step)

    def on_gone(self, answer: m.Gone, step: Step) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or peer.standing is not Standing.LINKED:
            return
        if (peer.right.key, peer.right_number) == (answer.right, answer.number):
            peer.gone.add(answer.right)
            self._levels.forget_key(answer.right, step)
            self.replace_right(peer, step)

    def replace_right(self, peer: Peer, step: Step) -> None:
        """The right neighbour is gone: take the nearest known peer instead, in the end this peer itself."""
        if peer.right != peer.me:
            peer.dead_right = peer.right
        nearest = peer.me
        out = {peer.right.key, *peer.gone}
        for contact in self._table.known():
            if contact.key not in out and between(peer.key, contact.key, nearest.key):
                nearest = contact
        peer.successors = tuple(c for c in peer.successors if c.key != peer.right.key)
        self.set_right(peer, nearest, peer.left_number if nearest == peer.me else 0, step)
        peer.unsure = True
        self.check(peer, step)

    def linked(self, peer: Peer, left: Contact, number: int, step: Step) -> None:
        """The left neighbour has linked this peer."""
        peer.standing = Standing.LINKED
        peer.claim, peer.ticket, peer.tries = None, 0, 0
        peer.left, peer.left_number = left, max(peer.left_number, number)
        peer.unchecked = 0
        self.changed(peer, step)
        self.check(peer, step)

    def set_right(self, peer: Peer, right: Contact, number: int, step: Step) -> None:
        """Make this contact the right neighbour."""
        changed = peer.right != right
        peer.right, peer.right_number, peer.unanswered, peer.unsure = right, number, 0, False
        if changed:
            self.changed(peer, step)

    def set_left(self, peer: Peer, left: Contact, number: int, step: Step) -> None:
        """Make this contact the left neighbour. A leaving peer repeats Unlink: the old one may be gone."""
        changed = peer.left != left
        peer.left, peer.left_number, peer.unchecked = left, number, 0
        if changed:
            self.changed(peer, step)
            if peer.standing is Standing.LEAVING:
                self.request_unlink(peer, step)

    def request_unlink(self, peer: Peer, step: Step) -> None:
        """Ask the left neighbour of a leaving peer to link past it."""
        request = m.Unlink(peer.me, peer.right, peer.right_number)
        step.send(peer.left.node, request)

    def changed(self, peer: Peer, step: Step) -> None:
        """A neighbour at level 0 has changed."""
        peer.pace.wake()
        step.notify(Moved(peer.key))
        self._levels.changed(peer, 0, step)

    def check(self, peer: Peer, step: Step) -> None:
        """Send Check to the right neighbour, with this peer as its left neighbour."""
        check = m.Check(peer.right.key, peer.me, peer.right_number, peer.pace.pause)
        step.send(peer.right.node, check)


# Places: how a key gets its place in the ring, and gets it back


PATIENCE = 2  # ticks between two requests for a place
UNASKED = 0  # ticket of a Gap that another peer requested
HELPLESS = 4  # requests without an answer; if no introducer helps, the node founds a ring
LATE = 8  # times as many, if dead nodes are reported and answers are only late


class Places:
    """Finds places for the peers of a node, by Locate, Gap, Claim and the like."""

    def __init__(self, table: Table, links: Links, levels: Levels) -> None:
        self._table = table
        self._links = links
        self._levels = levels
        self._asked: Counter[int] = Counter()  # introducers, how often each was no help
        self._helpless = HELPLESS * LATE if table.watched else HELPLESS

    def insert(self, key: bytes, step: Step) -> None:
        """Begin to insert; Inserted reports the end."""
        table = self._table
        if (peer := table.peers.get(key)) is not None:
            peer.unwanted = False
            peer.again = peer.standing is Standing.LEAVING
            return
        me = Contact(key, table.number, table.vector)
        table.peers[key] = Peer(me, table.first_number(), me, me)
        self._asked.clear()
        self.look_for_place(table.peers[key], step)

    def look_for_place(self, peer: Peer, step: Step) -> None:
        """Locate the peer that has the key in its gap; the answer is a Gap."""
        table = self._table
        if peer.standing is Standing.JOINING and not table.in_ring() and self._alone():
            self._found_ring(peer, step)
            return
        peer.ticket = peer.ticket or table.ticket()
        peer.wait = PATIENCE
        peer.tries += 1
        question = m.Locate(peer.key, table.number, peer.ticket)
        if table.in_ring() and (peer.tries % 2 or not table.introducers):
            self.on_locate(question, step)
            return
        for node in self._introducers(peer.tries):
            self._asked[node] += 1
            step.send(node, question)

    def _introducers(self, turn: int) -> list[int]:
        """The nodes to ask: one of the introducers that may still help; if there is none, all fallbacks."""
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

    def _found_ring(self, peer: Peer, step: Step) -> None:
        peer.right_number = peer.left_number
        peer.standing = Standing.LINKED
        self._links.changed(peer, step)
        self._links.settle(peer, step)

    def on_locate(self, question: m.Locate, step: Step) -> None:
        table = self._table
        peer = holder(table, question.key)
        if peer is not None and peer.standing is Standing.LEAVING:
            peer.held.append(question)
        elif peer is not None and not peer.unsure:
            gap = m.Gap(question.ticket, peer.me, peer.right, peer.right_number)
            step.send(question.asker, gap)
        else:
            if not question.hops and question.asker != table.number:
                step.send(question.asker, m.Noted(question.ticket, empty=False))
            if peer is None:
                self.pass_on(question.key, question, step)

    def on_suspect(self, suspicion: m.Suspect, step: Step) -> None:
        """Another peer has lost the peer with this key."""
        peer = holder(self._table, suspicion.key)
        if peer is None:
            self.pass_on(suspicion.key, suspicion, step)
        elif peer.right.key == suspicion.key and not peer.unanswered:
            peer.pace.wake()
            self._links.check(peer, step)

    def look_through(self, node: int, step: Step) -> None:
        """Let all own peers look their places up through this node, which may be in another ring."""
        table = self._table
        for peer in table.peers.values():
            if peer.standing is Standing.JOINING:
                ticket = peer.ticket = peer.ticket or table.ticket()
            else:
                ticket = peer.abroad = table.ticket()
            step.send(node, m.Locate(peer.key, table.number, ticket))

    def pass_on(self, key: bytes, message: m.Locate | m.Unlink | m.Suspect, step: Step) -> None:
        """Route a request on towards the key."""
        hop = next_hop(self._table, key, message.hops)
        if hop is not None:
            step.send(hop.to.node, replace(message, hops=hop.hops))

    def on_noted(self, sender: int, answer: m.Noted, step: Step) -> None:
        """An introducer has forwarded the request, or cannot."""
        if not answer.empty:
            del self._asked[sender]
            return
        table = self._table
        if sender > table.number or sender not in table.introducers:
            # The node with the lower number founds a ring; the other one waits a while for it.
            self._asked[sender] = self._helpless
        else:
            self._asked[sender] += self._helpless // HELPLESS - 1
        self._levels.forget_node(sender, step)
        hopeful = self._hopeful(table.introducers) or self._hopeful(table.fallbacks)
        unasked = any(not self._asked[node] for node in hopeful)
        founds = self._alone() and not table.in_ring()
        for peer in list(table.peers.values()):
            waits = peer.ticket == answer.ticket and peer.standing is Standing.JOINING
            if waits and (unasked or founds):  # else it asks again after its wait: no message storm
                self.look_for_place(peer, step)

    def on_gap(self, gap: m.Gap, step: Step) -> bool:
        """Whether the answer was for a peer that looks for its place, or for which another node looked."""
        if gap.ticket == UNASKED:
            for peer in self._table.in_ring():
                if between(gap.left.key, peer.key, gap.right.key) and self._is_closer(peer, gap):
                    self._ask_for(peer, gap, step)
                    break
            return True
        for peer in self._table.peers.values():
            if peer.abroad == gap.ticket and peer.standing is Standing.LINKED:
                peer.abroad = 0
                self._rejoin(peer, gap, step)
                return True
            if peer.ticket == gap.ticket:
                peer.ticket = 0
                self._asked.pop(gap.left.node, None)
                if peer.standing is Standing.JOINING:
                    self._join(peer, gap, step)
                elif peer.standing is Standing.LINKED:
                    self._rejoin(peer, gap, step)
                return True
        return False

    def _join(self, peer: Peer, gap: m.Gap, step: Step) -> None:
        if gap.right.key == peer.key:
            if peer.claim is not None:
                self._links.linked(peer, gap.left, gap.number, step)
            else:  # of an earlier incarnation
                gone = m.Gone(gap.left.key, peer.key, gap.number)
                step.send(gap.left.node, gone)
        else:
            peer.right, peer.right_number = gap.right, gap.number + 1
            self._ask_for(peer, gap, step)

    def _rejoin(self, peer: Peer, gap: m.Gap, step: Step) -> None:
        """A peer in the ring has looked its place up: move it, if there is a better place."""
        lost = peer.unchecked >= UNCHECKED or not self._table.alive(peer.left)
        if peer.key in (gap.right.key, gap.left.key):
            return
        if lost or self._is_closer(peer, gap):
            self._ask_for(peer, gap, step)
        else:  # another ring, whose next peer to the right has its place in ours
            self._find_place_for(gap.right, step)

    def _is_closer(self, peer: Peer, gap: m.Gap) -> bool:
        return peer.standing is Standing.LINKED and between(peer.left.key, gap.left.key, peer.key)

    def _ask_for(self, peer: Peer, gap: m.Gap, step: Step) -> None:
        table = self._table
        peer.claim = gap
        peer.ticket = table.ticket()
        claim = m.Claim(gap.left.key, peer.me, peer.left_number, gap.right, gap.number, peer.ticket)
        step.send(gap.left.node, claim)

    def on_claim(self, claim: m.Claim, step: Step) -> None:
        table = self._table
        peer = table.peers.get(claim.at)
        if peer is not None and peer.standing is Standing.LEAVING:
            peer.held.append(claim)
            return
        if peer is not None and peer.in_ring:
            if peer.right == claim.peer:
                self._confirm_claim(peer, step)
                return
            same = (peer.right, peer.right_number) == (claim.right, claim.number)
            if same and between(peer.key, claim.peer.key, peer.right.key):
                peer.successors = (peer.right, *peer.successors)[:SUCCESSORS]
                self._links.set_right(peer, claim.peer, claim.own_number + 1, step)
                self._confirm_claim(peer, step)
                if not peer.settled:
                    self._links.check(peer, step)
                return
        self.on_locate(m.Locate(claim.peer.key, claim.peer.node, claim.ticket), step)

    def _confirm_claim(self, peer: Peer, step: Step) -> None:
        answer = m.Claimed(peer.right.key, peer.me, peer.right_number)
        step.send(peer.right.node, answer)

    def on_claimed(self, answer: m.Claimed, step: Step) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or peer.claim is None:
            return
        if peer.standing is Standing.JOINING:
            self._links.linked(peer, answer.left, answer.number, step)
        elif peer.standing is Standing.LINKED and peer.claim.left == answer.left:
            gap, peer.claim = peer.claim, None
            step.notify(Restored(peer.key))
            self._links.set_left(peer, answer.left, max(answer.number, peer.left_number), step)
            if gap.right == peer.right:
                peer.right_number = max(peer.right_number, gap.number + 1)
                self._links.check(peer, step)
            elif between(peer.key, gap.right.key, peer.right.key):
                passed_over = peer.right
                self._links.set_right(peer, gap.right, gap.number + 1, step)
                self._links.check(peer, step)
                self._find_place_for(passed_over, step)
            else:
                self._find_place_for(gap.right, step)

    def _find_place_for(self, other: Contact, step: Step) -> None:
        """Two rings merge, and `other` has no left neighbour any more: notify it of its place in this ring."""
        self.on_locate(m.Locate(other.key, other.node, UNASKED, hops=1), step)

    def on_declined(self, answer: m.Declined, step: Step) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is None or peer.standing is not Standing.LINKED:
            return
        if (peer.right.key, peer.right_number) != (answer.right.key, answer.number):
            return
        peer.unanswered = 0
        peer.pace.wake()
        if between(peer.key, answer.left.key, peer.right.key):
            if self._table.alive(answer.left) and answer.left.key not in peer.gone:
                self._links.set_right(peer, answer.left, 0, step)
                peer.unsure = True
                self._links.check(peer, step)
        elif peer.wait <= 0:
            self.look_for_place(peer, step)


UNANSWERED = 3  # checks, then the right neighbour counts as dead
SILENT = 8  # ticks, then the left neighbour of a peer counts as dead
LEAVE_TRIES = 8  # attempts to leave in order
LONGEST_WAIT = 8  # ticks between attempts
LOOK_AROUND = 5  # ticks between two lookups through another node, while something changes
ALONE = 20  # the same for a peer that is alone in its ring, always
FOUND_TICKS = 6  # for so long peers look their places up through a node that was lost and is back
LOOKERS = 8  # nodes of a ring, of any size, that look up through another one in an idle pause


class Ring:
    """Keeps the peers of a node in the ring until they leave: handles time, silence and crashes."""

    def __init__(self, table: Table, links: Links, places: Places, levels: Levels) -> None:
        self._table = table
        self._links = links
        self._places = places
        self._levels = levels
        self._ticks = 0
        self._found: dict[int, int] = {}  # nodes that were lost and are back -> ticks left

    def remove(self, key: bytes, step: Step) -> None:
        """Begin to leave; Removed reports the end."""
        peer = self._table.peers.get(key)
        if peer is None:
            return
        peer.again = False
        if peer.standing is Standing.LEAVING:
            return
        if peer.standing is Standing.LINKED:
            self._leave(peer, step)
        elif peer.claim is None:
            self._finish(peer, step)
        else:
            peer.unwanted = True

    def _leave(self, peer: Peer, step: Step) -> None:
        peer.standing, peer.tries, peer.ticket, peer.again = Standing.LEAVING, 0, 0, False
        self._ask_to_leave(peer, step)

    def _ask_to_leave(self, peer: Peer, step: Step) -> None:
        peer.wait = min(2 << peer.tries, LONGEST_WAIT)
        peer.tries += 1
        if peer.right == peer.me or peer.tries > LEAVE_TRIES:
            self._finish(peer, step)
        else:
            self._links.request_unlink(peer, step)

    def on_unlink(self, request: m.Unlink, step: Step) -> None:
        table = self._table
        peer = holder(table, request.peer.key)
        if peer is None:
            self._places.pass_on(request.peer.key, request, step)
            return
        if peer.standing is Standing.LEAVING:
            peer.held.append(request)
            return
        if peer.right == request.peer:
            self._links.set_right(peer, request.right, request.number + 1, step)
            self._links.check(peer, step)
        step.send(request.peer.node, m.Unlinked(request.peer.key))

    def on_unlinked(self, answer: m.Unlinked, step: Step) -> None:
        peer = self._table.peers.get(answer.at)
        if peer is not None and peer.standing is Standing.LEAVING:
            self._finish(peer, step)

    def _finish(self, peer: Peer, step: Step) -> None:
        table = self._table
        del table.peers[peer.key]
        self._levels.announce_leave(peer, step)
        for message in peer.held:
            step.send(peer.left.node, message)
        step.notify(Removed(peer.key))
        if peer.again:
            self._places.insert(peer.key, step)

    def suspect(self, node: int, step: Step) -> None:
        """The node is dead, or seems to be."""
        table = self._table
        if node == table.number:
            return
        news = node not in table.suspects
        table.suspects[node] = SUSPECTED_TICKS
        others: set[bytes] = set()  # dead keys whose left neighbour is no own peer
        for peer in list(table.peers.values()):
            known = {contact.key for contact in peer.contacts() if contact.node == node}
            if not known:
                continue
            peer.pace.wake()
            if peer.left.node == node:
                peer.unchecked = max(peer.unchecked, UNCHECKED)
            if peer.right.node == node:
                known.discard(peer.right.key)
                if peer.standing is Standing.LINKED:
                    self._links.replace_right(peer, step)
            others |= known
        self._levels.forget_node(node, step)
        for key in sorted(others) if news and table.in_ring() else ():
            self._places.on_suspect(
                m.Suspect(key, AROUND), step
            )  # from the left, not over the dead peer

    def _suspect(self, node: int, step: Step) -> None:
        """The node is silent: treat it as dead, unless the layer above decides that."""
        if not self._table.watched:
            self.suspect(node, step)
        elif Suspected(node) not in step.actions and node != self._table.number:
            step.notify(Suspected(node))

    def found(self, node: int, step: Step) -> None:
        """The node was lost and is back, or this one was: there may be two rings now."""
        self._table.suspects.pop(node, None)
        if self._table.peers:
            self._found[node] = FOUND_TICKS
            self._places.look_through(node, step)

    def tick(self, step: Step) -> list[Peer]:
        """A period has passed. Return the peers whose turn it is to check their neighbours."""
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
                self._tick_peer(peer, look, step)
                if look:
                    looking.append(peer)
        self._tick_found(step)
        self._tick_around(step)
        return looking

    def _tick_found(self, step: Step) -> None:
        for node, left in list(self._found.items()):
            if not left or node in self._table.suspects:
                del self._found[node]
                continue
            self._found[node] = left - 1
            if left % PATIENCE == 1:
                self._places.look_through(node, step)

    def _tick_peer(self, peer: Peer, look: bool, step: Step) -> None:
        peer.wait -= 1
        if peer.standing is Standing.JOINING:
            if peer.wait <= 0:
                self._places.look_for_place(peer, step)
            return
        if peer.unwanted and peer.standing is Standing.LINKED:
            self._leave(peer, step)
        if peer.right == peer.me:
            peer.left, peer.unchecked = peer.me, 0
            if peer.unsure:  # not sure yet that it is alone, because of its last left neighbour
                self._links.check(peer, step)
        else:
            self._tick_neighbours(peer, look, step)
        if peer.standing is Standing.LEAVING and peer.wait <= 0:
            self._ask_to_leave(peer, step)

    def _tick_neighbours(self, peer: Peer, look: bool, step: Step) -> None:
        peer.unchecked += 1
        if not self._ticks % SILENT:
            peer.gone.clear()
        if look:
            peer.unanswered += 1
            silent = peer.unanswered > UNANSWERED and peer.standing is Standing.LINKED
            if silent and (peer.unanswered == UNANSWERED + 1 or not self._ticks % SILENT):
                self._suspect(peer.right.node, step)
            if not silent or self._table.watched:
                self._links.check(peer, step)
        again = self._table.watched and peer.unchecked > 0 and not peer.unchecked % SILENT
        if peer.unchecked == SILENT or again:
            self._suspect(peer.left.node, step)
        if peer.standing is Standing.LINKED:
            if peer.unchecked < UNCHECKED:
                peer.tries = 0
            elif peer.wait <= 0:
                self._places.look_for_place(peer, step)

    def _tick_around(self, step: Step) -> None:
        """Look for other rings, if it is time. Without changes few nodes do so: the levels show the ring's size."""
        peers, idle = self._table.in_ring(), self._table.idle_ticks
        if idle <= LOOK_AROUND or any(peer.pace.sweeps(len(peer.levels)) for peer in peers):
            if self._ticks % LOOK_AROUND == 0:
                self._look_around(step)
            return
        if all(peer.right == peer.me for peer in peers) and self._ticks % ALONE == 0:
            self._look_around(step)
            return
        height = max((len(peer.levels) for peer in peers), default=0)
        size = 2.0 ** (height - 2)  # about
        if self._table.random.random() * idle * max(1, size / LOOKERS) < 1:
            self._look_around(step)

    def _look_around(self, step: Step) -> None:
        """Let one peer look its place up through another node, to find peers outside this ring."""
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
            step.send(node, m.Locate(peer.key, table.number, peer.ticket))
