"""Who gets a message: the interface of every overlay, without socket, clock or global randomness.

A node's shell (`nodes.runtime`, later the simulator) tells a core what happened and carries out the actions it
gets back, in their order. `now` is seconds on any steadily growing clock; a core only compares and adds.
A link is named by the node at its other end, be that a sensor, a subscriber or another broker; between two
nodes there is at most one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from nodes.wire import Message

Peer = str


@dataclass(frozen=True, slots=True)
class Station:
    """What a core knows of its own place in the lab."""

    name: str
    number: int
    brokers: tuple[Peer, ...] = ()  # the brokers of the lab that this node may have links with


@dataclass(frozen=True, slots=True)
class Send:
    """Queue the message on the link to this peer."""

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


Action = Send | Deliver | Refuse | Duplicate


class Overlay(Protocol):
    """One node's part of an overlay."""

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        """Both sides have said HELLO."""

    def on_link_down(self, peer: Peer, now: float) -> list[Action]:
        """The link is gone, with everything that was queued on it at a broker."""

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        """A whole message came in over the link to `peer`."""

    def next_deadline(self) -> float | None:
        """When `on_deadline` wants to be called, whatever happens before; None: not at all."""

    def on_deadline(self, now: float) -> list[Action]:
        """The time has come; also correct when called too early or without need."""


OverlayFactory = Callable[[Station, Mapping[str, Any], Random], Overlay]
