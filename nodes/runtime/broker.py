"""A broker: it listens, and its overlay core decides who gets what."""

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
    PART_WITHIN_S,
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
from nodes.runtime.peer_links import Switchboard
from nodes.runtime.udp_acks import AnswerSocket

# Who stands at a broker's door: connections whose peer has not given its proof. Pure.
#
# There is room for a number of them. When it is full, the newest takes the place of the one that has stood there for
# longest among those from the address that has most: who comes with thousands takes the places of its own.
# What is said of those who are turned away has its limit too, so that they cannot fill the disk.


ROOM = 256  # a lab's nodes may all come at once
LINES_AT_ONCE = 100
LINES_PER_S = 1.0


Visitor = TypeVar("Visitor", bound=Hashable)


class Doorstep(Generic[Visitor]):
    """The visitors, by address, each address's longest waiting first."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._addresses: dict[Visitor, str] = {}
        self._visitors: dict[str, dict[Visitor, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, visitor: Visitor, address: str) -> Visitor | None:
        """Somebody comes; who has to go for it."""
        self._addresses[visitor] = address
        self._visitors.setdefault(address, {})[visitor] = None
        if len(self._addresses) <= self._room:
            return None
        crowd = max(self._visitors.values(), key=len)
        longest = next(iter(crowd))
        self.leave(longest)
        return longest

    def leave(self, visitor: Visitor) -> None:
        """It has given its proof, or is gone."""
        if (address := self._addresses.pop(visitor, None)) is None:
            return
        crowd = self._visitors[address]
        del crowd[visitor]
        if not crowd:
            del self._visitors[address]


class Complaints:
    """Which of many equal events are worth a line: some at once, then one a second."""

    def __init__(self) -> None:
        self._lines = float(LINES_AT_ONCE)
        self._at = 0.0
        self._unsaid = 0

    def worth_a_line(self, now: float) -> int | None:
        """How many went unsaid before this one, if this one is to be said."""
        self._lines = min(LINES_AT_ONCE, self._lines + (now - self._at) * LINES_PER_S)
        self._at = now
        if self._lines < 1:
            self._unsaid += 1
            return None
        self._lines -= 1
        unsaid, self._unsaid = self._unsaid, 0
        return unsaid


STOPS = "the broker stops"


class NotNow(Exception):
    """The peer is who it says, but no link is wanted now; the text says why."""


class GuestConnection(LinkConnection, ServerConnection):
    """A connection from a guest. `on_arrival` and `on_end` are told of it; `on_stranger`, if it does not even speak
    WebSocket. One that goes without a word is none: so does a broker that has got its link by another connection."""

    on_arrival: "Callable[[GuestConnection], None] | None" = None
    on_end: "Callable[[GuestConnection], None]"
    on_stranger: "Callable[[GuestConnection, str], None]"

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
            self.on_stranger(self, "no WebSocket handshake in time")
            raise
        if (problem := self.protocol.handshake_exc) is not None and self.arrived_ns:
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
        self._board = Switchboard(config, self.links, self.serve, self._unreachable)
        self._doorstep: Doorstep[GuestConnection] = Doorstep()
        self._complaints = Complaints()
        self._problems: dict[str, str] = {}  # broker: why it could not be reached the last time
        self._server: Server | None = None
        self._answers: AnswerSocket | None = None
        self._leaving = False

    @property
    def ready(self) -> bool:
        return self._server is not None and self._server.is_serving() and self.core.ready

    @property
    def queued(self) -> int:
        return super().queued + self._board.queued

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
                extensions=[label_extension.Acceptance()],
                **SETTINGS,
            )
        except OSError as error:
            raise NodeFailed(f"cannot listen on {listen.host}:{listen.port}: {error}") from error
        self.perform(self.core.on_deadline(self.now()))  # a core may have plans from the beginning

    # Links

    def link_up(self, link: Link) -> None:
        self._problems.pop(link.peer, None)
        super().link_up(link)
        self._board.trim()

    def link_down(self, link: Link, reason: str) -> None:
        if self.links.get(link.peer) is link:
            self._board.carry_on(link)
        super().link_down(link, reason)

    def queue_message(self, peer: str, message: Message, data: bytes) -> tuple[Dropped, ...]:
        link = self.links.get(peer)
        if link is not None and not link.parting:
            link.use.note(message, self.now())
            return link.offer(
                data, message.priority, control=message.control, upkeep=message.upkeep
            )
        if self._board.knows(peer):
            return self._board.queue(peer, message, data)
        return (Dropped(data, message.priority, f"there is no link to {peer}"),)

    def _unreachable(self, peer: str, reason: str) -> None:
        if reason != self._problems.get(peer):  # one that is away for long: one line
            self.log.write("unreachable", peer=peer, reason=reason)
        self._problems[peer] = reason
        self.perform(self.core.on_unreachable(peer, self.now()))
        self.note_readiness()

    async def _receive_guest(self, connection: ServerConnection) -> None:
        assert isinstance(connection, GuestConnection)
        watch_for_vanished_peer(connection.line)
        peer = await self._greet(connection)
        if peer is None:
            return
        self._doorstep.leave(connection)
        if (older := self.links.get(peer)) is not None and older.left_by_peer:
            with suppress(TimeoutError):
                async with asyncio.timeout(PART_WITHIN_S):
                    await older.over.wait()  # what is queued on it goes over this one
        if (older := self.links.get(peer)) is not None:
            self.link_down(older, "replaced by a newer connection")
            older.end("replaced by a newer connection", POLICY_VIOLATION)
        await self.serve(self._link(peer, connection, self._board.adopt(peer)))

    def _link(self, peer: str, connection: GuestConnection, queue: Scheduler | None) -> Link:
        method = self._method_of(peer)
        known = self._answers if method.needs.answers else None
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

    # Who comes

    def _connection(self, *arguments: Any, **more: Any) -> GuestConnection:
        connection = GuestConnection(*arguments, **more)
        connection.on_arrival = self._make_room
        connection.on_end = self._doorstep.leave
        connection.on_stranger = self._turn_away
        return connection

    def _make_room(self, connection: GuestConnection) -> None:
        address = connection.remote_address
        longest = self._doorstep.enter(connection, address[0] if address else "")
        if longest is not None:
            self._turn_away(longest, "too many at the door without a proof")
            longest.transport.abort()

    def _turn_away(self, connection: ServerConnection, reason: str) -> None:
        if self.state is not State.RUNNING:
            return  # a node that stops ends connections itself
        if (unsaid := self._complaints.worth_a_line(self.now())) is not None:
            more = {"unsaid": unsaid} if unsaid else {}
            self.log.write("refuse", peer=_address(connection), reason=reason, **more)

    async def _greet(self, connection: GuestConnection) -> str | None:
        """Hear HELLO, answer HELLO, hear the proof; the peer's name, or None if it may not stay."""
        host = runtime_handshake.Host(
            runtime_handshake.Card.of(self.config), runtime_handshake.new_nonce()
        )
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                peer, answer = host.answer(await connection.receive_plain())
                if self._method_of(peer).needs.bits and not connection.labelled:
                    raise runtime_handshake.Unwelcome(
                        f"{peer} must offer {label_extension.NAME}: its labels need it"
                    )
                self._check_wanted(peer, proven=False)
                connection.expect_proof(runtime_handshake.PROOF_HELLO_BYTES)
                with self._board.at_door(peer):
                    await connection.send(answer)
                    host.admit(await connection.receive_plain())
            self._check_wanted(peer, proven=True)
            connection.trust()
            return peer
        except ConnectionClosed as closed:
            if (problem := broken_rule(closed)) is not None:
                self._turn_away(connection, problem)
        except NotNow as not_now:
            reason = str(not_now)
            await close(connection, reason, NORMAL if reason == OTHER_WAY else GOING_AWAY)
        except (TimeoutError, runtime_handshake.Unwelcome) as error:
            reason = str(error) or "no HELLO in time"
            self._turn_away(connection, reason)
            await close(connection, reason, POLICY_VIOLATION)
        return None

    def _check_wanted(self, peer: str, *, proven: bool) -> None:
        if self._board.declines(peer, proven=proven):
            raise NotNow(OTHER_WAY)
        if self._leaving and not self._board.knows(peer):
            raise NotNow(STOPS)

    # The end

    def quiet(self) -> None:
        self._leaving = True
        if self._server is not None:
            self.perform(self.core.leave(self.now()))

    def unfinished(self) -> bool:
        """Guests may go when they have what is queued for them; other brokers are needed until the core has left."""
        for peer, link in self.links.items():
            if link.idle and not self._board.knows(peer):
                link.end(STOPS, GOING_AWAY)
        return super().unfinished() or not self.core.left

    async def close(self) -> None:
        for link in self.links.values():
            link.end(STOPS, GOING_AWAY)
        await self._board.close()
        if self._server is not None:
            self._server.close(code=GOING_AWAY, reason=STOPS)
            await self._server.wait_closed()
        if self._answers is not None:
            self._answers.close()


def _address(connection: ServerConnection) -> str:
    address = connection.remote_address
    return f"{address[0]}:{address[1]}" if address else "somebody who is gone"
