"""A node in virtual time: the same overlay and delivery cores as in `nodes.runtime`, the same events in its log.

Its processor does one thing after the other: each thing that comes, and each publication, takes the service time.
A node that has crashed or stopped is never used again: one that begins anew is another object, with the same log.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from math import ceil
from typing import Any

from nodes.delivery.base import Dropped
from nodes.overlay.base import (
    Acknowledged,
    Action,
    Deliver,
    Drop,
    Duplicate,
    Note,
    Overlay,
    Refuse,
    Send,
)
from nodes.protocol.wire import Message, encode
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import GOING_AWAY, POLICY_VIOLATION, PROTOCOL_ERROR
from nodes.runtime.lifecycle import HAND_OVER_S
from nodes.runtime.log import about, about_dropped
from testbed.backends.simulated.connection import Ending, Side
from testbed.backends.simulated.link import SimulatedLink
from testbed.backends.simulated.loop import SECOND, Loop, Timer

EPOCH_NS = 10**18  # the beginning of virtual time: ns since 1970, a date in 2001
HAND_OVER_CHECK_INTERVAL = (
    SECOND // 50
)  # how often a node that stops checks whether all is handed over


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
    """One node, from its start to its end; the subclasses make its links."""

    def __init__(
        self, log: SimulatedLog, loop: Loop, config: NodeConfig, core: Overlay, service_ns: int
    ) -> None:
        self.loop = loop
        self.config = config
        self.core = core
        self.log = log
        self.links: dict[str, SimulatedLink] = {}
        self.sides: dict[Side, None] = {}
        self.published = 0
        self.received = 0
        self.alive = True
        self.on_received: Callable[[], None] = _ignore
        self.service_ns = service_ns
        self._busy_until = 0
        self._was_ready = False
        self._leaves_until: int | None = None
        self._timer = Timer(loop, self._on_timer)
        self.log.write("start", kind=config.kind, pid=None, run=config.run)

    @abstractmethod
    def go(self) -> None:
        """Start the node."""

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether the node can do its work."""

    @property
    def leaving(self) -> bool:
        """Whether it was asked to stop."""
        return self._leaves_until is not None

    def later(self, call: Callable[[Any], object], argument: Any) -> None:
        """Call this when the processor has finished what is queued before."""
        self._busy_until = max(self._busy_until, self.loop.now) + self.service_ns
        self.loop.at(self._busy_until, self._do, (call, argument))

    def _do(self, work: tuple[Callable[[Any], object], Any]) -> None:
        if self.alive:
            call, argument = work
            call(argument)

    # Stopping

    def stop(self) -> None:
        """End the node with the simulation."""
        if self.alive:
            self._log_stop()

    def _log_stop(self) -> None:
        self.log.write("stop", published=self.published, received=self.received)

    def crash(self) -> None:
        """The process is gone."""
        self.alive = False
        self._timer.set(None)
        for side in self.sides:
            side.crash()

    def terminate(self) -> None:
        """Leave in order: what is queued is handed over, at most so long as a real node takes for it."""
        if not self.leaving:
            self._leaves_until = self.loop.now + round(HAND_OVER_S * SECOND)
            self.quiet()
            self._check_handed_over()

    def quiet(self) -> None:  # noqa: B027 - a node without plans has nothing to give up
        """Begin nothing new: the node is about to stop."""

    @property
    def handed_over(self) -> bool:
        """Whether nothing is left to be done for others."""
        return self.core.left and all(link.idle for link in self.links.values())

    def _check_handed_over(self, _: None = None) -> None:
        assert self._leaves_until is not None
        if not self.alive:
            return
        if not self.handed_over and self.loop.now < self._leaves_until:
            self.loop.at(self.loop.now + HAND_OVER_CHECK_INTERVAL, self._check_handed_over)
            return
        self.end()

    def end(self) -> None:
        """Write the stop record."""
        self.alive = False
        self._timer.set(None)
        for side in list(self.sides):
            side.close("the node stops", GOING_AWAY)
        self._log_stop()

    # Links

    def link_up(self, link: SimulatedLink) -> None:
        """The handshake is complete: the link is up."""
        self.links[link.peer] = link
        link.begin()
        self.log.write("connect", peer=link.peer)
        self.perform(self.core.on_link_up(link.peer, self.loop.seconds))
        self.note_readiness()

    def link_down(self, link: SimulatedLink, ending: Ending) -> None:
        """The link is gone, if it is still the one to this peer."""
        if not self._forget_link(link, ending.reason, orderly=ending.orderly) or not self.alive:
            return
        now = self.loop.seconds
        self.perform(self.core.on_link_down(link.peer, now, ending.orderly, ending.sent_away))
        self.note_readiness()

    def _forget_link(self, link: SimulatedLink, reason: str, *, orderly: bool = False) -> bool:
        """Whether it was still the link to its peer."""
        queued = 0 if link.carried else link.scheduler.queued.messages
        link.end(orderly=orderly)
        if self.links.get(link.peer) is not link:
            return False
        del self.links[link.peer]
        self.log.write("disconnect", peer=link.peer, reason=reason, queued=queued)
        return True

    def handle(self, link: SimulatedLink, message: Message, arrived: int) -> None:
        """A message came in."""
        if self.links.get(link.peer) is link:
            link.activity.note(message, self.loop.seconds)
            self.perform(self.core.on_message(link.peer, message, self.loop.seconds), arrived)
            self.note_readiness()

    def note_readiness(self) -> None:
        """Log when the node becomes ready, again after each time that it was not."""
        if self.ready and not self._was_ready:
            self.log.write("ready")
        self._was_ready = self.ready

    # Actions of the core

    def perform(self, actions: Iterable[Action], arrived: int | None = None) -> None:
        """Perform the core's actions."""
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
                    self.log.write("refuse", peer=peer, reason=reason)
                    self.end_link(peer, reason, PROTOCOL_ERROR)
                case Drop(peer, reason):
                    self._cut_link(peer, reason)
                case Acknowledged(message_id):
                    self.forget(message_id)
                case Note(event, details):
                    self.log.write(event, **details)
        deadline = self.core.next_deadline()
        # At least a nanosecond from now: a core that is asked a rounding error too early does not stop the time.
        later = None if deadline is None else max(ceil(deadline * SECOND), self.loop.now + 1)
        self._timer.set(later)

    def forget(self, message_id: int) -> None:  # noqa: B027 - a node that keeps nothing has nothing to forget
        """Others are responsible for this publication now."""

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        """Put the message on the queue to this peer; what was dropped because of it."""
        link = self.links.get(peer)
        if link is None:
            return (Dropped(data, message.priority, f"there is no link to {peer}"),)
        return link.offer(data, message.priority, control=message.control, upkeep=message.upkeep)

    def _send(self, peer: str, message: Message, data: bytes) -> None:
        for dropped in self.queue_message(peer, message, data):
            for lost in about_dropped(peer, dropped):
                self.log.write("drop", **lost)
            if dropped.data == data and message.control:
                reason = f"no room for {message.kind.name}: {dropped.reason}"
                self.end_link(peer, reason, POLICY_VIOLATION)

    def side_of(self, peer: str) -> Side | None:
        """This node's side of the connection to the peer."""
        link = self.links.get(peer)
        return next((side for side in self.sides if side.link is link), None) if link else None

    def end_link(self, peer: str, reason: str, code: int) -> None:
        """Close the link to this peer, if there is one."""
        if (side := self.side_of(peer)) is not None:
            side.close(reason, code)

    def _cut_link(self, peer: str, reason: str) -> None:
        """Close a link that the core already counts as down."""
        if (side := self.side_of(peer)) is not None:
            self._forget_link(self.links[peer], reason)
            side.cut(reason)

    def _on_timer(self) -> None:
        for peer, link in self.links.items():
            self.core.on_activity(peer, link.endpoint.lived_s)
        self.perform(self.core.on_deadline(self.loop.seconds))
        self.note_readiness()


def _ignore() -> None:
    """Do nothing."""
