"""The state of one node: its own peers, their neighbours, and the nodes that are suspected to be dead."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random

from nodes.overlay.reliability.dedup import DedupWindow
from nodes.overlay.skipgraph.actions import Action, Event, Send
from nodes.protocol.skipgraph_messages import Contact, Gap, GraphMessage

# Pace: how often a peer checks its neighbours. Each tick while anything changes, then less and less often.
#
# A check covers the right neighbour and one level, or two levels soon after a change. Where no message is lost silently
# and dead nodes are reported, as between brokers, checks find nothing to repair; they are the last safeguard. After
# enough checks to go through all levels three times without a change, the pause doubles, up to that of an idle peer.
# Any change wakes the peers concerned.


SLACK = 8  # of so many ticks that another node counts, one more: clocks differ


@dataclass(slots=True)
class Pace:
    """The pace of one peer, counted in ticks."""

    pause: int = 1
    rest: int = 1  # until the next check
    calm: int = 0  # checks since the last change

    def wake(self) -> None:
        """Something has changed, or must be checked."""
        self.pause, self.calm = 1, 0
        self.hurry()

    def hurry(self) -> None:
        """Check at the next tick, without changing the pace."""
        self.rest = min(self.rest, 1)

    def tick(self, levels: int, idle: int) -> bool:
        """Whether a check is due."""
        self.rest -= 1
        if self.rest > 0:
            return False
        self.calm += 1
        if not self.sweeps(levels):
            self.pause = min(2 * self.pause, idle)
        self.rest = self.pause
        return True

    def sweeps(self, levels: int) -> bool:
        """Whether the checks have not gone through all levels yet."""
        return self.calm <= 2 * levels + 2


SUSPECTED_TICKS = 30  # then the node tries a silent node again


class Standing(Enum):
    """The state of a peer in the ring."""

    JOINING = auto()  # not in the ring, to its own knowledge
    LINKED = auto()
    LEAVING = auto()  # in the ring until its left neighbour confirms; its own gap is closed


@dataclass(slots=True)
class Sides:
    """The two neighbours in one level above 0."""

    left: Contact | None = None
    right: Contact | None = None


@dataclass(slots=True)
class Peer:
    """One key of this node, with its links."""

    me: Contact
    left_number: int  # of the link from the left: how often the left neighbour changed
    left: Contact
    right: Contact
    right_number: int = 0
    standing: Standing = Standing.JOINING
    settled: bool = False
    unchecked: int = 0  # ticks since the left neighbour should have checked
    unanswered: int = 0  # checks of the right neighbour
    unsure: bool = False  # the right neighbour replaced a dead one: other peers may be before it
    gone: set[bytes] = field(default_factory=set)  # keys of peers that were found gone lately
    successors: tuple[Contact, ...] = ()  # the peers behind the right neighbour
    levels: list[Sides] = field(default_factory=list)  # from level 1 on
    turn: int = 0  # the level to check next
    pace: Pace = field(default_factory=Pace)
    dead_right: Contact | None = (
        None  # the right neighbour that died, until its neighbours are notified
    )
    claim: Gap | None = None  # the place that was requested
    ticket: int = 0  # of the open request; 0: none
    abroad: int = 0  # the same, if the request went to a node that was lost and is back
    tries: int = 0
    wait: int = 0  # ticks until the next attempt
    unwanted: bool = False  # remove it as soon as its place is known
    again: bool = False  # insert it again when it has left
    held: list[GraphMessage] = field(default_factory=list)
    dedup: DedupWindow = field(default_factory=DedupWindow)  # publications that came by flood
    dedup_control: DedupWindow = field(
        default_factory=DedupWindow
    )  # the same for control messages of the layer above

    @property
    def key(self) -> bytes:
        return self.me.key

    @property
    def in_ring(self) -> bool:
        """Whether other peers may have it as a neighbour, to its own knowledge."""
        return self.standing is not Standing.JOINING

    @property
    def reachable(self) -> bool:
        """Whether it is in the ring, or its claim may have been granted and only the answer is under way."""
        return self.in_ring or self.claim is not None

    def neighbour(self, level: int, rightwards: bool) -> Contact | None:
        """The neighbour in a level, seen as a list: its ends have no neighbour beyond. Only `ring` sees level 0 as a
        ring.
        """
        if level:
            if level > len(self.levels):
                return None
            sides = self.levels[level - 1]
            return sides.right if rightwards else sides.left
        if rightwards:
            return self.right if self.right.key > self.key else None
        return self.left if self.left.key < self.key else None

    def neighbours(self) -> Iterator[Contact]:
        """The neighbours in all levels and both directions; some more than once."""
        for level in range(len(self.levels) + 1):
            for rightwards in (False, True):
                contact = self.neighbour(level, rightwards)
                if contact is not None:
                    yield contact

    def contacts(self) -> Iterator[Contact]:
        """All contacts of the peer: neighbours, those across the end of the ring, and successors."""
        yield self.left
        yield self.right
        yield from self.successors
        for sides in self.levels:
            if sides.left is not None:
                yield sides.left
            if sides.right is not None:
                yield sides.right


@dataclass(slots=True)
class Step:
    """One call of the node of this number: the actions and events so far, in order.

    The node makes one for each call and passes it to its parts. Messages to itself cost nothing: the node handles them
    before the call ends.
    """

    number: int
    actions: list[Action] = field(default_factory=list)
    local: deque[GraphMessage] = field(default_factory=deque)

    def send(self, node: int, message: GraphMessage) -> None:
        if node == self.number:
            self.local.append(message)
        else:
            self.actions.append(Send(node, message))

    def notify(self, event: Event) -> None:
        """Report to the layer above."""
        self.actions.append(event)


class Table:
    """The state that the parts of a node share."""

    def __init__(
        self,
        number: int,
        vector: int,
        introducers: tuple[int, ...],
        random: Random,
        incarnation: int,
        idle_ticks: int = 1,
        watched: bool = False,
        fallbacks: tuple[int, ...] = (),
    ) -> None:
        self.number = number
        self.vector = vector
        self.introducers = tuple(node for node in introducers if node != number)
        self.fallbacks = tuple(node for node in fallbacks if node != number)
        self.random = random
        self.idle_ticks = idle_ticks  # between two checks of a peer where nothing changes
        self.watched = watched  # the layer above detects dead nodes
        self.peers: dict[bytes, Peer] = {}
        self.suspects: dict[int, int] = {}  # node -> ticks left
        self._first_numbers = incarnation
        self._tickets = 0

    def ticket(self) -> int:
        """A number for a request."""
        self._tickets = self._tickets % 0xFFFFFFFF + 1
        return self._tickets

    def first_number(self) -> int:
        """The first link number of a new peer: above all that an earlier peer of this key can have had."""
        self._first_numbers += 1
        return (self._first_numbers & 0xFFFFFFFF) << 32

    def alive(self, contact: Contact) -> bool:
        return contact.node not in self.suspects

    def guides(self) -> list[int]:
        """Nodes to ask for the way that are not taken for dead: introducers or, if there is none, fallbacks."""
        alive = [node for node in self.introducers if node not in self.suspects]
        return alive or [node for node in self.fallbacks if node not in self.suspects]

    def in_ring(self) -> list[Peer]:
        return [peer for peer in self.peers.values() if peer.in_ring]

    def known(self) -> Iterator[Contact]:
        """All known contacts that are not suspected, own peers included."""
        for peer in self.in_ring():
            yield peer.me
            for contact in peer.contacts():
                if self.alive(contact):
                    yield contact


# Known places: a graph set up from outside instead of by messages.
#
# All keys and vectors together determine all links, by sorting. Nodes that begin at such places are in the state that
# they would have after a long time without change. So a graph of 100,000 nodes needs no message to be set up, and a
# node that gets no message need not even exist yet.


LONG_CALM = 1000  # checks without a change
NUMBER = 0  # of every link: below the first number of any peer that joins by messages


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A key with its neighbours. At level 0 they form a ring; `levels` are those above, None beyond the ends.

    `successors` are the peers behind the right neighbour in the ring: as many as `ring.SUCCESSORS`, going round if need
    be.
    """

    key: bytes
    left: Contact
    right: Contact
    successors: tuple[Contact, ...]
    levels: tuple[tuple[Contact | None, Contact | None], ...]


def stand(table: Table, places: Iterable[KnownPlace]) -> None:
    """Give the node peers at these places, linked and settled."""
    idle = table.idle_ticks
    for place in places:
        table.peers[place.key] = Peer(
            Contact(place.key, table.number, table.vector),
            NUMBER,
            place.left,
            place.right,
            NUMBER,
            Standing.LINKED,
            settled=True,
            successors=place.successors,
            unchecked=-idle - idle // SLACK,
            levels=[Sides(left, right) for left, right in place.levels],
            pace=Pace(idle, table.random.randint(1, idle), LONG_CALM),
        )
