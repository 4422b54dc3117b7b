"""Who gets a message: the interface of every overlay, without socket, clock or global randomness.

A node's shell (`nodes.runtime`, `testbed.backends.simulated`) tells a core what happened and carries out the actions
it gets back, in their order. `now` is seconds on any steadily growing clock; a core only compares and adds.
A link is named by the node at its other end, be that a sensor, a subscriber or another broker; between two
nodes there is at most one. A broker's shell makes links to other brokers when there is something to send to them, and
closes those that are not used, in order, when there are too many.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol

from nodes.protocol.wire import Message

Peer = str


class BrokerName(NamedTuple):
    """How a broker is called: links have names, overlays have numbers."""

    name: Peer
    number: int


@dataclass(frozen=True, slots=True)
class Station:
    """What a core knows of its own place in the lab.

    `brokers` are those that this node may have links with, the nearest first, itself not among them; `seeds` those
    through which a broker joins the overlay. `incarnation` grows with each start of this node. `dimensions` is how many
    coordinates a place has in this lab, 0 where nothing has one.
    """

    name: str
    number: int
    brokers: tuple[BrokerName, ...] = ()
    seeds: tuple[BrokerName, ...] = ()
    incarnation: int = 0
    dimensions: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Queue the message on the link to this peer; if it is a broker without a link, make one.

    What cannot be sent because there is no link to a guest, or none to a broker can be made, is dropped.
    """

    peer: Peer
    message: Message


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand the message to the application on this node."""

    message: Message


@dataclass(frozen=True, slots=True)
class Refuse:
    """End the link to this peer, which broke the rules."""

    peer: Peer
    reason: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Take note: this message was delivered here before, and is not delivered again."""

    message: Message


@dataclass(frozen=True, slots=True)
class Drop:
    """End the link to this peer, which is silent; to the core it is down already."""

    peer: Peer
    reason: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Others are responsible for this publication of this node now."""

    message_id: int


@dataclass(frozen=True, slots=True)
class Note:
    """Write into the log what happened in the overlay: `event` and what belongs to it, as JSON values."""

    event: str
    details: Mapping[str, Any]


Action = Send | Deliver | Refuse | Duplicate | Drop | Acknowledged | Note


class Overlay(Protocol):
    """One node's part of an overlay."""

    @property
    def ready(self) -> bool:
        """Whether the node can do its work, as far as the overlay goes."""

    @property
    def left(self) -> bool:
        """After `leave`: nothing is left to be done."""

    def leave(self, now: float) -> list[Action]:
        """The node is going to stop: hand over what it is responsible for, and leave in order."""

    def describe(self) -> dict[str, Any]:
        """Its part of the overlay, as JSON values, for those who look at it from outside."""

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        """Both sides have said HELLO."""

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        """The link is gone, with everything that was queued on it at a broker.

        `orderly`: one side closed it because it was not used; the peer lives, and what was queued goes over the next.
        `stopping`: the peer has said that it is about to stop.
        """

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        """There was something to send to this broker, and no link to it can be made: it does not answer."""

    def on_activity(self, peer: Peer, at: float) -> None:
        """Bytes came from the peer, or it acknowledged some: it lives, whether or not a whole message comes soon."""

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        """A whole message came in over the link to `peer`."""

    def next_deadline(self) -> float | None:
        """When `on_deadline` wants to be called, whatever happens before; None: not at all."""

    def on_deadline(self, now: float) -> list[Action]:
        """The time has come; also correct when called too early or without need."""


OverlayFactory = Callable[[Station, Mapping[str, Any], Random], Overlay]
