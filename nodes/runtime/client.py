"""What sensors and subscribers share: one link, to one broker after the other, made again whenever it breaks.

The queue to the broker outlives the connection: publications from in between go out, in order, after the reconnect.
Publications with custody leave the queue when the connection ends: the core stores them and sends them again.
"""

import asyncio
from typing import Any

from nodes.delivery.base import Dropped
from nodes.overlay.edge import Edge
from nodes.overlay.reliability.custody import encoded_with_custody
from nodes.overlay.reliability.settings import reliability_settings
from nodes.protocol.wire import Message
from nodes.runtime import handshake
from nodes.runtime.broker_selection import Backoff, BrokerSelection
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import GOING_AWAY
from nodes.runtime.dialing import FAILURES, dial
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.log import Log
from nodes.runtime.node import Node


class Client(Node):
    """A sensor or subscriber."""

    core: Edge

    def __init__(self, config: NodeConfig, log: Log) -> None:
        self.reliability = reliability_settings(config.overlay.method, config.overlay.parameters)
        super().__init__(config, log, Edge(config.station(), self.reliability, config.topics))
        self._selection = BrokerSelection(config.brokers, Backoff(config.random("reconnect")))
        self._problems: dict[str, str] = {}  # broker: why it could not be reached the last time
        self._method = LinkMethod(config.delivery)
        self._queue = self._method.scheduler()
        self._connecting: asyncio.Task[None] | None = None
        self._leaving = False

    @property
    def ready(self) -> bool:
        return self.core.ready

    @property
    def queued(self) -> int:
        return self._queue.queued.messages

    def unfinished(self) -> bool:
        return super().unfinished() or not self.core.left

    def status(self) -> dict[str, Any]:
        return {**super().status(), "broker": self.core.broker, "pending": self.core.pending}

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        if peer in self.links:
            return super().queue_message(peer, message, data)
        return self._queue.offer(data, message.priority, self.now(), control=message.control)

    async def open(self) -> None:
        self._connecting = asyncio.create_task(self._stay_connected())
        self.depend_on(self._connecting)

    async def close(self) -> None:
        if self._connecting is None:
            return
        self._leaving = True
        if self.links:
            for link in self.links.values():
                link.end("the node stops", GOING_AWAY)
        else:
            self._connecting.cancel()
        await asyncio.wait([self._connecting])

    async def _stay_connected(self) -> None:
        while not self._leaving:
            began = self.now()
            link = await self._connect()
            if link is None:
                wait = self._selection.on_unreachable(self.now() - began)
            else:
                began = self.now()
                await self.serve(link)
                self._queue.withdraw(encoded_with_custody)
                leave = link.peer_stopping or link.silent
                wait = self._selection.on_link_lost(self.now() - began, leave=leave)
            if wait and not self._leaving:
                await asyncio.sleep(wait)

    async def _connect(self) -> Link | None:
        """A link to the selected broker; None if it cannot be reached."""
        broker = self._selection.next
        try:
            link = await dial(self.config, broker, self._method, self._queue)
        except FAILURES as error:
            problem = str(error) or type(error).__name__
            if problem != self._problems.get(broker.name):  # log a long absence once
                event = "refuse" if isinstance(error, handshake.HandshakeError) else "unreachable"
                self.log.write(event, peer=broker.name, reason=problem)
            self._problems[broker.name] = problem
            return None
        self._problems.pop(broker.name, None)
        return link
