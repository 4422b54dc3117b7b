"""A node of a Skip Graph: messages and time in, actions out. No socket, no clock; the caller passes the random source.

`now` is in seconds. Periodic work runs once a period, at an offset that differs from node to node; where nothing
changes, once an idle period (`table.Pace`).
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any

from nodes.overlay.skipgraph.actions import Action, Carried, Notified, Result
from nodes.overlay.skipgraph.levels import Levels
from nodes.overlay.skipgraph.multicast import Multicaster
from nodes.overlay.skipgraph.ring import Links, Places, Ring
from nodes.overlay.skipgraph.routing import AROUND, MAX_HOPS, Hop, holder, next_hop
from nodes.overlay.skipgraph.table import KnownPlace, Peer, Step, Table, stand
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_messages import Contact
from nodes.protocol.wire import Message as Publication

# The node's state as JSON values, for status and drawings.


def describe(table: Table) -> dict[str, Any]:
    """The membership vector; each own key and, level by level from 0 on, the keys to its left and right."""
    return {
        "vector": f"{table.vector:016x}",
        "suspects": sorted(table.suspects),
        "peers": [
            {
                "key": peer.key.hex(),
                "settled": peer.settled,
                "links": [
                    [_name(peer.neighbour(level, rightwards)) for rightwards in (False, True)]
                    for level in range(len(peer.levels) + 1)
                ],
            }
            for peer in table.peers.values()
        ],
    }


def _name(contact: Contact | None) -> str | None:
    return None if contact is None else contact.key.hex()


PERIOD_S = 1.0
IDLE_PERIOD_S = 120.0
MOST_IDLE_TICKS = 0xFFFF
DETOUR = 32  # hops that it counts: a limit for requests among nodes without peers


class SkipGraphNode:
    """One physical node, with any number of keys.

    `introducers` are nodes that may know a node of the graph; the node asks `fallbacks` if no introducer does. If no
    node knows one, the first key founds a graph. `incarnation` must grow whenever a node of this number starts again,
    for example with the time of day. `watched`: the layer above detects dead nodes, by its links. Then a node whose
    answers are late is not taken for dead, but reported as Suspected.
    """

    def __init__(
        self,
        number: int,
        vector: int,
        introducers: tuple[int, ...],
        random: Random,
        incarnation: int = 0,
        period_s: float = PERIOD_S,
        idle_period_s: float = IDLE_PERIOD_S,
        watched: bool = False,
        fallbacks: tuple[int, ...] = (),
    ) -> None:
        idle_ticks = min(max(1, round(idle_period_s / period_s)), MOST_IDLE_TICKS)
        self._table = Table(
            number, vector, introducers, random, incarnation, idle_ticks, watched, fallbacks
        )
        self._levels = Levels(self._table)
        links = Links(self._table, self._levels)
        self._places = Places(self._table, links, self._levels)
        self._ring = Ring(self._table, links, self._places, self._levels)
        self._multicaster = Multicaster(self._table)
        self._period_s = period_s
        self._due: float | None = None
        self._handlers: dict[type[Any], Callable[[Any, Step], object]] = {
            m.Locate: self._places.on_locate,
            m.Gap: self._on_gap,
            m.Claim: self._places.on_claim,
            m.Claimed: self._places.on_claimed,
            m.Unlink: self._ring.on_unlink,
            m.Unlinked: self._ring.on_unlinked,
            m.Check: links.on_check,
            m.Checked: links.on_checked,
            m.Declined: self._places.on_declined,
            m.Gone: links.on_gone,
            m.Recheck: links.on_recheck,
            m.Suspect: self._places.on_suspect,
            m.PeerDead: self._levels.on_peer_dead,
            m.Find: self._levels.on_find,
            m.Found: self._levels.on_found,
            m.Bye: self._levels.on_bye,
            m.Seek: self._on_seek,
            m.Sought: self._on_sought,
            m.Carry: self._on_carry,
        }

    @property
    def number(self) -> int:
        return self._table.number

    def peer(self, key: bytes) -> Peer | None:
        """The own peer with this key, for reading only."""
        return self._table.peers.get(key)

    def own_keys(self) -> list[bytes]:
        """The own keys, including those that are being inserted or removed."""
        return list(self._table.peers)

    @property
    def left(self) -> bool:
        """Whether the node has no key, and no publication waits."""
        return not self._table.peers and not self._multicaster.holds()

    @property
    def stands(self) -> bool:
        """Whether the node has a key in the ring, to its own knowledge."""
        return bool(self._table.in_ring())

    def way_to(self, key: bytes, hops: int = 0) -> Hop | None:
        """The next node towards the peer that has the key in its gap; None: this node has it, or none is known."""
        if holder(self._table, key) is not None:
            return None
        return next_hop(self._table, key, hops)

    def guide(self) -> int | None:
        """Another node that may know the way, for a node that has no key any more."""
        guides = self._table.guides()
        return self._table.random.choice(guides) if guides else None

    def suspects(self, number: int) -> bool:
        """Whether this node is taken for dead."""
        return number in self._table.suspects

    def describe(self) -> dict[str, Any]:
        """All keys and links, as JSON values."""
        return describe(self._table)

    # Requests of the layer above

    def begin_at(self, places: Iterable[KnownPlace], now: float) -> list[Action]:
        """Take places in a graph that is known from outside; for a node without keys. No message is sent."""
        step = Step(self.number)
        stand(self._table, places)
        self._levels.stand()
        return self._done(step, now)

    def insert(self, key: bytes, now: float) -> list[Action]:
        """Begin to insert the key; Inserted reports the end."""
        step = Step(self.number)
        self._places.insert(key, step)
        return self._done(step, now)

    def remove(self, key: bytes, now: float) -> list[Action]:
        """Begin to remove the key; Removed reports the end."""
        step = Step(self.number)
        self._ring.remove(key, step)
        return self._done(step, now)

    def search(self, key: bytes, now: float) -> tuple[int, list[Action]]:
        """Search for a key; Result with this ticket reports where the search ended. The search may get lost."""
        step = Step(self.number)
        ticket = self._table.ticket()
        step.send(self.number, m.Seek(key, self.number, ticket))
        return ticket, self._done(step, now)

    def carry(self, key: bytes, body: bytes, now: float) -> list[Action]:
        """Send a control message to the peer that has the key in its gap. The message may get lost."""
        step = Step(self.number)
        step.send(self.number, m.Carry(key, self.number, 0, body))
        return self._done(step, now)

    def multicast(
        self,
        low: bytes,
        high: bytes,
        identity: int,
        body: bytes | Publication,
        now: float,
        way: m.Way = m.Way.SPLIT,
        floor: bytes | None = None,
    ) -> list[Action]:
        """Send to all keys in [low, high); a flood may also pass those from `floor` on.

        `identity` is unique among publications, or among multicasts of bytes, as `wire.message_id` makes it.
        """
        step = Step(self.number)
        floor = low if floor is None else floor
        multicast = m.Multicast(b"", b"", self.number, way, floor, low, high, identity, body)
        self._ask(self._multicaster.begin(multicast, step), step)
        return self._done(step, now)

    def start_at(self, node: int, multicast: m.Multicast, now: float) -> list[Action]:
        """Let a peer of another node, `multicast.at`, begin a multicast as if it were its own."""
        step = Step(self.number)
        step.send(node, multicast)
        return self._done(step, now)

    def serve_again(self, multicast: m.Multicast, now: float) -> list[Action]:
        """The node of the peer `multicast.at`, which had a part, is dead: other peers serve it, as soon as they are
        found.
        """
        step = Step(self.number)
        self._ask(self._multicaster.around(multicast, step), step)
        return self._done(step, now)

    def holds(self, message_id: int) -> bool:
        """Whether parts of this publication wait, because the first peer of each is not known yet."""
        return self._multicaster.holds(message_id)

    def notify(self, node: int, body: bytes, now: float) -> list[Action]:
        """Send a control message to the layer above of another node. The message may get lost."""
        step = Step(self.number)
        step.send(node, m.Notify(body))
        return self._done(step, now)

    # Events

    def on_message(self, sender: int, message: m.GraphMessage, now: float) -> list[Action]:
        """A message came from the node of this number."""
        step = Step(self.number)
        self._table.suspects.pop(sender, None)
        self._handle(sender, message, step)
        return self._done(step, now)

    def on_peer_lost(self, number: int, now: float) -> list[Action]:
        """The shell has found that the node is dead."""
        step = Step(self.number)
        self._ring.suspect(number, step)
        return self._done(step, now)

    def on_peer_found(self, number: int, now: float) -> list[Action]:
        """The shell has reached a lost node again, or the first node after all were lost."""
        step = Step(self.number)
        self._ring.found(number, step)
        return self._done(step, now)

    def next_deadline(self) -> float | None:
        return self._due

    def on_deadline(self, now: float) -> list[Action]:
        step = Step(self.number)
        if self._due is not None and now >= self._due:
            self._due = None
            self._levels.refresh(self._ring.tick(step), step)
            self._ask(self._multicaster.tick(step), step)
        return self._done(step, now)

    def _handle(self, sender: int, message: m.GraphMessage, step: Step) -> None:
        match message:
            case m.Suspect() if not self._table.in_ring():
                pass
            case m.Locate() | m.Unlink() | m.Seek() | m.Carry() if not self._table.in_ring():
                self._on_routed_in_vain(sender, message, step)
            case m.Multicast():
                self._ask(self._multicaster.on_multicast(message, step), step)
            case m.Noted():
                self._places.on_noted(sender, message, step)
            case m.Notify():
                step.notify(Notified(sender, message.body))
            case _:
                self._handlers[type(message)](message, step)

    def _on_routed_in_vain(
        self, sender: int, message: m.Locate | m.Unlink | m.Seek | m.Carry, step: Step
    ) -> None:
        """A node with an outdated link sent a message to this one, which has no peer in the ring any more: answer so.

        A Locate that another node has forwarded, or an Unlink, goes on by an introducer, because otherwise the asking
        peer would wait in vain. A node without any peer forwards every Locate: it may know other nodes than the asking
        one does.
        """
        table = self._table
        ticket = message.ticket if isinstance(message, m.Locate) else 0
        step.send(sender, m.Noted(ticket, empty=True))
        from_afar = isinstance(message, m.Locate) and (message.asker != sender or not table.peers)
        guides = [node for node in table.guides() if node != sender]
        if (from_afar or isinstance(message, m.Unlink)) and guides:
            onward = replace(message, hops=message.hops + DETOUR)
            if onward.hops < MAX_HOPS:
                step.send(table.random.choice(guides), onward)

    def _done(self, step: Step, now: float) -> list[Action]:
        table = self._table
        while step.local:
            self._handle(table.number, step.local.popleft(), step)
        if not table.peers and not self._multicaster.waiting:
            self._due = None
        elif self._due is None:
            self._due = now + self._period_s * (0.9 + 0.2 * table.random.random())
        return step.actions

    def _on_gap(self, gap: m.Gap, step: Step) -> None:
        if not self._places.on_gap(gap, step):
            self._multicaster.on_gap(gap, step)

    def _ask(self, questions: list[m.Locate], step: Step) -> None:
        """Send the requests of a node that may have no peer any more."""
        table = self._table
        for question in questions:
            guides = table.guides()
            if table.in_ring():
                self._places.on_locate(question, step)
            elif guides:
                step.send(table.random.choice(guides), question)

    def _on_seek(self, seek: m.Seek, step: Step) -> None:
        table = self._table
        exact = table.peers.get(seek.key)
        end = exact if exact is not None and exact.in_ring else holder(table, seek.key)
        if end is not None and (end.right.key != seek.key or end is exact):
            step.send(seek.asker, m.Sought(seek.ticket, end.me, seek.hops % AROUND))
            return
        hop = next_hop(table, seek.key, seek.hops, exact=True)
        if end is not None and seek.hops < MAX_HOPS:
            hop = Hop(end.right, seek.hops + 1)
        if hop is not None:
            step.send(hop.to.node, replace(seek, hops=hop.hops))

    def _on_sought(self, sought: m.Sought, step: Step) -> None:
        step.notify(Result(sought.ticket, sought.contact, sought.hops))

    def _on_carry(self, carry: m.Carry, step: Step) -> None:
        table = self._table
        end = holder(table, carry.key)
        if end is not None:
            step.notify(Carried(end.key, carry.asker, carry.body))
            return
        hop = next_hop(table, carry.key, carry.hops)
        if hop is not None:
            step.send(hop.to.node, replace(carry, hops=hop.hops))
