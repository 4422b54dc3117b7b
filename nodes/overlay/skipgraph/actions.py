"""The actions of a Skip Graph node: messages to send, and events for the layer above."""

from dataclasses import dataclass

from nodes.protocol.skipgraph_messages import Contact, GraphMessage, Multicast


@dataclass(frozen=True, slots=True)
class Send:
    """Send the message to the node of this number."""

    node: int
    message: GraphMessage


@dataclass(frozen=True, slots=True)
class Inserted:
    """The key is in the ring, and every multicast that begins from now on reaches it."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Removed:
    """The key is out of the ring."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Moved:
    """A neighbour at level 0 has changed, or was confirmed as the right one."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Restored:
    """The peer lost its place in the ring and has it again: multicasts may have missed it meanwhile."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Suspected:
    """This node does not reply, or does not check as it should: the layer above must find out whether it is alive."""

    node: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """A multicast has reached a peer in its range; a split one may do so twice while neighbours change."""

    key: bytes
    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Repeated:
    """A flood came again over another link and is ignored."""

    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Missed:
    """A multicast arrived for a peer that this node no longer has; the node forwards it nevertheless."""

    key: bytes
    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A multicast has reached the last peer before its range, and the range is empty."""

    key: bytes
    multicast: Multicast


@dataclass(frozen=True, slots=True)
class Carried:
    """A control message of another node's layer above, routed to the peer `key` here, which has its key in its gap."""

    key: bytes
    asker: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Notified:
    """A control message of another node's layer above to ours."""

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
