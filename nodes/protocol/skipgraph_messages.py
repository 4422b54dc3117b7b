"""Messages between the nodes of a Skip Graph. Bytes: `skipgraph_codec`.

Every message is from node to node; the field that names the key of the receiving peer is `at` where the receiver must
own it. `hops` counts nodes passed by a message that is routed.
"""

from dataclasses import dataclass
from enum import IntEnum

from nodes.protocol.wire import Message as Publication

VECTOR_BITS = 64


@dataclass(frozen=True, slots=True)
class Contact:
    """One peer (a key) and its node. A node with several keys is several contacts with one number and vector."""

    key: bytes
    node: int
    vector: int

    def shares(self, other: "Contact", bits: int) -> bool:
        """Whether the first `bits` bits of both vectors are the same."""
        return (self.vector ^ other.vector) >> (VECTOR_BITS - bits) == 0


def vector_of(bits: str) -> int:
    """A membership vector that begins with these bits, as in the figures of papers; the rest is zero."""
    return int(bits.ljust(VECTOR_BITS, "0"), 2)


class Way(IntEnum):
    """How a multicast spreads in its range."""

    FLOOD = 0  # over every link inside the range; the first arrival counts
    SPLIT = 1  # each neighbour gets a part of the range


@dataclass(frozen=True, slots=True)
class Locate:
    """Routed to the peer in whose gap the key lies, which answers with Gap."""

    key: bytes
    asker: int
    ticket: int
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """The key lies between `left` and `right` (or is `right`); `number` is that of the link between them."""

    ticket: int
    left: Contact
    right: Contact
    number: int


@dataclass(frozen=True, slots=True)
class Noted:
    """To the sender of a Locate from outside the ring: it is passed on. `empty`: a routed message is not passed on,
    because this node has no peer in the ring.
    """

    ticket: int
    empty: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """Asks for the place between the receiver and `right`, if the link between them still has this number.

    `own_number` is the number of the sender's left link so far.
    """

    at: bytes
    peer: Contact
    own_number: int
    right: Contact
    number: int
    ticket: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """The receiver is now to the right of `left`; the link to it has this number."""

    at: bytes
    left: Contact
    number: int


@dataclass(frozen=True, slots=True)
class Unlink:
    """Routed to the left neighbour of `peer`: take `peer` out; `right` is next, by a link of this number."""

    peer: Contact
    right: Contact
    number: int
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Unlinked:
    """The receiver is no longer in the ring."""

    at: bytes


@dataclass(frozen=True, slots=True)
class Check:
    """`left` is the receiver's left neighbour, by a link of this number. Sent after each change, and periodically.

    `pause`: the next one comes after so many periods.
    """

    at: bytes
    left: Contact
    number: int
    pause: int = 1


@dataclass(frozen=True, slots=True)
class Checked:
    """Confirms a Check. `settled`: the same holds for each pair of neighbours to the right, to the end of the list."""

    at: bytes
    right: Contact
    number: int
    settled: bool
    successors: tuple[Contact, ...]


@dataclass(frozen=True, slots=True)
class Declined:
    """Denies a Check: `left` is the left neighbour."""

    at: bytes
    right: Contact
    number: int
    left: Contact


@dataclass(frozen=True, slots=True)
class Gone:
    """The checked peer is not in the ring."""

    at: bytes
    right: bytes
    number: int


@dataclass(frozen=True, slots=True)
class Recheck:
    """Another peer claims to be the left neighbour of `right`: if the receiver still is, it checks `right` now."""

    at: bytes
    right: bytes


@dataclass(frozen=True, slots=True)
class Suspect:
    """Routed to the left neighbour of the peer with this key, which seems to be dead: check it now."""

    key: bytes
    hops: int


@dataclass(frozen=True, slots=True)
class PeerDead:
    """The peer `dead` has failed. Passed along level - 1, away from its place, to the next peer that shares `level`
    bits with it, and so on from level to level: to all peers that had it as a neighbour.
    """

    at: bytes
    dead: Contact
    level: int
    rightwards: bool


@dataclass(frozen=True, slots=True)
class Find:
    """Passed along level - 1 to the next peer that shares `level` bits with `asker`."""

    at: bytes
    level: int
    rightwards: bool
    asker: Contact


@dataclass(frozen=True, slots=True)
class Found:
    """The receiver's neighbour in this level and direction; None: there is none."""

    at: bytes
    level: int
    rightwards: bool
    contact: Contact | None


@dataclass(frozen=True, slots=True)
class Bye:
    """The peer has left; its neighbours above level 0 remove it."""

    peer: Contact


@dataclass(frozen=True, slots=True)
class Seek:
    """A search: routed to the peer with this key or, if there is none, to the one in whose gap it lies."""

    key: bytes
    asker: int
    ticket: int
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Sought:
    """The search has ended at this peer, after so many hops between nodes."""

    ticket: int
    contact: Contact
    hops: int


@dataclass(frozen=True, slots=True)
class Carry:
    """Routed to the peer in whose gap the key lies, and handed to the layer above."""

    key: bytes
    asker: int
    hops: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Notify:
    """From the layer above to the layer above of another node."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Multicast:
    """To every peer with a key in [low, high); the receiver serves this part of the whole range.

    A flood has the same range everywhere; it may also pass peers from `floor` on, which only forward it.
    It does not go back to the peer `by` that sent it. `origin` is the node where it began.
    """

    at: bytes
    by: bytes
    origin: int
    way: Way
    floor: bytes
    low: bytes
    high: bytes
    identity: int
    body: bytes | Publication


GraphMessage = (
    Locate
    | Gap
    | Noted
    | Claim
    | Claimed
    | Unlink
    | Unlinked
    | Check
    | Checked
    | Declined
    | Gone
    | Recheck
    | Suspect
    | PeerDead
    | Find
    | Found
    | Bye
    | Seek
    | Sought
    | Carry
    | Notify
    | Multicast
)
