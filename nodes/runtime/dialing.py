"""Connecting to a broker, as sensors, subscribers and other brokers do it: WebSocket, HELLO, and it is a link."""

import asyncio
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from nodes.delivery.base import Scheduler
from nodes.runtime import handshake, label_extension
from nodes.runtime.config import BrokerAddress, NodeConfig
from nodes.runtime.connection import (
    POLICY_VIOLATION,
    SETTINGS,
    LinkConnection,
    broken_rule,
    close,
    watch_for_vanished_peer,
)
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.tcp_info import use_congestion_control
from nodes.runtime.udp_acks import AckSocket, LinkAcks

ANSWER_WITHIN_S = 10.0  # a broker that takes longer, before or after the WebSocket handshake, counts as unreachable
FAILURES = (
    OSError,
    TimeoutError,
    WebSocketException,
    handshake.HandshakeError,
)  # all that `dial` raises


OTHER_WAY = (
    "called the other way"  # why a broker closes the connection of one that it is calling itself
)


class SimultaneousCall(ConnectionError):
    """The other broker connects at the same time, and its connection is the one to keep."""


class DialledConnection(LinkConnection, ClientConnection):
    """A connection that this side has made."""


class DialObserver(Protocol):
    """Follows the steps of a connection attempt."""

    def on_connected(self) -> None:
        """The WebSocket connection is open; HELLO comes next."""

    async def before_proof(self) -> None:
        """The broker has given its proof; when this returns, this side sends its own, and the link is up."""


async def dial(
    config: NodeConfig,
    broker: BrokerAddress,
    method: LinkMethod,
    queue: Scheduler,
    observer: DialObserver | None = None,
) -> Link:
    """A link to this broker, with this queue in front of it; raises one of FAILURES if that fails."""
    connection = await connect(
        f"ws://{broker.at.host}:{broker.at.port}/",
        user_agent_header=None,
        proxy=None,
        create_connection=DialledConnection,
        extensions=[label_extension.Offer()] if method.needs.bits else None,
        **{**SETTINGS, "open_timeout": ANSWER_WITHIN_S},
    )
    assert isinstance(connection, DialledConnection)
    if observer is not None:
        observer.on_connected()
    watch_for_vanished_peer(connection.sock)
    use_congestion_control(connection.sock, config.tcp)
    await _handshake(connection, config, broker.name, method, observer)
    udp_acks = _open_acks(connection) if method.needs.udp_acks else None
    return Link(broker.name, connection, queue, method.assembler(), method.needs, udp_acks)


async def _handshake(
    connection: DialledConnection,
    config: NodeConfig,
    broker: str,
    method: LinkMethod,
    observer: DialObserver | None,
) -> None:
    """Send HELLO, receive HELLO, send the proof."""
    caller = handshake.Caller(handshake.Identity.of(config), broker, handshake.new_nonce())
    try:
        await connection.send(caller.first())
        async with asyncio.timeout(ANSWER_WITHIN_S):
            data = await connection.receive_plain()
        proof = caller.answer(data)
        if method.needs.bits and not connection.labelled:
            raise handshake.HandshakeError(f"{broker} does not know {label_extension.NAME}")
        connection.trust()
        if observer is not None:
            await observer.before_proof()
        await connection.send(proof)
    except ConnectionClosed as closed:
        if closed.rcvd is not None and closed.rcvd.reason == OTHER_WAY:
            raise SimultaneousCall(f"{broker} is calling itself") from closed
        if (problem := broken_rule(closed)) is not None:
            raise handshake.HandshakeError(problem) from closed
        raise
    except (TimeoutError, handshake.HandshakeError) as error:
        await close(connection, str(error) or "no HELLO in time", POLICY_VIOLATION)
        raise
    except asyncio.CancelledError:
        connection.transport.abort()
        raise


def _open_acks(connection: DialledConnection) -> LinkAcks:
    try:
        sock = AckSocket(connection.local_address)
        return sock.with_peer(connection.remote_address, alone=True)
    except OSError as error:
        connection.transport.abort()
        raise OSError(f"no UDP socket for answers: {error}") from error
