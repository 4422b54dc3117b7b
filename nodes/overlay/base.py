"""Which nodes get a message: the interface of every overlay, without socket, clock or global randomness.

A node's shell (`nodes.runtime`, `testbed.backends.simulated`) reports each event to its core and carries out the
actions that the core returns, in their order. `now` is seconds on any steadily growing clock; a core only compares and
adds. A link is named by the node at its other end: a sensor, a subscriber or another broker. There is at most one link
between two nodes. A broker's shell makes a link to another broker when there is a message for it, and closes unused
links in order when there are too many.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol

from nodes.protocol.wire import Message

Peer = str


class BrokerName(NamedTuple):
    """A broker's name, by which links know it, and its number, by which overlays do."""

    name: Peer
    number: int


@dataclass(frozen=True, slots=True)
class Station:
    """The node's own name and number, and the brokers around it.

    `brokers` are the brokers that this node may have links with, the nearest first, without itself; a broker joins the
    overlay through `seeds`. `incarnation` grows with each start of this node. `dimensions` is the number of coordinates
    of a place in this lab, 0 if publications have no place.
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

    The shell drops the message if there is no link to a client, or if it cannot make one to a broker.
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
    """Log that this message came again; it was delivered here before."""

    message: Message


@dataclass(frozen=True, slots=True)
class Drop:
    """End the link to this silent peer; the core has marked it as down already."""

    peer: Peer
    reason: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The broker has acknowledged this publication of this node and is responsible for it now."""

    message_id: int


@dataclass(frozen=True, slots=True)
class Note:
    """Write an event of the overlay into the log: its name and its details, as JSON values."""

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
        """After `leave`: whether the node has handed over everything."""

    def leave(self, now: float) -> list[Action]:
        """The node is about to stop: hand over its messages and subscriptions, and leave in order."""

    def describe(self) -> dict[str, Any]:
        """This node's part of the overlay, as JSON values, for status and drawings."""

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        """Both sides have said HELLO."""

    def on_link_down(
        self, peer: Peer, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        """The link has ended, and a broker has dropped what was queued on it.

        `orderly`: one side closed the unused link; the peer is alive, and queued messages go over the next link.
        `stopping`: the peer has announced that it is about to stop.
        """

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        """A message waits for this broker, and the shell cannot make a link to it: the broker does not answer."""

    def on_activity(self, peer: Peer, at: float) -> None:
        """The peer sent bytes or acknowledged some: it is alive, even if no whole message has come."""

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        """A whole message came over the link to `peer`."""

    def next_deadline(self) -> float | None:
        """When the shell must call `on_deadline` at the latest; None: never."""

    def on_deadline(self, now: float) -> list[Action]:
        """Do what is due; a call that comes too early or without need does no harm."""


OverlayFactory = Callable[[Station, Mapping[str, Any], Random], Overlay]
