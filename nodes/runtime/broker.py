"""A broker: it listens, and its overlay core decides who gets what."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from nodes import overlay
from nodes.runtime import greeting, labelling
from nodes.runtime.answers import AnswerSocket
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import (
    GOING_AWAY,
    OPEN_TIMEOUT_S,
    POLICY_VIOLATION,
    SETTINGS,
    LinkConnection,
    broken_rule,
    close,
    watch_for_vanished_peer,
)
from nodes.runtime.lifecycle import State
from nodes.runtime.link import Link
from nodes.runtime.link_method import LinkMethod
from nodes.runtime.log import Log
from nodes.runtime.node import Node, NodeFailed


class GuestConnection(LinkConnection, ServerConnection):
    """A connection from a guest; `on_stranger` is told if the guest does not even speak WebSocket."""

    on_stranger: "Callable[[GuestConnection, str], None]"

    async def handshake(self, *arguments: Any, **more: Any) -> None:
        try:
            await super().handshake(*arguments, **more)
        except asyncio.CancelledError:
            self.on_stranger(self, "no WebSocket handshake in time")
            raise
        if (problem := self.protocol.handshake_exc) is not None:
            self.on_stranger(self, f"no WebSocket handshake: {problem}")


class Broker(Node):
    """The broker's shell."""

    def __init__(self, config: NodeConfig, log: Log) -> None:
        make_core = overlay.METHODS[config.overlay.method]
        station = config.station(incarnation=int(time.time()))
        core = make_core(station, config.overlay.parameters, config.random("overlay"))
        super().__init__(config, log, core)
        self._default = LinkMethod(config.delivery)
        self._methods = {peer: LinkMethod(chosen) for peer, chosen in config.deliveries.items()}
        self._server: Server | None = None
        self._answers: AnswerSocket | None = None

    @property
    def ready(self) -> bool:
        return self._server is not None and self._server.is_serving()

    async def open(self) -> None:
        listen = self.config.listen
        assert listen is not None  # config.parse has seen to it
        try:
            if any(method.needs.answers for method in (self._default, *self._methods.values())):
                self._answers = AnswerSocket((listen.host, listen.port))
            self._server = await serve(
                self._receive_guest,
                listen.host,
                listen.port,
                server_header=None,
                create_connection=self._connection,  # type: ignore[arg-type] # only ever called
                extensions=[labelling.Acceptance()],
                **SETTINGS,
            )
        except OSError as error:
            raise NodeFailed(f"cannot listen on {listen.host}:{listen.port}: {error}") from error

    async def close(self) -> None:
        if self._server is not None:
            for link in self.links.values():
                link.end("the broker stops", GOING_AWAY)
            self._server.close(code=GOING_AWAY, reason="the broker stops")
            await self._server.wait_closed()
        if self._answers is not None:
            self._answers.close()

    def _connection(self, *arguments: Any, **more: Any) -> GuestConnection:
        connection = GuestConnection(*arguments, **more)
        connection.on_stranger = self._turn_away
        return connection

    def _turn_away(self, connection: ServerConnection, reason: str) -> None:
        if self.state is State.RUNNING:  # a node that stops ends connections itself
            self.log.write("refuse", peer=_address(connection), reason=reason)

    async def _receive_guest(self, connection: ServerConnection) -> None:
        assert isinstance(connection, GuestConnection)
        watch_for_vanished_peer(connection.line)
        peer = await self._greet(connection)
        if peer is None:
            return
        if (older := self.links.get(peer)) is not None:
            self.link_down(older, "replaced by a newer connection")
            older.end("replaced by a newer connection", POLICY_VIOLATION)
        await self.serve(self._link(peer, connection))

    def _link(self, peer: str, connection: GuestConnection) -> Link:
        method = self._method_of(peer)
        known = self._answers if method.needs.answers else None
        return Link(
            peer,
            connection,
            method.scheduler(),
            method.assembler(),
            method.needs,
            None if known is None else known.with_peer(connection.remote_address),
        )

    def _method_of(self, peer: str) -> LinkMethod:
        return self._methods.get(peer, self._default)

    async def _greet(self, connection: GuestConnection) -> str | None:
        """Hear HELLO, answer HELLO; the peer's name, or None if it may not stay."""
        config = self.config
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                peer = greeting.check(await connection.receive_plain(), config.lab)
            if self._method_of(peer).needs.bits and not connection.labelled:
                raise greeting.Unwelcome(f"{peer} must offer {labelling.NAME}: its labels need it")
            await connection.send(greeting.hello(config.name, config.number, config.lab))
            return peer
        except ConnectionClosed as closed:
            if (problem := broken_rule(closed)) is not None:
                self._turn_away(connection, problem)
            return None
        except (TimeoutError, greeting.Unwelcome) as error:
            reason = str(error) or "no HELLO in time"
            self._turn_away(connection, reason)
            await close(connection, reason, POLICY_VIOLATION)
            return None


def _address(connection: ServerConnection) -> str:
    address = connection.remote_address
    return f"{address[0]}:{address[1]}" if address else "somebody who is gone"
