"""A broker's links to other brokers: made when there is something to send, closed in order when they are too many.

Whichever of two brokers has made the connection, it is one link, named by the other broker. What is to be sent while
this side is calling waits in the queue of the link to come.

If two brokers call each other at once, the connection that the one with the lower number has made is kept: it declines
the other's when its own is answered, and the other holds back its proof for a moment while that one stands at its door.

Nothing is lost by a link that is closed in order: what the other side had queued meanwhile waits for the next one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from nodes.delivery.base import Dropped, Scheduler
from nodes.overlay.reliability.promises import promises
from nodes.protocol.wire import Message
from nodes.runtime import dialing
from nodes.runtime.broker_selection import Backoff
from nodes.runtime.config import BrokerPlace, NodeConfig
from nodes.runtime.dialing import ANSWER_WITHIN_S, FAILURES, CalledTheOtherWay, Follower
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.link_eviction import surplus

Dial = Callable[[NodeConfig, BrokerPlace, LinkMethod, Scheduler, Follower], Awaitable[Link]]
LOOK_AGAIN_S = 1.0
HOLD_BACK_S = 2.0  # for one at the door who has proven nothing yet


class Call:
    """One attempt to get a link, and what waits for it."""

    def __init__(self, queue: Scheduler, before_proof: Callable[[], Awaitable[None]]) -> None:
        self.queue = queue
        self.answered = False  # the other side speaks: the connection will stand in a moment
        self.task: asyncio.Task[None]
        self._before_proof = before_proof

    def on_answer(self) -> None:
        self.answered = True

    async def before_proof(self) -> None:
        await self._before_proof()


class Switchboard:
    """What one broker has of this.

    `links` are the broker's, which adds and removes them itself; `serve` runs one until it ends; `give_up` is told
    whom no link can be made to, and why.
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
        self._most = promises(config.overlay.method, config.overlay.parameters).max_links
        self._calls: dict[str, Call] = {}
        self._at_door: dict[str, asyncio.Event] = {}
        self._made: dict[str, tuple[Link, float]] = {}  # links that this side has made, and when
        self._backoffs: dict[str, Backoff] = {}
        self._not_before: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._look: asyncio.TimerHandle | None = None
        self._closed = False

    def knows(self, peer: str) -> bool:
        """Whether this is a broker that can be called."""
        return peer in self._brokers

    @property
    def queued(self) -> int:
        """Messages that wait for a link."""
        return sum(call.queue.queued.messages for call in self._calls.values())

    def queue(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        """There is no link to this broker: keep the message until there is one; what was dropped because of it."""
        if self._closed:
            return (Dropped(data, message.priority, "the broker stops"),)
        if (call := self._calls.get(peer)) is None:
            call = self._call(peer, self._method.scheduler())
        return call.queue.offer(
            data, message.priority, _now(), control=message.control, upkeep=message.upkeep
        )

    def carry_on(self, link: Link) -> None:
        """A link has ended: if it was closed in order, what is still queued on it waits for the next one."""
        queued = link.orderly and link.scheduler.queued.messages
        if queued and self.knows(link.peer) and link.peer not in self._calls and not self._closed:
            self._call(link.peer, link.scheduler)
            link.carried = True

    def _call(self, peer: str, queue: Scheduler) -> Call:
        call = self._calls[peer] = Call(queue, lambda: self._hold_back(peer))
        call.task = asyncio.create_task(self._run(peer, call))
        self._tasks.add(call.task)
        call.task.add_done_callback(self._tasks.discard)
        return call

    def declines(self, peer: str, *, proven: bool) -> bool:
        """Whether a connection from this broker is not wanted, because this side's own to it goes before.

        One that has given its proof stands already for the other side, and what follows may have been sent.
        """
        broker = self._brokers.get(peer)
        if broker is None or broker.number < self._config.number:
            return False
        if (call := self._calls.get(peer)) is not None:
            return call.answered and not proven
        link, since = self._made.get(peer, (None, 0.0))
        return link is not None and _now() - since < ANSWER_WITHIN_S

    @contextmanager
    def at_door(self, peer: str) -> Iterator[None]:
        """Somebody says that it is this node, and has not proven it yet."""
        over = self._at_door[peer] = asyncio.Event()
        try:
            yield
        finally:
            over.set()
            if self._at_door.get(peer) is over:
                del self._at_door[peer]

    async def _hold_back(self, peer: str) -> None:
        over = self._at_door.get(peer)
        if over is not None and self._brokers[peer].number < self._config.number:
            with suppress(TimeoutError):
                async with asyncio.timeout(HOLD_BACK_S):
                    await over.wait()

    def adopt(self, peer: str) -> Scheduler | None:
        """This broker's own connection stands: call it no more; what waits for it."""
        if (call := self._calls.pop(peer, None)) is None:
            return None
        call.task.cancel()
        return call.queue

    def trim(self) -> None:
        """If there are too many links, close those in order that are not used; look again if that did not do."""
        between = (link for peer, link in self._links.items() if peer in self._brokers)
        unused, too_many = surplus(between, self._most, _now())
        for link in unused:
            link.part()
        if too_many and self._look is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(LOOK_AGAIN_S, self._look_again)

    async def close(self) -> None:
        """Call nobody any more; returns when the links that this side has made have ended."""
        self._closed = True
        if self._look is not None:
            self._look.cancel()
        for call in self._calls.values():
            call.task.cancel()
        self._calls.clear()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _look_again(self) -> None:
        self._look = None
        self.trim()

    async def _run(self, peer: str, call: Call) -> None:
        """From the first message that waits to the end of the link."""
        if (older := self._links.get(peer)) is not None:  # it is being closed in order
            await older.over.wait()
        await asyncio.sleep(self._not_before.get(peer, 0.0) - _now())
        broker = self._brokers[peer]
        try:
            link = await self._dial(self._config, broker, self._method, call.queue, call)
        except FAILURES as error:
            if isinstance(error, CalledTheOtherWay):
                call.answered = False
                await asyncio.sleep(ANSWER_WITHIN_S)  # `adopt` ends the waiting
            del self._calls[peer]
            self._wait_a_little(peer)
            self._give_up(peer, str(error) or type(error).__name__)
            return
        del self._calls[peer]
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
        """A broker that takes calls and loses them again, or takes none, is not asked a hundred times a second."""
        self._not_before[peer] = _now() + self._backoff(peer).next_wait()


def _now() -> float:
    return asyncio.get_running_loop().time()
