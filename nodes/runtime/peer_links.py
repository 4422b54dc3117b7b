"""A broker's links to other brokers: made when there is something to send, closed in order when they are too many.

Two brokers have one link, whichever of them made the connection; it is named by the other broker. Messages for a
broker to which this side is connecting wait in the queue of the new link.

If two brokers connect to each other at once, they keep the connection that the broker with the lower number has made:
that broker declines the other's connection when its own is open, and the other delays its proof for a moment while the
lower one's handshake is going on.

A link that is closed in order loses nothing: what the other side had queued meanwhile waits for the next link.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from nodes.delivery.base import Dropped, Scheduler
from nodes.overlay.reliability.settings import reliability_settings
from nodes.protocol.wire import Message
from nodes.runtime import dialing
from nodes.runtime.broker_selection import Backoff
from nodes.runtime.config import BrokerAddress, NodeConfig
from nodes.runtime.dialing import ANSWER_WITHIN_S, FAILURES, DialObserver, SimultaneousCall
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.link_eviction import links_to_evict

Dial = Callable[[NodeConfig, BrokerAddress, LinkMethod, Scheduler, DialObserver], Awaitable[Link]]
RECHECK_S = 1.0
HOLD_BACK_S = 2.0  # delay of the proof, while a handshake with the same broker is going on


class Attempt:
    """One attempt to make a link, and the messages that wait for it."""

    def __init__(self, queue: Scheduler, before_proof: Callable[[], Awaitable[None]]) -> None:
        self.queue = queue
        self.answered = False  # the connection is open, and the handshake begins
        self.task: asyncio.Task[None]
        self._before_proof = before_proof

    def on_connected(self) -> None:
        self.answered = True

    async def before_proof(self) -> None:
        await self._before_proof()


class PeerLinks:
    """The links of one broker to other brokers.

    `links` are the broker's, which adds and removes them itself; `serve` runs a link until it ends; `give_up` gets the
    broker to which no link can be made, and the reason.
    """

    def __init__(
        self,
        config: NodeConfig,
        links: Mapping[str, Link],
        serve: Callable[[Link], Awaitable[None]],
        give_up: Callable[[str, str], None],
        dial: Dial = dialing.dial,
    ) -> None:
        self._config = config
        self._links = links
        self._serve = serve
        self._give_up = give_up
        self._dial = dial
        self._brokers = {broker.name: broker for broker in config.brokers}
        self._method = LinkMethod(config.delivery)
        self._most = reliability_settings(
            config.overlay.method, config.overlay.parameters
        ).max_links
        self._attempts: dict[str, Attempt] = {}
        self._handshaking: dict[str, asyncio.Event] = {}
        self._made: dict[str, tuple[Link, float]] = {}  # links that this side has made, and when
        self._backoffs: dict[str, Backoff] = {}
        self._not_before: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._recheck_timer: asyncio.TimerHandle | None = None
        self._closed = False

    def knows(self, peer: str) -> bool:
        """Whether this is a broker to which this one may connect."""
        return peer in self._brokers

    @property
    def queued(self) -> int:
        """Messages that wait for a link."""
        return sum(attempt.queue.queued.messages for attempt in self._attempts.values())

    def queue(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        """Queue the message until there is a link to this broker; the messages that were dropped for it."""
        if self._closed:
            return (Dropped(data, message.priority, "the broker stops"),)
        if (attempt := self._attempts.get(peer)) is None:
            attempt = self._begin_attempt(peer, self._method.scheduler())
        return attempt.queue.offer(
            data, message.priority, _now(), control=message.control, upkeep=message.upkeep
        )

    def keep_queue(self, link: Link) -> None:
        """A link has ended: if it was closed in order, its queue waits for the next link."""
        queued = link.orderly and link.scheduler.queued.messages
        if (
            queued
            and self.knows(link.peer)
            and link.peer not in self._attempts
            and not self._closed
        ):
            self._begin_attempt(link.peer, link.scheduler)
            link.queue_kept = True

    def _begin_attempt(self, peer: str, queue: Scheduler) -> Attempt:
        attempt = self._attempts[peer] = Attempt(queue, lambda: self._hold_back(peer))
        attempt.task = asyncio.create_task(self._run(peer, attempt))
        self._tasks.add(attempt.task)
        attempt.task.add_done_callback(self._tasks.discard)
        return attempt

    def declines(self, peer: str, *, proven: bool) -> bool:
        """Whether to decline a connection from this broker, because this side's own connection to it has precedence.

        After the proof, the other side counts the link as up and may have sent messages over it.
        """
        broker = self._brokers.get(peer)
        if broker is None or broker.number < self._config.number:
            return False
        if (attempt := self._attempts.get(peer)) is not None:
            return attempt.answered and not proven
        link, since = self._made.get(peer, (None, 0.0))
        return link is not None and _now() - since < ANSWER_WITHIN_S

    @contextmanager
    def handshaking(self, peer: str) -> Iterator[None]:
        """A handshake is going on with a peer that claims this name and has not proven it yet."""
        ended = self._handshaking[peer] = asyncio.Event()
        try:
            yield
        finally:
            ended.set()
            if self._handshaking.get(peer) is ended:
                del self._handshaking[peer]

    async def _hold_back(self, peer: str) -> None:
        ended = self._handshaking.get(peer)
        if ended is not None and self._brokers[peer].number < self._config.number:
            with suppress(TimeoutError):
                async with asyncio.timeout(HOLD_BACK_S):
                    await ended.wait()

    def adopt(self, peer: str) -> Scheduler | None:
        """The other broker's connection is up: stop the attempt; the queue that waits for it."""
        if (attempt := self._attempts.pop(peer, None)) is None:
            return None
        attempt.task.cancel()
        return attempt.queue

    def trim(self) -> None:
        """If there are too many links, close those in order that are not used; look again if that did not do."""
        between = (link for peer, link in self._links.items() if peer in self._brokers)
        unused, too_many = links_to_evict(between, self._most, _now())
        for link in unused:
            link.close_orderly()
        if too_many and self._recheck_timer is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._recheck_timer = loop.call_later(RECHECK_S, self._recheck)

    async def close(self) -> None:
        """Call nobody any more; returns when the links that this side has made have ended."""
        self._closed = True
        if self._recheck_timer is not None:
            self._recheck_timer.cancel()
        for attempt in self._attempts.values():
            attempt.task.cancel()
        self._attempts.clear()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _recheck(self) -> None:
        self._recheck_timer = None
        self.trim()

    async def _run(self, peer: str, attempt: Attempt) -> None:
        """From the first message that waits to the end of the link."""
        if (older := self._links.get(peer)) is not None:  # it is being closed in order
            await older.ended.wait()
        await asyncio.sleep(self._not_before.get(peer, 0.0) - _now())
        broker = self._brokers[peer]
        try:
            link = await self._dial(self._config, broker, self._method, attempt.queue, attempt)
        except FAILURES as error:
            if isinstance(error, SimultaneousCall):
                attempt.answered = False
                await asyncio.sleep(ANSWER_WITHIN_S)  # `adopt` ends the waiting
            del self._attempts[peer]
            self._wait_a_little(peer)
            self._give_up(peer, str(error) or type(error).__name__)
            return
        del self._attempts[peer]
        began = _now()
        self._made[peer] = link, began
        try:
            await self._serve(link)
        finally:
            if self._made.get(peer) == (link, began):
                del self._made[peer]
            self._backoff(peer).on_link_lost(_now() - began)
            if not link.orderly:
                self._wait_a_little(peer)

    def _backoff(self, peer: str) -> Backoff:
        if peer not in self._backoffs:
            self._backoffs[peer] = Backoff(self._config.random(f"calling {peer}"))
        return self._backoffs[peer]

    def _wait_a_little(self, peer: str) -> None:
        """Do not try a broker that loses each link, or accepts none, a hundred times a second."""
        self._not_before[peer] = _now() + self._backoff(peer).next_wait()


def _now() -> float:
    return asyncio.get_running_loop().time()
