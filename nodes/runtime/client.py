"""What sensors and subscribers share: one link to the home broker, made again whenever it breaks.

The queue to the broker outlives the connection: what is published in between goes out, in order, after the reconnect.
"""

import asyncio

from nodes.delivery.base import Dropped
from nodes.overlay.edge import Edge
from nodes.overlay.promises import promises
from nodes.runtime import greeting
from nodes.runtime.backoff import Backoff
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import GOING_AWAY
from nodes.runtime.dialing import FAILURES, dial
from nodes.runtime.link_method import LinkMethod
from nodes.runtime.log import Log
from nodes.runtime.node import Node
from nodes.wire import Message


class Client(Node):
    """A node at the edge."""

    core: Edge

    def __init__(self, config: NodeConfig, log: Log) -> None:
        self._home = config.brokers[0]
        promised = promises(config.overlay.method, config.overlay.parameters)
        super().__init__(config, log, Edge(config.station(), promised, config.topics))
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
        if (link := self.links.get(self._home.name)) is not None:
            link.end("the node stops", GOING_AWAY)
        else:
            self._connecting.cancel()
        await asyncio.wait([self._connecting])

    async def _stay_connected(self) -> None:
        backoff, last_problem = Backoff(self.config.random("reconnect")), ""
        while not self._leaving:
            try:
                link = await dial(self.config, self._home, self._method, self._queue)
            except FAILURES as error:
                problem = str(error) or type(error).__name__
                if problem != last_problem:  # a broker that is away for long is worth one line
                    event = "refuse" if isinstance(error, greeting.Unwelcome) else "unreachable"
                    self.log.write(event, peer=self._home.name, reason=problem)
                last_problem = problem
            else:
                began = self.now()
                await self.serve(link)
                last_problem = ""
                backoff.on_link_lost(self.now() - began)
            if not self._leaving:
                await asyncio.sleep(backoff.next_wait())
