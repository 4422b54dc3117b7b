"""Two links over one real WebSocket connection on the loopback, in one process; and every variant of every method."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from nodes.protocol.wire import Message
from nodes.runtime.broker import IncomingConnection
from nodes.runtime.config import Method
from nodes.runtime.connection import NORMAL, SETTINGS, LinkConnection
from nodes.runtime.dialing import DialledConnection
from nodes.runtime.label_extension import Acceptance, Offer
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.udp_acks import AckSocket, LinkAcks

VARIANTS = [
    Method("fifo", {}),
    Method("pq-pc", {}),
    Method("pq-pc", {"ack": "udp"}),
    Method("dmpq-pc", {}),
    Method("dmpq-pc", {"dv": 1000}),
    Method("dmpq-pc", {"label": "opcode"}),
    Method("dmpq-pc", {"label": "opcode", "ack": "udp"}),
    Method("preemptive", {}),
]


def title(variant: Method) -> str:
    return "-".join((variant.method, *(str(value) for value in variant.parameters.values())))


class End:
    """One end of the pair: its link, and the messages that it received."""

    def __init__(self, method: LinkMethod, connection: LinkConnection, udp_acks: LinkAcks | None):
        scheduler, assembler = method.scheduler(), method.assembler()
        connection.trust()
        self.link = Link("peer", connection, scheduler, assembler, method.needs, udp_acks)
        self.got: list[Message] = []
        self.refusals: list[str] = []
        self.link.begin()
        self.running = asyncio.create_task(self.link.run(self._handle, self._refuse))

    def _handle(self, link: Link, message: Message, arrived_ns: int) -> None:
        self.got.append(message)

    def _refuse(self, link: Link, reason: str) -> None:
        self.refusals.append(reason)


@asynccontextmanager
async def link_pair(variant: Method) -> AsyncIterator[tuple[End, End]]:
    """The client's end and the broker's end."""
    method = LinkMethod(variant)
    arrived: asyncio.Future[IncomingConnection] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def receive(connection: ServerConnection) -> None:
        assert isinstance(connection, IncomingConnection)
        arrived.set_result(connection)
        await over.wait()

    settings: dict[str, Any] = {**SETTINGS, "create_connection": IncomingConnection}
    async with serve(receive, "127.0.0.1", 0, extensions=[Acceptance()], **settings) as server:
        (listening,) = server.sockets
        here = await connect(
            f"ws://127.0.0.1:{listening.getsockname()[1]}/",
            proxy=None,
            extensions=[Offer()] if method.needs.bits else None,
            **{**SETTINGS, "create_connection": DialledConnection},
        )
        assert isinstance(here, DialledConnection)
        ends = [
            End(method, connection, _udp_acks(connection) if method.needs.udp_acks else None)
            for connection in (here, await arrived)
        ]
        yield ends[0], ends[1]
        for end in ends:
            end.link.end("done", NORMAL)
        over.set()
        for end in ends:
            await end.running


def _udp_acks(connection: LinkConnection) -> LinkAcks:
    assert connection.sock.family == socket.AF_INET
    return AckSocket(connection.local_address).with_peer(connection.remote_address, alone=True)
