"""A broker: it listens, and its overlay core decides who gets what."""

import asyncio

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from nodes import overlay
from nodes.runtime import greeting
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
from nodes.runtime.node import Node, NodeFailed


class Broker(Node):
    """The broker's shell."""

    def __init__(self, config: NodeConfig, log: Log) -> None:
        make_core = overlay.METHODS[config.overlay.method]
        core = make_core(config.station, config.overlay.parameters, config.random("overlay"))
        super().__init__(config, log, core)
        self._server: Server | None = None

    @property
    def ready(self) -> bool:
        return self._server is not None and self._server.is_serving()

    async def open(self) -> None:
        listen = self.config.listen
        assert listen is not None  # config.parse has seen to it
        try:
            self._server = await serve(
                self._receive_guest, listen.host, listen.port, server_header=None, **SETTINGS
            )
        except OSError as error:
            raise NodeFailed(f"cannot listen on {listen.host}:{listen.port}: {error}") from error

    async def close(self) -> None:
        if self._server is not None:
            for link in self.links.values():
                link.end("the broker stops", GOING_AWAY)
            self._server.close(code=GOING_AWAY, reason="the broker stops")
            await self._server.wait_closed()

    async def _receive_guest(self, connection: ServerConnection) -> None:
        watch_for_vanished_peer(connection)
        peer = await self._greet(connection)
        if peer is None:
            return
        if (older := self.links.get(peer)) is not None:
            self.link_down(older, "replaced by a newer connection")
            older.end("replaced by a newer connection", POLICY_VIOLATION)
        await self.serve(Link(peer, connection, self.make_scheduler(), self.make_assembler()))

    async def _greet(self, connection: ServerConnection) -> str | None:
        """Hear HELLO, answer HELLO; the peer's name, or None if it may not stay."""
        config = self.config
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                peer = greeting.check(await connection.recv(), config.lab)
            await connection.send(greeting.hello(config.name, config.number, config.lab))
            return peer
        except ConnectionClosed:
            return None
        except (TimeoutError, greeting.Unwelcome) as error:
            reason = str(error) or "no HELLO in time"
            self.log.write("refuse", peer=_address(connection), reason=reason)
            await close(connection, reason, POLICY_VIOLATION)
            return None


def _address(connection: ServerConnection) -> str:
    host, port = connection.remote_address[:2]
    return f"{host}:{port}"
