"""What broker, sensor and subscriber share: life cycle, log, control, links, and carrying out a core's actions."""

import asyncio
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NoReturn

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
from nodes.runtime.connection import POLICY_VIOLATION
from nodes.runtime.lifecycle import CLOSE_S, HAND_OVER_S, Cause, State, after
from nodes.runtime.link import Link
from nodes.runtime.log import Log, about, about_dropped


class Refused(Exception):
    """The node refuses a request on the control socket; the text says why."""


class NodeFailed(Exception):
    """The node cannot go on; the text says why."""


class Node(ABC):
    """One node; the subclasses say how it gets its links."""

    def __init__(self, config: NodeConfig, log: Log, core: Overlay) -> None:
        self.config = config
        self.log = log
        self.core = core
        self.links: dict[str, Link] = {}
        self.state = State.WAITING
        self.published = 0
        self.received = 0
        self._changed = asyncio.Event()  # the state
        self._failure: BaseException | None = None
        self._was_ready = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline_open = False  # whether the core is still to be asked for its next one

    # What a kind of node fills in

    @abstractmethod
    async def open(self) -> None:
        """After `go`: make or accept links."""

    @abstractmethod
    async def close(self) -> None:
        """End all links."""

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether the node can do its work."""

    @property
    def playing(self) -> int:
        """Publications that are still to come."""
        return 0

    def begin_stop(self) -> None:  # noqa: B027 - a node without plans has nothing to give up
        """Begin nothing new: the node is about to stop."""

    def forget(self, message_id: int) -> None:  # noqa: B027 - a node that keeps nothing has nothing to forget
        """The publication is acknowledged: another node is responsible for it now."""

    def publish(self, topic: Any, priority: Any, size: Any, place: Any = ()) -> str:
        """Publish now; the message's id."""
        self._do_not_publish()

    def play(self, start_ns: Any, actions: Any) -> int:
        """Publish later; how many were accepted."""
        self._do_not_publish()

    # Life

    def go(self) -> None:
        """Let the node begin its work."""
        self.state = after(self.state, Cause.GO)
        self._changed.set()

    def terminate(self) -> None:
        """SIGTERM came."""
        self.state = after(self.state, Cause.SIGTERM)
        self._changed.set()

    async def run_until_stopped(self) -> None:
        """Wait for `go`, run until SIGTERM, hand over and close."""
        await self._until_not(State.WAITING)
        if self.state is State.RUNNING:
            await self.open()
            self.note_readiness()
            await self._until_not(State.RUNNING)
        self.begin_stop()
        await self._hand_over()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.close()
        except TimeoutError:
            pass  # a peer does not answer; its connection ends with the process
        self.state = after(self.state, Cause.HANDED_OVER)
        if self._timer is not None:
            self._timer.cancel()
        self.log.write("stop", published=self.published, received=self.received)

    async def _until_not(self, state: State) -> None:
        while self.state is state and self._failure is None:
            self._changed.clear()
            await self._changed.wait()
        if self._failure is not None:
            raise NodeFailed(f"unexpected: {self._failure!r}") from self._failure

    async def _hand_over(self) -> None:
        """Wait until queued messages have reached the peers: a close would overtake them on a slow link."""
        end = asyncio.get_running_loop().time() + HAND_OVER_S
        while self.unfinished() and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)

    def unfinished(self) -> bool:
        """Whether something is still to be handed over before the node stops."""
        return bool(self.queued) or any(link.under_way for link in self.links.values())

    def depend_on(self, task: "asyncio.Task[None]") -> None:
        """If this task fails, the node fails."""

        def look(ended: "asyncio.Task[None]") -> None:
            if not ended.cancelled() and (failure := ended.exception()) is not None:
                self._failure = failure
                self._changed.set()

        task.add_done_callback(look)

    def note_readiness(self) -> None:
        """Log when the node becomes ready, again after each time that it was not."""
        ready = self.ready
        if ready and not self._was_ready:
            self.log.write("ready")
        self._was_ready = ready

    # Links

    def link_up(self, link: Link) -> None:
        """The handshake is finished."""
        self.links[link.peer] = link
        self.log.write("connect", peer=link.peer)
        self.perform(self.core.on_link_up(link.peer, self.now()))
        self.note_readiness()

    def link_down(self, link: Link, reason: str) -> None:
        """The link has ended; nothing to do if a newer one has replaced it."""
        if self._forget(link, reason):
            down = self.core.on_link_down(link.peer, self.now(), link.orderly, link.peer_stopping)
            self.perform(down)
            self.note_readiness()

    def _forget(self, link: Link, reason: str) -> bool:
        """Whether it was still the link to its peer."""
        if self.links.get(link.peer) is not link:
            return False
        del self.links[link.peer]
        queued = 0 if link.queue_kept else link.scheduler.queued.messages
        self.log.write("disconnect", peer=link.peer, reason=reason, queued=queued)
        return True

    async def serve(self, link: Link) -> None:
        """Serve a link from the handshake to its end."""
        link.begin()
        self.link_up(link)
        self.link_down(link, await link.run(self.handle, self.refuse))

    def refuse(self, link: Link, reason: str) -> None:
        """The peer broke the rules."""
        self.log.write("refuse", peer=link.peer, reason=reason)
        link.end(reason)

    def handle(self, link: Link, message: Message, arrived_ns: int) -> None:
        """A message came in."""
        if self.links.get(link.peer) is not link:
            return
        now = self.now()
        link.activity.note(message, now)
        try:
            self.perform(self.core.on_message(link.peer, message, now), arrived_ns)
        except Exception as error:  # noqa: BLE001 - no message of a peer ends this node
            traceback.print_exc()
            self.refuse(link, f"{message.kind.name} that this node cannot handle: {error!r}")
        self.note_readiness()

    # Carrying out

    def perform(self, actions: Iterable[Action], arrived_ns: int = 0) -> list[str]:
        """Carry out the core's actions; a sentence for each message that was dropped."""
        last, data = None, b""  # a message to many is encoded once
        problems = []
        for action in actions:
            match action:
                case Send(peer, message):
                    if message is not last:
                        last, data = message, encode(message)
                    if (problem := self._send(peer, message, data)) is not None:
                        problems.append(problem)
                case Deliver(message):
                    self.received += 1
                    self._log_message("receive", message, arrived_ns)
                case Duplicate(message):
                    self._log_message("duplicate", message, arrived_ns)
                case Refuse(peer, reason):
                    if peer in self.links:
                        self.refuse(self.links[peer], reason)
                case Drop(peer, reason):
                    if (link := self.links.get(peer)) is not None:
                        self._forget(link, reason)
                        link.cut(reason)
                case Acknowledged(message_id):
                    self.forget(message_id)
                case Note(event, details):
                    self.log.write(event, **details)
        self._ask_for_deadline()
        return problems

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        """Queue the message, encoded as `data`, for this peer; the messages that were dropped for it."""
        link = self.links.get(peer)
        if link is None:
            return (Dropped(data, message.priority, f"there is no link to {peer}"),)
        return link.offer(data, message.priority, control=message.control, upkeep=message.upkeep)

    def _send(self, peer: str, message: Message, data: bytes) -> str | None:
        """Why this message was dropped, None if it was not; others may have been dropped for it."""
        problem = None
        for dropped in self.queue_message(peer, message, data):
            for lost in about_dropped(peer, dropped):
                self.log.write("drop", **lost)
            if dropped.data == data:
                problem = dropped.reason
        if problem is not None and message.control and (link := self.links.get(peer)) is not None:
            # Without it the two would disagree about the link; a new one begins from nothing.
            link.end(f"no room for {message.kind.name}: {problem}", POLICY_VIOLATION)
        return problem

    def _log_message(self, event: str, message: Message, arrived_ns: int) -> None:
        self.log.write(event, t=arrived_ns or time.time_ns(), **about(message))

    def _ask_for_deadline(self) -> None:
        """Once for all that is done in a row."""
        if not self._deadline_open:
            self._deadline_open = True
            asyncio.get_running_loop().call_soon(self._set_timer)

    def _set_timer(self) -> None:
        """Leave a timer that is too early: it does no harm, and almost every message moves the deadline."""
        self._deadline_open = False
        if (deadline := self.core.next_deadline()) is None:
            return
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self.now()
        for peer, link in self.links.items():
            if (ago_s := link.active_ago_s()) is not None:
                self.core.on_activity(peer, now - ago_s)
        self.perform(self.core.on_deadline(now))
        self.note_readiness()

    def now(self) -> float:
        """The clock of cores and schedulers."""
        return asyncio.get_running_loop().time()

    # Questions

    @property
    def queued(self) -> int:
        """Messages that are not yet with the kernel."""
        return sum(link.scheduler.queued.messages for link in self.links.values())

    def status(self) -> dict[str, Any]:
        """What `status` answers."""
        return {
            "state": self.state,
            "ready": self.state is State.RUNNING and self.ready,
            "published": self.published,
            "received": self.received,
            "queued": self.queued,
            "under_way": max((link.under_way for link in self.links.values()), default=0),
            "peers": sorted(self.links),
            "playing": self.playing,
        }

    def _do_not_publish(self) -> NoReturn:
        raise Refused(f"{self.config.name} is a {self.config.kind}; only sensors publish")
