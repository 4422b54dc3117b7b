"""A broker's links to other brokers in virtual time: what `nodes.runtime.peer_links` is to real ones.

They are made when there is something to send, and closed in order when they are too many. If two brokers call each
other at once, the connection that the one with the lower number has made is kept: it declines the other's when its own
is answered, and the other holds back its proof for a moment while that connection is pending.
"""

from collections.abc import Callable
from typing import Protocol

from nodes.delivery.base import Dropped, Scheduler
from nodes.overlay.reliability.settings import reliability_settings
from nodes.protocol.wire import Message
from nodes.runtime.broker_selection import Backoff
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import NORMAL
from nodes.runtime.dialing import ANSWER_WITHIN_S, OTHER_WAY
from nodes.runtime.link import LinkMethod
from nodes.runtime.link_eviction import links_to_evict
from nodes.runtime.peer_links import HOLD_BACK_S, RECHECK_S
from testbed.backends.simulated.connection import Connect, Dial, Ending, Side
from testbed.backends.simulated.link import SimulatedLink
from testbed.backends.simulated.loop import SECOND, Loop, Timer

PENDING_CHECK_INTERVAL = SECOND // 100  # how often a pending connection is checked for its proof


class PeerLinkOwner(Protocol):
    """The broker whose links these are."""

    loop: Loop
    config: NodeConfig
    links: dict[str, SimulatedLink]
    alive: bool

    def side_of(self, peer: str) -> Side | None:
        """What the link to this peer stands on."""

    def unreachable(self, peer: str, reason: str) -> None:
        """No link to this broker can be made."""


class OutgoingCall:
    """One attempt to get a link, and the queue for it."""

    def __init__(self, queue: Scheduler) -> None:
        self.queue = queue
        self.dial: Dial | None = None  # None: it has not begun, or the other side calls
        self.given_up = False


