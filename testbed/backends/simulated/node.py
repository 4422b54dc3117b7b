"""A node in virtual time: the same overlay and delivery cores as in `nodes.runtime`, the same events in its log.

Its processor does one thing after the other: each thing that comes, and each publication, takes the service time.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from nodes.delivery.base import Dropped
from nodes.overlay.base import (
    Action,
    Deliver,
    Drop,
    Duplicate,
    Note,
    Overlay,
    Refuse,
    Send,
    Taken,
)
from nodes.runtime.config import NodeConfig
from nodes.runtime.log import about, about_dropped
from nodes.wire import Message, encode
from testbed.backends.simulated.connection import Connection
from testbed.backends.simulated.link import SimulatedLink
from testbed.backends.simulated.loop import SECOND, Loop, Timer

EPOCH_NS = 10**18  # what virtual time calls its beginning: ns since 1970, a date in 2001


class SimulatedLog:
    """A node's log, in memory."""

    def __init__(self, loop: Loop, node: str) -> None:
        self.lines: list[str] = []
        self._loop = loop
        self._node = node

    def write(self, event: str, /, t: int | None = None, **details: Any) -> None:
        """Note that `event` happened, at `t` (of the loop) or now."""
        at = EPOCH_NS + (self._loop.now if t is None else t)
        self.lines.append(json.dumps({"t": at, "node": self._node, "event": event} | details))


class SimulatedNode(ABC):
    """One node; the subclasses say how it gets its links."""

    def __init__(self, loop: Loop, config: NodeConfig, core: Overlay, service_ns: int) -> None:
        self.loop = loop
        self.config = config
        self.core = core
        self.log = SimulatedLog(loop, config.name)
        self.links: dict[str, SimulatedLink] = {}
        self.published = 0
        self.received = 0
        self.on_received: Callable[[], None] = _ignore
        self.service_ns = service_ns
        self._busy_until = 0
        self._was_ready = False
        self._timer = Timer(loop, self._on_timer)
        self.log.write("start", kind=config.kind, pid=None, run=config.run)

    @abstractmethod
    def go(self) -> None:
        """Begin."""

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether the node can do its work."""

    def later(self, call: Callable[[Any], object], argument: Any) -> None:
        """The processor does this when it has done all before."""
        self._busy_until = max(self._busy_until, self.loop.now) + self.service_ns
        self.loop.at(self._busy_until, call, argument)

    def stop(self) -> None:
        """The time ends."""
        self.log.write("stop", published=self.published, received=self.received)

    # Links

    def link_up(self, link: SimulatedLink) -> None:
        """Both sides have said HELLO."""
        self.links[link.peer] = link
        link.begin()
        self.log.write("connect", peer=link.peer)
        self.perform(self.core.on_link_up(link.peer, self.loop.seconds))
        self.note_readiness()

    def link_down(self, link: SimulatedLink, reason: str) -> None:
        """The link is gone, if it is still the one to this peer."""
        if self.links.get(link.peer) is not link:
            return
        del self.links[link.peer]
        queued = link.scheduler.queued.messages
        link.end()
        self.log.write("disconnect", peer=link.peer, reason=reason, queued=queued)
        self.perform(self.core.on_link_down(link.peer, self.loop.seconds))
        self.note_readiness()

    def handle(self, link: SimulatedLink, message: Message, arrived: int) -> None:
        """A message came in."""
        if self.links.get(link.peer) is link:
            self.perform(self.core.on_message(link.peer, message, self.loop.seconds), arrived)
            self.note_readiness()

    @abstractmethod
    def connection_of(self, peer: str) -> Connection | None:
        """What a link to this peer stands on."""

    def note_readiness(self) -> None:
        """Log when the node becomes ready, again after each time that it was not."""
        if self.ready and not self._was_ready:
            self.log.write("ready")
        self._was_ready = self.ready

    # Carrying out

    def perform(self, actions: Iterable[Action], arrived: int | None = None) -> None:
        """Do what the core has decided."""
        last, data = None, b""  # a message to many is encoded once
        for action in actions:
            match action:
                case Send(peer, message):
                    if message is not last:
                        last, data = message, encode(message)
                    self._send(peer, message, data)
                case Deliver(message):
                    self.received += 1
                    self.log.write("receive", t=arrived, **about(message))
                    self.on_received()
                case Duplicate(message):
                    self.log.write("duplicate", t=arrived, **about(message))
                case Refuse(peer, reason):
                    self._refuse(peer, reason)
                case Drop(peer, reason):
                    self._break_off(peer, reason)
                case Taken():
                    pass  # nothing is kept on disk
                case Note(event, details):
                    self.log.write(event, **details)
        deadline = self.core.next_deadline()
        self._timer.set(None if deadline is None else round(deadline * SECOND))

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        """Put the message on the queue to this peer; what was dropped because of it."""
        link = self.links.get(peer)
        if link is None:
            return (Dropped(data, message.priority, f"there is no link to {peer}"),)
        return link.offer(data, message.priority, control=message.control)

    def _send(self, peer: str, message: Message, data: bytes) -> None:
        for dropped in self.queue_message(peer, message, data):
            self.log.write("drop", **about_dropped(peer, dropped))
            if dropped.data == data and message.control:
                self._break_off(peer, f"no room for {message.kind.name}: {dropped.reason}")

    def _refuse(self, peer: str, reason: str) -> None:
        self.log.write("refuse", peer=peer, reason=reason)
        self._break_off(peer, reason)

    def _break_off(self, peer: str, reason: str) -> None:
        if (connection := self.connection_of(peer)) is not None:
            connection.break_off(reason)

    def _on_timer(self) -> None:
        self.perform(self.core.on_deadline(self.loop.seconds))
        self.note_readiness()


def _ignore() -> None:
    """Nobody waits for it."""
