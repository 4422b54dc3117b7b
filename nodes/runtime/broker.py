"""A broker: it accepts links, and its overlay core decides which nodes get a message."""

import asyncio
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from nodes import overlay
from nodes.delivery.base import Dropped, Scheduler
from nodes.protocol.wire import Message
from nodes.runtime import handshake as runtime_handshake
from nodes.runtime import label_extension
from nodes.runtime.config import NodeConfig
from nodes.runtime.connection import (
    GOING_AWAY,
    NORMAL,
    OPEN_TIMEOUT_S,
    ORDERLY_CLOSE_S,
    POLICY_VIOLATION,
    SETTINGS,
    LinkConnection,
    broken_rule,
    close,
    watch_for_vanished_peer,
)
from nodes.runtime.dialing import OTHER_WAY
from nodes.runtime.lifecycle import State
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.log import Log
from nodes.runtime.node import Node, NodeFailed
from nodes.runtime.peer_links import PeerLinks
from nodes.runtime.tcp_info import use_congestion_control
from nodes.runtime.udp_acks import AckSocket

# Connections whose peer has not given its proof yet. Pure.
#
# Their number is limited. At the limit, the newest replaces the oldest connection of the address that has most: an
# address that opens thousands replaces its own. Log records about refused connections are limited, too, so that they
# cannot fill the disk.


MAX_PENDING = 256  # a lab's nodes may all come at once
LOG_BURST = 100
LOG_RATE_PER_S = 1.0


Pending = TypeVar("Pending", bound=Hashable)


