"""What sensors and subscribers share: one link to the home broker, made again whenever it breaks.

The queue to the broker outlives the connection: what is published in between goes out, in order, after the reconnect.
"""

import asyncio
import time

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from nodes.overlay.edge import Edge
from nodes.runtime import greeting
from nodes.runtime.backoff import CAP_S, delays
from nodes.runtime.config import NodeConfig
from nodes.runtime.link import (
    GOING_AWAY,
    OPEN_TIMEOUT_S,
    POLICY_VIOLATION,
    SETTINGS,
    Link,
    close,
    watch_for_vanished_peer,
)
from nodes.runtime.log import Log
from nodes.runtime.node import Node


class TimedConnection(ClientConnection):
    """Knows when the newest bytes were read: a message that came in a burst is not the later for those before it.

    The receiving task empties the queue of frames before more bytes are read, so the time is right for each of them.
    """

    arrived_ns = 0

    def data_received(self, data: bytes) -> None:
        self.arrived_ns = time.time_ns()
        super().data_received(data)


class Client(Node):
    """A node at the edge."""

    core: Edge

    def __init__(self, config: NodeConfig, log: Log) -> None:
        self._home = config.brokers[0]
        super().__init__(config, log, Edge(config.station, self._home.name, config.topics))
        self._queue = self.make_scheduler()
        self._connecting: asyncio.Task[None] | None = None
        self._leaving = False

    @property
    def ready(self) -> bool:
        return self.core.ready

    @property
    def queued(self) -> int:
        return self._queue.queued.messages

    def queue_message(self, peer: str, data: bytes, priority: int) -> str | None:
        link = self.links.get(peer)
        if link is not None:
            return link.offer(data, priority)
        return self._queue.offer(data, priority, self.now())

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
        random = self.config.random("reconnect")
        waits, last_problem = delays(random), ""
        while not self._leaving:
            try:
                link = await self._connect()
            except (OSError, TimeoutError, WebSocketException, greeting.Unwelcome) as error:
                problem = str(error) or type(error).__name__
                if problem != last_problem:  # a broker that is away for long is worth one line
                    event = "refuse" if isinstance(error, greeting.Unwelcome) else "unreachable"
                    self.log.write(event, peer=self._home.name, reason=problem)
                last_problem = problem
            else:
                began = self.now()
                await self.serve(link)
                last_problem = ""
                if self.now() - began > CAP_S:
                    waits = delays(random)
            if not self._leaving:
                await asyncio.sleep(next(waits))

    async def _connect(self) -> Link:
        home = self._home
        connection = await connect(
            f"ws://{home.at.host}:{home.at.port}/",
            user_agent_header=None,
            proxy=None,
            create_connection=TimedConnection,
            **SETTINGS,
        )
        assert isinstance(connection, TimedConnection)
        watch_for_vanished_peer(connection)
        await self._greet(connection)
        return Link(
            home.name,
            connection,
            self._queue,
            self.make_assembler(),
            arrived=lambda: connection.arrived_ns,
        )

    async def _greet(self, connection: ClientConnection) -> None:
        """Say HELLO, hear HELLO."""
        config = self.config
        try:
            await connection.send(greeting.hello(config.name, config.number, config.lab))
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                said = await connection.recv()
            greeting.check(said, config.lab, self._home.name)
        except (TimeoutError, greeting.Unwelcome) as error:
            await close(connection, str(error) or "no HELLO in time", POLICY_VIOLATION)
            raise
        except asyncio.CancelledError:
            connection.transport.abort()
            raise
