"""One WebSocket connection with a scheduler in front of it and an assembler behind it.

Settings of each connection, and why:
- no compression: captures must be readable, and bytes on the line must follow from the scenario alone;
- no WebSocket pings: on a narrow line with a long queue their answers come too late and end healthy connections.
  TCP's own keepalive (60 s idle, 3 probes 20 s apart; empty packets that wait behind nothing) finds a vanished peer;
- write_limit 0: `send` returns when all bytes are with the kernel, so "queued" means what it says;
- no message longer than `wire.MAX_MESSAGE_BYTES`; a connection that brings one is ended.
"""

import asyncio
import fcntl
import socket
import struct
import termios
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed

from nodes.delivery.base import Assembler, Scheduler
from nodes.wire import MAX_MESSAGE_BYTES, Message, WireError, decode

if TYPE_CHECKING:
    from websockets.asyncio.connection import Connection

OPEN_TIMEOUT_S = 30.0  # also for HELLO
CLOSE_TIMEOUT_S = 1.0

SETTINGS: dict[str, Any] = {
    "compression": None,
    "open_timeout": OPEN_TIMEOUT_S,
    "ping_interval": None,
    "close_timeout": CLOSE_TIMEOUT_S,
    "max_size": MAX_MESSAGE_BYTES,
    "write_limit": 0,
}

NORMAL, GOING_AWAY, PROTOCOL_ERROR, POLICY_VIOLATION = 1000, 1001, 1002, 1008  # RFC 6455, 7.4.1

Handle = Callable[["Link", Message, int], None]  # link, message, when its last byte came (ns)
Refusal = Callable[["Link", str], None]  # link, reason


class Link:
    """A connection to a peer that has said HELLO."""

    def __init__(
        self,
        peer: str,
        connection: "Connection",
        scheduler: Scheduler,
        assembler: Assembler,
        arrived: Callable[[], int] = time.time_ns,
    ) -> None:
        self.peer = peer
        self.scheduler = scheduler
        self._connection = connection
        self._assembler = assembler
        self._arrived = arrived  # asked first thing when a chunk is complete
        self._offered = asyncio.Event()
        self._ending: str | None = None  # why this side closes
        self._closing: asyncio.Task[None] | None = None

    def offer(self, data: bytes, priority: int) -> str | None:
        """Queue an encoded message; a sentence if it was not taken."""
        problem = self.scheduler.offer(data, priority, asyncio.get_running_loop().time())
        self._offered.set()
        return problem

    def end(self, reason: str, code: int = PROTOCOL_ERROR) -> None:
        """Close from this side; nothing more is taken, and `run` returns the reason."""
        if self._ending is None:
            self._ending = reason
            self._closing = asyncio.create_task(close(self._connection, reason, code))

    async def run(self, handle: Handle, refuse: Refusal) -> str:
        """Serve the connection until it ends; why it ended. `refuse` is told of bytes that are no message."""
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
                arrived_ns = self._arrived()
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


def unsent_bytes(connection: "Connection") -> int:
    """What the kernel holds for this connection and the peer has not acknowledged."""
    line: socket.socket | None = connection.transport.get_extra_info("socket")
    if line is None or line.fileno() < 0:
        return 0
    answer = fcntl.ioctl(line.fileno(), termios.TIOCOUTQ, b"\0" * 4)
    return int(struct.unpack("i", answer)[0])


def watch_for_vanished_peer(connection: "Connection") -> None:
    """Turn TCP's keepalive on."""
    line: socket.socket = connection.transport.get_extra_info("socket")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 20)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


async def close(connection: "Connection", reason: str, code: int) -> None:
    """Close with a reason; a close frame has room for 123 bytes of it (RFC 6455, 5.5).

    The library's own time limit begins when the close frame is with the kernel; on a jammed line it never is.
    """
    short = reason.encode(errors="replace")[:123].decode(errors="ignore")
    try:
        async with asyncio.timeout(2 * CLOSE_TIMEOUT_S):
            await connection.close(code, short)
    except TimeoutError:
        connection.transport.abort()


def why_closed(closed: ConnectionClosed) -> str:
    """A sentence from the library's exception and its cause."""
    cause = closed.__cause__
    return f"{closed} ({cause})" if cause is not None and str(cause) else str(closed)
