"""One WebSocket connection with a scheduler in front of it and an assembler behind it."""

import asyncio
from collections.abc import Callable

from websockets.exceptions import ConnectionClosed

from nodes.delivery.base import Assembler, Scheduler
from nodes.runtime.connection import (
    PROTOCOL_ERROR,
    TimedConnection,
    broken_rule,
    close,
    unsent_bytes,
    why_closed,
)
from nodes.wire import Message, WireError, decode

Handle = Callable[["Link", Message, int], None]  # link, message, when its last byte came (ns)
Refusal = Callable[["Link", str], None]  # link, reason


class Link:
    """A connection to a peer that has said HELLO."""

    def __init__(
        self,
        peer: str,
        connection: TimedConnection,
        scheduler: Scheduler,
        assembler: Assembler,
    ) -> None:
        self.peer = peer
        self.scheduler = scheduler
        self._connection = connection
        self._assembler = assembler
        self._offered = asyncio.Event()
        self._ending: str | None = None  # why this side closes
        self._closing: asyncio.Task[None] | None = None

    def offer(self, data: bytes, priority: int, *, control: bool = False) -> str | None:
        """Queue an encoded message; a sentence if it was not taken."""
        now = asyncio.get_running_loop().time()
        problem = self.scheduler.offer(data, priority, now, control=control)
        self._offered.set()
        return problem

    @property
    def under_way(self) -> int:
        """Bytes that the kernel has and the peer's kernel has not."""
        return unsent_bytes(self._connection)

    def end(self, reason: str, code: int = PROTOCOL_ERROR) -> None:
        """Close from this side; nothing more is taken, and `run` returns the reason."""
        if self._ending is None:
            self._ending = reason
            self._closing = asyncio.create_task(close(self._connection, reason, code))

    async def run(self, handle: Handle, refuse: Refusal) -> str:
        """Serve the connection until it ends; why it ended. `refuse` is told of what the peer should not have sent."""
        sender = asyncio.create_task(self._send())
        try:
            reason = await self._receive(handle, refuse)
        finally:
            sender.cancel()
            await asyncio.wait([sender])
            self.scheduler.on_link_lost(asyncio.get_running_loop().time())
        if not sender.cancelled():
            sender.result()  # raises what went wrong there
        if self._closing is not None:
            await self._closing
        return self._ending or reason

    async def _receive(self, handle: Handle, refuse: Refusal) -> str:
        try:
            while True:
                data = await self._connection.recv()
                arrived_ns = self._connection.arrived_ns
                if self._ending is not None:
                    continue  # until the close is answered
                try:
                    messages = self._unpack(data)
                except ValueError as error:
                    refuse(self, str(error))
                else:
                    for message in messages:
                        handle(self, message, arrived_ns)
        except ConnectionClosed as closed:
            if self._ending is None and (problem := broken_rule(closed)) is not None:
                refuse(self, problem)
            return why_closed(closed)

    def _unpack(self, data: bytes | str) -> list[Message]:
        if isinstance(data, str):
            raise WireError("a text message; only binary ones are spoken here")
        return [decode(whole) for whole in self._assembler.on_chunk(data)]

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        scheduler = self.scheduler
        try:
            while True:
                self._offered.clear()
                if (chunk := scheduler.next_chunk(loop.time())) is not None:
                    await self._connection.send(chunk)
                else:
                    await self._wait_for_work(scheduler.next_deadline())
                scheduler.on_progress(unsent_bytes(self._connection), loop.time())
        except ConnectionClosed:
            return
        except Exception:
            self._connection.transport.abort()  # a link that cannot send must not look alive
            raise

    async def _wait_for_work(self, deadline: float | None) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._offered.wait()
        except TimeoutError:
            return
