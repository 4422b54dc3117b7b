"""What a Skip Graph node asks of its shell, and what it tells the layer above."""

from dataclasses import dataclass

from nodes.protocol.skipgraph_messages import Contact, GraphMessage, Multicast


@dataclass(frozen=True, slots=True)
class Send:
    """Send the message to the node of this number."""

    node: int
    message: GraphMessage


@dataclass(frozen=True, slots=True)
class Inserted:
    """The key stands in the ring, and every multicast that begins from now on reaches it."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Removed:
    """The key is out of the ring."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Moved:
    """A neighbour at level 0 is another one now, or is sure to be the right one."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Restored:
    """The peer had lost its place in the ring, and has it again: multicasts may have missed it meanwhile."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Suspected:
    """This node does not answer, or does not check as it should: the layer above is to find out whether it lives."""

    node: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """A multicast has reached a peer in its range; a split one may do so twice while neighbours change."""

    key: bytes
    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Repeated:
    """A flood came again, over another link; nothing else happens."""

    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Missed:
    """A multicast was sent to a peer that this node has no more; it goes its way nevertheless."""

    key: bytes
    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A multicast has come to the last peer before its range, and the range is empty."""

    key: bytes
    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Carried:
    """Somebody's words for whoever has this key in its gap: that is the peer `key` of this node."""

    key: bytes
    asker: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Notified:
    """Another node's layer above speaks to ours."""

    sender: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Result:
    """A search has ended."""

    ticket: int
    contact: Contact
    hops: int


Event = (
    Inserted
    | Removed
    | Moved
    | Restored
    | Suspected
    | Delivered
    | Repeated
    | Missed
    | Exhausted
    | Carried
    | Notified
    | Result
)
Action = Send | Event