class PendingConnections(Generic[Pending]):
    """The pending connections by address, the oldest of each address first."""

    def __init__(self, capacity: int = MAX_PENDING) -> None:
        self._capacity = capacity
        self._addresses: dict[Pending, str] = {}
        self._by_address: dict[str, dict[Pending, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def admit(self, connection: Pending, address: str) -> Pending | None:
        """Add a connection; the one that has to be closed for it."""
        self._addresses[connection] = address
        self._by_address.setdefault(address, {})[connection] = None
        if len(self._addresses) <= self._capacity:
            return None
        group = max(self._by_address.values(), key=len)
        longest = next(iter(group))
        self.leave(longest)
        return longest

    def leave(self, connection: Pending) -> None:
        """The connection has given its proof, or has ended."""
        if (address := self._addresses.pop(connection, None)) is None:
            return
        group = self._by_address[address]
        del group[connection]
        if not group:
            del self._by_address[address]


class LogRateLimit:
    """A token bucket for equal log records: a burst, then one a second."""

    def __init__(self) -> None:
        self._tokens = float(LOG_BURST)
        self._at = 0.0
        self._suppressed = 0

    def allow(self, now: float) -> int | None:
        """The number of records suppressed before this one; None: suppress this one, too."""
        self._tokens = min(LOG_BURST, self._tokens + (now - self._at) * LOG_RATE_PER_S)
        self._at = now
        if self._tokens < 1:
            self._suppressed += 1
            return None
        self._tokens -= 1
        suppressed, self._suppressed = self._suppressed, 0
        return suppressed


STOPS = "the broker stops"


class LinkDeclined(Exception):
    """The peer has proven its name, but this broker takes no link from it now; the text says why."""


class IncomingConnection(LinkConnection, ServerConnection):
    """A connection from another node. It calls `on_arrival` and `on_end`, and `on_bad_handshake` if the peer does not
    speak WebSocket. A peer that closes before it sends anything is no such case: a broker does so when it has got its
    link by another connection."""

    on_arrival: "Callable[[IncomingConnection], None] | None" = None
    on_end: "Callable[[IncomingConnection], None]"
    on_bad_handshake: "Callable[[IncomingConnection, str], None]"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.on_arrival is not None:
            self.on_arrival(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_arrival is not None:
            self.on_end(self)

    async def handshake(self, *arguments: Any, **more: Any) -> None:
        try:
            await super().handshake(*arguments, **more)
        except asyncio.CancelledError:
            self.on_bad_handshake(self, "no WebSocket handshake in time")
            raise
        if (problem := self.protocol.handshake_exc) is not None and self.arrived_ns:
            self.on_bad_handshake(self, f"no WebSocket handshake: {problem}")


class Broker(Node):
    """The broker's shell."""

    def __init__(self, config: NodeConfig, log: Log) -> None:
        make_core = overlay.METHODS[config.overlay.method]
        station = config.station(incarnation=int(time.time()))
        core = make_core(station, config.overlay.parameters, config.random("overlay"))
        super().__init__(config, log, core)
        self._default = LinkMethod(config.delivery)
        self._methods = {peer: LinkMethod(chosen) for peer, chosen in config.deliveries.items()}
        self._peer_links = PeerLinks(config, self.links, self.serve, self._unreachable)
        self._pending_connections: PendingConnections[IncomingConnection] = PendingConnections()
        self._log_limit = LogRateLimit()
        self._problems: dict[str, str] = {}  # broker: why it could not be reached the last time
        self._server: Server | None = None
        self._udp_acks: AckSocket | None = None
        self._leaving = False

    @property
    def ready(self) -> bool:
        return self._server is not None and self._server.is_serving() and self.core.ready

    @property
    def queued(self) -> int:
        return super().queued + self._peer_links.queued

    async def open(self) -> None:
        listen = self.config.listen
        assert listen is not None  # config.parse has seen to it
        try:
            if any(method.needs.udp_acks for method in (self._default, *self._methods.values())):
                self._udp_acks = AckSocket((listen.host, listen.port))
            self._server = await serve(
                self._on_incoming,
                listen.host,
                listen.port,
                server_header=None,
                create_connection=self._connection,  # type: ignore[arg-type] # only ever called
                extensions=[label_extension.Acceptance()],
                **SETTINGS,
            )
        except OSError as error:
            raise NodeFailed(f"cannot listen on {listen.host}:{listen.port}: {error}") from error
        self.perform(self.core.on_deadline(self.now()))  # a core may have something due at once

    # Links

    def link_up(self, link: Link) -> None:
        self._problems.pop(link.peer, None)
        super().link_up(link)
        self._peer_links.trim()

    def link_down(self, link: Link, reason: str) -> None:
        if self.links.get(link.peer) is link:
            self._peer_links.keep_queue(link)
        super().link_down(link, reason)

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        link = self.links.get(peer)
        if link is not None and not link.closing_orderly:
            link.activity.note(message, self.now())
            return link.offer(
                data, message.priority, control=message.control, upkeep=message.upkeep
            )
        if self._peer_links.knows(peer):
            return self._peer_links.queue(peer, message, data)
        return (Dropped(data, message.priority, f"there is no link to {peer}"),)

    def _unreachable(self, peer: str, reason: str) -> None:
        if reason != self._problems.get(peer):  # log a long absence once
            self.log.write("unreachable", peer=peer, reason=reason)
        self._problems[peer] = reason
        self.perform(self.core.on_unreachable(peer, self.now()))
        self.note_readiness()

    async def _on_incoming(self, connection: ServerConnection) -> None:
        assert isinstance(connection, IncomingConnection)
        watch_for_vanished_peer(connection.sock)
        use_congestion_control(connection.sock, self.config.tcp)
        peer = await self._handshake(connection)
        if peer is None:
            return
        self._pending_connections.leave(connection)
        if (older := self.links.get(peer)) is not None and older.closed_by_peer:
            with suppress(TimeoutError):
                async with asyncio.timeout(ORDERLY_CLOSE_S):
                    await older.ended.wait()  # its queued messages go over the new link
        if (older := self.links.get(peer)) is not None:
            self.link_down(older, "replaced by a newer connection")
            older.end("replaced by a newer connection", POLICY_VIOLATION)
        await self.serve(self._link(peer, connection, self._peer_links.adopt(peer)))

    def _link(self, peer: str, connection: IncomingConnection, queue: Scheduler | None) -> Link:
        method = self._method_of(peer)
        known = self._udp_acks if method.needs.udp_acks else None
        return Link(
            peer,
            connection,
            method.scheduler() if queue is None else queue,
            method.assembler(),
            method.needs,
            None if known is None else known.with_peer(connection.remote_address),
        )

    def _method_of(self, peer: str) -> LinkMethod:
        return self._methods.get(peer, self._default)

    # Incoming connections

    def _connection(self, *arguments: Any, **more: Any) -> IncomingConnection:
        connection = IncomingConnection(*arguments, **more)
        connection.on_arrival = self._on_arrival
        connection.on_end = self._pending_connections.leave
        connection.on_bad_handshake = self._refuse_connection
        return connection

    def _on_arrival(self, connection: IncomingConnection) -> None:
        address = connection.remote_address
        longest = self._pending_connections.admit(connection, address[0] if address else "")
        if longest is not None:
            self._refuse_connection(longest, "too many at the door without a proof")
            longest.transport.abort()

    def _refuse_connection(self, connection: ServerConnection, reason: str) -> None:
        if self.state is not State.RUNNING:
            return  # a stopping node ends connections itself
        if (suppressed := self._log_limit.allow(self.now())) is not None:
            more = {"suppressed": suppressed} if suppressed else {}
            self.log.write("refuse", peer=_address(connection), reason=reason, **more)

    async def _handshake(self, connection: IncomingConnection) -> str | None:
        """Receive HELLO, reply with HELLO, check the proof; the peer's name, or None if the connection is refused."""
        host = runtime_handshake.Host(
            runtime_handshake.Identity.of(self.config), runtime_handshake.new_nonce()
        )
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                peer, answer = host.answer(await connection.receive_plain())
                if self._method_of(peer).needs.bits and not connection.labelled:
                    raise runtime_handshake.HandshakeError(
                        f"{peer} must offer {label_extension.NAME}: its labels need it"
                    )
                self._check_wanted(peer, proven=False)
                connection.expect_proof(runtime_handshake.PROOF_HELLO_BYTES)
                with self._peer_links.handshaking(peer):
                    await connection.send(answer)
                    host.admit(await connection.receive_plain())
            self._check_wanted(peer, proven=True)
            connection.trust()
            return peer
        except ConnectionClosed as closed:
            if (problem := broken_rule(closed)) is not None:
                self._refuse_connection(connection, problem)
        except LinkDeclined as declined:
            reason = str(declined)
            await close(connection, reason, NORMAL if reason == OTHER_WAY else GOING_AWAY)
        except (TimeoutError, runtime_handshake.HandshakeError) as error:
            reason = str(error) or "no HELLO in time"
            self._refuse_connection(connection, reason)
            await close(connection, reason, POLICY_VIOLATION)
        return None

    def _check_wanted(self, peer: str, *, proven: bool) -> None:
        if self._peer_links.declines(peer, proven=proven):
            raise LinkDeclined(OTHER_WAY)
        if self._leaving and not self._peer_links.knows(peer):
            raise LinkDeclined(STOPS)

    # Stopping

    def begin_stop(self) -> None:
        self._leaving = True
        if self._server is not None:
            self.perform(self.core.leave(self.now()))

    def unfinished(self) -> bool:
        """Close each client's link when its queue is empty; the core needs other brokers until it has left."""
        for peer, link in self.links.items():
            if link.idle and not self._peer_links.knows(peer):
                link.end(STOPS, GOING_AWAY)
        return super().unfinished() or not self.core.left

    async def close(self) -> None:
        for link in self.links.values():
            link.end(STOPS, GOING_AWAY)
        await self._peer_links.close()
        if self._server is not None:
            self._server.close(code=GOING_AWAY, reason=STOPS)
            await self._server.wait_closed()
        if self._udp_acks is not None:
            self._udp_acks.close()


def _address(connection: ServerConnection) -> str:
    address = connection.remote_address
    return f"{address[0]}:{address[1]}" if address else "somebody who is gone"