class SimulatedPeerLinks:
    """The links of one broker to others."""

    def __init__(self, owner: PeerLinkOwner, connect: Connect) -> None:
        config = owner.config
        self._owner = owner
        self._loop = owner.loop
        self._connect = connect
        self._brokers = {broker.name: broker for broker in config.brokers}
        self._method = LinkMethod(config.delivery)
        self._most = reliability_settings(
            config.overlay.method, config.overlay.parameters
        ).max_links
        self._calls: dict[str, OutgoingCall] = {}
        self._pending: dict[str, Side] = {}
        self._made: dict[str, tuple[SimulatedLink, int]] = {}  # links of this side's own, and when
        self._backoffs: dict[str, Backoff] = {}
        self._not_before: dict[str, int] = {}
        self._trim_timer = Timer(owner.loop, self.trim)

    def knows(self, peer: str) -> bool:
        """Whether this is a broker that can be called."""
        return peer in self._brokers

    @property
    def queued(self) -> int:
        """Messages that wait for a link."""
        return sum(call.queue.queued.messages for call in self._calls.values())

    def queue(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        """There is no link to this broker: keep the message until there is one; what was dropped because of it."""
        if (call := self._calls.get(peer)) is None:
            call = self._calls[peer] = OutgoingCall(self._method.scheduler())
            if peer not in self._owner.links:  # else one is being closed in order: `on_down` calls
                self._call_soon(peer, call)
        now = self._loop.seconds
        return call.queue.offer(
            data, message.priority, now, control=message.control, upkeep=message.upkeep
        )

    def declines(self, peer: str, *, proven: bool) -> bool:
        """Whether a connection from this broker is declined, because this side's own goes before it.

        One that has given its proof stands already for the other side, and what follows may have been sent.
        """
        broker = self._brokers.get(peer)
        if broker is None or broker.number < self._owner.config.number:
            return False
        if (call := self._calls.get(peer)) is not None:
            return call.dial is not None and call.dial.answered and not proven
        link, since = self._made.get(peer, (None, 0))
        return link is not None and self._loop.now - since < ANSWER_WITHIN_S * SECOND

    def add_pending(self, peer: str, side: Side) -> None:
        """A peer claims to be this broker, and has not proven it yet."""
        self._pending[peer] = side

    def _hold_back(self, peer: str, go_on: Callable[[], None]) -> None:
        end = self._loop.now + round(HOLD_BACK_S * SECOND)

        def check(_: None = None) -> None:
            side = self._pending.get(peer)
            waits = side is not None and not side.ended and side.link is None
            if waits and self._loop.now < end:
                self._loop.at(self._loop.now + PENDING_CHECK_INTERVAL, check)
            else:
                go_on()

        lower = self._brokers[peer].number < self._owner.config.number
        (check if lower else go_on)()

    def adopt(self, peer: str) -> Scheduler | None:
        """This broker's own connection is up: stop calling it; the queue for it."""
        if (call := self._calls.pop(peer, None)) is None:
            return None
        call.given_up = True
        if call.dial is not None:
            call.dial.give_up(OTHER_WAY, NORMAL)
        return call.queue

    def on_up(self, link: SimulatedLink) -> None:
        """A link is up."""
        call = self._calls.pop(link.peer, None)
        if call is not None:
            self._made[link.peer] = link, self._loop.now
        self.trim()

    def carry_on(self, link: SimulatedLink) -> None:
        """A link was closed in order: what is still queued on it waits for the next one."""
        if link.scheduler.queued.messages and self.knows(link.peer):
            link.end(orderly=True)
            call = self._calls.setdefault(link.peer, OutgoingCall(link.scheduler))
            link.carried = call.queue is link.scheduler

    def on_down(self, link: SimulatedLink, *, orderly: bool) -> None:
        """A link is gone."""
        peer = link.peer
        made, since = self._made.get(peer, (None, 0))
        if made is link:
            del self._made[peer]
            self._backoff(peer).on_link_lost((self._loop.now - since) / SECOND)
            if not orderly:
                self._wait_a_little(peer)
        if (call := self._calls.get(peer)) is not None and call.dial is None:
            self._call_soon(peer, call)

    def trim(self) -> None:
        """If there are too many links, close the unused ones in order; check again if too many are left."""
        if not self._owner.alive:
            return
        between = (link for peer, link in self._owner.links.items() if peer in self._brokers)
        unused, too_many = links_to_evict(between, self._most, self._loop.seconds)
        for link in unused:
            if (side := self._owner.side_of(link.peer)) is not None:
                side.part()
        if too_many:
            self._trim_timer.set(self._loop.now + round(RECHECK_S * SECOND))

    def close(self) -> None:
        """Give up all calls."""
        for call in self._calls.values():
            call.given_up = True
            if call.dial is not None:
                call.dial.abandon()
        self._calls.clear()

    def _call_soon(self, peer: str, call: OutgoingCall) -> None:
        def begin(_: None) -> None:
            if self._owner.alive and not call.given_up:
                call.dial = Dial(
                    self._brokers[peer],
                    self._method,
                    call.queue,
                    self._connect,
                    self._on_failed,
                    lambda go_on: self._hold_back(peer, go_on),
                )

        self._loop.at(max(self._loop.now, self._not_before.get(peer, 0)), begin)

    def _on_failed(self, dial: Dial, ending: Ending) -> None:
        peer = dial.broker.name
        call = self._calls.get(peer)
        if call is None or call.dial is not dial:
            return

        def report_unreachable(_: None = None) -> None:
            if self._calls.get(peer) is call and self._owner.alive:
                del self._calls[peer]
                self._wait_a_little(peer)
                self._owner.unreachable(peer, ending.reason)

        if ending.other_way:
            call.dial = None
            # `adopt` ends the waiting
            self._loop.at(self._loop.now + round(ANSWER_WITHIN_S * SECOND), report_unreachable)
        else:
            report_unreachable()

    def _backoff(self, peer: str) -> Backoff:
        if peer not in self._backoffs:
            self._backoffs[peer] = Backoff(self._owner.config.random(f"calling {peer}"))
        return self._backoffs[peer]

    def _wait_a_little(self, peer: str) -> None:
        """A broker that takes calls and loses them again, or takes none, is not called a hundred times a second."""
        wait = round(self._backoff(peer).next_wait() * SECOND)
        self._not_before[peer] = self._loop.now + wait
