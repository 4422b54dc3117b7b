"""All that one node knows: its own peers, their neighbours, and which nodes keep silent."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random

from nodes.overlay.reliability.dedup import DedupWindow
from nodes.overlay.skipgraph.actions import Action, Event, Send
from nodes.protocol.skipgraph_messages import Contact, Gap, GraphMessage

# How often a peer looks after its neighbours: each tick while anything changes, then ever more seldom.
#
# A look is a check of the right neighbour and a question for one level, or two soon after a change. Where nothing is
# lost without notice and the dead are reported, as between brokers, looks find nothing to mend; they are the last net.
# So after as many as go three times through all levels without a change the pause doubles, up to that of an idle peer.
# Any change wakes the peers concerned.


SLACK = 8  # of so many ticks that another node counts, one more: clocks differ


@dataclass(slots=True)
class Pace:
    """Of one peer, counted in ticks."""

    pause: int = 1
    rest: int = 1  # until the next look
    calm: int = 0  # looks since something changed

    def wake(self) -> None:
        """Something has changed, or must be looked into."""
        self.pause, self.calm = 1, 0
        self.hurry()

    def hurry(self) -> None:
        """Look at the next tick, whatever follows."""
        self.rest = min(self.rest, 1)

    def tick(self, levels: int, idle: int) -> bool:
        """Whether it is time for a look."""
        self.rest -= 1
        if self.rest > 0:
            return False
        self.calm += 1
        if not self.sweeps(levels):
            self.pause = min(2 * self.pause, idle)
        self.rest = self.pause
        return True

    def sweeps(self, levels: int) -> bool:
        """Whether all levels have still to be gone through."""
        return self.calm <= 2 * levels + 2


SUSPECTED_TICKS = 30  # afterwards a silent node gets another chance


class Standing(Enum):
    """A peer's place in the ring."""

    JOINING = auto()  # not in it, as far as it knows
    LINKED = auto()
    LEAVING = auto()  # in it until its left neighbour says otherwise; its own gap is closed


@dataclass(slots=True)
class Sides:
    """The neighbours in one level above 0."""

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
    unsure: bool = False  # the right neighbour replaced a dead one: others may stand before it
    gone: set[bytes] = field(default_factory=set)  # who turned out to be no more, lately
    successors: tuple[Contact, ...] = ()  # who stands behind the right neighbour
    levels: list[Sides] = field(default_factory=list)  # from level 1 on
    turn: int = 0  # whose level is looked after next
    pace: Pace = field(default_factory=Pace)
    dead_right: Contact | None = (
        None  # the right neighbour that died, until all who knew it are told
    )
    claim: Gap | None = None  # the place that was asked for
    ticket: int = 0  # of the question that is open; 0: none
    abroad: int = 0  # the same, if it was put to a node that was lost and is there again
    tries: int = 0
    wait: int = 0  # ticks until the next try
    unwanted: bool = False  # to be removed as soon as it is known where it stands
    again: bool = False  # to be inserted anew when it has left
    held: list[GraphMessage] = field(default_factory=list)
    dedup: DedupWindow = field(default_factory=DedupWindow)  # publications that came by flood
    dedup_control: DedupWindow = field(
        default_factory=DedupWindow
    )  # the same for words of the layer above

    @property
    def key(self) -> bytes:
        return self.me.key

    @property
    def in_ring(self) -> bool:
        """Whether others may have it as neighbour, to its own knowledge."""
        return self.standing is not Standing.JOINING

    @property
    def reachable(self) -> bool:
        """Also if its claim was taken and only the answer is still under way."""
        return self.in_ring or self.claim is not None

    def neighbour(self, level: int, rightwards: bool) -> Contact | None:
        """In a line, as every level is for all but the ring's own care: the ends have nobody beyond."""
        if level:
            if level > len(self.levels):
                return None
            sides = self.levels[level - 1]
            return sides.right if rightwards else sides.left
        if rightwards:
            return self.right if self.right.key > self.key else None
        return self.left if self.left.key < self.key else None

    def neighbours(self) -> Iterator[Contact]:
        """In all levels and both directions; some more than once."""
        for level in range(len(self.levels) + 1):
            for rightwards in (False, True):
                contact = self.neighbour(level, rightwards)
                if contact is not None:
                    yield contact

    def contacts(self) -> Iterator[Contact]:
        """Everybody it knows: neighbours, those across the end of the ring, and successors."""
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
    """One call of the node of this number: what it has to do and to report so far, in order.

    The node makes one for each call and passes it to its parts. Messages to itself cost nothing: they are handled
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
        self.idle_ticks = idle_ticks  # between two looks of a peer where nothing changes
        self.watched = watched  # the layer above finds out who is dead
        self.peers: dict[bytes, Peer] = {}
        self.suspects: dict[int, int] = {}  # node -> ticks left
        self._first_numbers = incarnation
        self._tickets = 0

    def ticket(self) -> int:
        """A number for a question."""
        self._tickets = self._tickets % 0xFFFFFFFF + 1
        return self._tickets

    def first_number(self) -> int:
        """Where the link numbers of a new peer begin: above all that an earlier peer of this key can have had."""
        self._first_numbers += 1
        return (self._first_numbers & 0xFFFFFFFF) << 32

    def alive(self, contact: Contact) -> bool:
        return contact.node not in self.suspects

    def guides(self) -> list[int]:
        """Who may know the way, and is not taken for dead: introducers or, if there is none, those to fall back on."""
        alive = [node for node in self.introducers if node not in self.suspects]
        return alive or [node for node in self.fallbacks if node not in self.suspects]

    def in_ring(self) -> list[Peer]:
        return [peer for peer in self.peers.values() if peer.in_ring]

    def known(self) -> Iterator[Contact]:
        """Everybody that is known and not suspected, own peers too."""
        for peer in self.in_ring():
            yield peer.me
            for contact in peer.contacts():
                if self.alive(contact):
                    yield contact


# A graph that stands already: where each key is, said from outside instead of found out by messages.
#
# Whoever knows all keys and vectors knows all links, by sorting. Nodes that begin at such places are as they would be
# after a long time without change, so no message is needed to make a graph of 100,000 nodes, and one that nobody talks
# to need not even exist yet.


LONG_CALM = 1000  # looks without a change
NUMBER = 0  # of every link: below all that a peer begins with which comes by messages


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A key with its neighbours. At level 0 they form a ring; `levels` are those above, None beyond the ends.

    `successors` stand behind the right neighbour, in the ring: as many as `ring.SUCCESSORS`, going round if need be.
    """

    key: bytes
    left: Contact
    right: Contact
    successors: tuple[Contact, ...]
    levels: tuple[tuple[Contact | None, Contact | None], ...]


def stand(table: Table, places: Iterable[KnownPlace]) -> None:
    """The node has peers at these places, linked and settled."""
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
