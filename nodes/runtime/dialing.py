"""Connecting to a broker, as sensors, subscribers and other brokers do it: WebSocket, HELLO, and it is a link."""

import asyncio
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from nodes.delivery.base import Scheduler
from nodes.runtime import handshake, label_extension
from nodes.runtime.config import BrokerPlace, NodeConfig
from nodes.runtime.connection import (
    POLICY_VIOLATION,
    SETTINGS,
    LinkConnection,
    broken_rule,
    close,
    watch_for_vanished_peer,
)
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.udp_acks import Answers, AnswerSocket

ANSWER_WITHIN_S = 10.0  # a broker that lets us wait for longer, before or after the WebSocket handshake, is not there
FAILURES = (
    OSError,
    TimeoutError,
    WebSocketException,
    handshake.Unwelcome,
)  # all that `dial` raises


OTHER_WAY = (
    "called the other way"  # why a broker closes the connection of one that it is calling itself
)


class CalledTheOtherWay(ConnectionError):
    """The broker that was called is calling at the same time, and its connection is the one to keep."""


class DialledConnection(LinkConnection, ClientConnection):
    """A connection that this side has made."""


class Follower(Protocol):
    """Who wants to know how far a call is."""

    def on_answer(self) -> None:
        """Somebody is there; HELLO comes next."""

    async def before_proof(self) -> None:
        """The broker has given its proof; when this returns it gets this side's, and the link stands."""


async def dial(
    config: NodeConfig,
    broker: BrokerPlace,
    method: LinkMethod,
    queue: Scheduler,
    follower: Follower | None = None,
) -> Link:
    """A link to this broker, with this queue in front of it; one of FAILURES if there is none to be had."""
    connection = await connect(
        f"ws://{broker.at.host}:{broker.at.port}/",
        user_agent_header=None,
        proxy=None,
        create_connection=DialledConnection,
        extensions=[label_extension.Offer()] if method.needs.bits else None,
        **{**SETTINGS, "open_timeout": ANSWER_WITHIN_S},
    )
    assert isinstance(connection, DialledConnection)
    if follower is not None:
        follower.on_answer()
    watch_for_vanished_peer(connection.line)
    await _greet(connection, config, broker.name, method, follower)
    answers = _open_answers(connection) if method.needs.answers else None
    return Link(broker.name, connection, queue, method.assembler(), method.needs, answers)


async def _greet(
    connection: DialledConnection,
    config: NodeConfig,
    broker: str,
    method: LinkMethod,
    follower: Follower | None,
) -> None:
    """Say HELLO, hear HELLO, give the proof."""
    caller = handshake.Caller(handshake.Card.of(config), broker, handshake.new_nonce())
    try:
        await connection.send(caller.first())
        async with asyncio.timeout(ANSWER_WITHIN_S):
            said = await connection.receive_plain()
        proof = caller.answer(said)
        if method.needs.bits and not connection.labelled:
            raise handshake.Unwelcome(f"{broker} does not know {label_extension.NAME}")
        connection.trust()
        if follower is not None:
            await follower.before_proof()
        await connection.send(proof)
    except ConnectionClosed as closed:
        if closed.rcvd is not None and closed.rcvd.reason == OTHER_WAY:
            raise CalledTheOtherWay(f"{broker} is calling itself") from closed
        if (problem := broken_rule(closed)) is not None:
            raise handshake.Unwelcome(problem) from closed
        raise
    except (TimeoutError, handshake.Unwelcome) as error:
        await close(connection, str(error) or "no HELLO in time", POLICY_VIOLATION)
        raise
    except asyncio.CancelledError:
        connection.transport.abort()
        raise


def _open_answers(connection: DialledConnection) -> Answers:
    try:
        line = AnswerSocket(connection.local_address)
        return line.with_peer(connection.remote_address, alone=True)
    except OSError as error:
        connection.transport.abort()
        raise OSError(f"no UDP socket for answers: {error}") from error
