"""The connection below a link: unresponsive peers are given up, and both ends take the time at the same point."""

import asyncio
import errno
import socket
import time
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from nodes.runtime import connection
from nodes.runtime.broker import IncomingConnection
from nodes.runtime.connection import (
    SETTINGS,
    VANISHED_AFTER_S,
    LinkConnection,
    watch_for_vanished_peer,
)
from nodes.runtime.dialing import DialledConnection

PATIENCE_S = 60


def test_a_peer_is_given_up_after_the_same_time_with_and_without_bytes_in_flight() -> None:
    with socket.socket() as sock:
        watch_for_vanished_peer(sock)
        tcp = {
            name: sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, f"TCP_{name}"))
            for name in ("KEEPIDLE", "KEEPINTVL", "KEEPCNT", "USER_TIMEOUT")
        }
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert tcp["KEEPIDLE"] + tcp["KEEPCNT"] * tcp["KEEPINTVL"] == VANISHED_AFTER_S
    assert tcp["USER_TIMEOUT"] == 1000 * VANISHED_AFTER_S
    assert VANISHED_AFTER_S >= 100  # RFC 1122, 4.2.3.5


def test_a_peer_that_stops_reading_ends_the_connection() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
        server.accept()[0],
    ):
        watch_for_vanished_peer(sock, after_s=0.5)
        sock.setblocking(False)
        try:
            while True:
                sock.send(bytes(65536))
        except BlockingIOError:
            pass  # the peer's window and this side's buffer are full
        end = time.monotonic() + PATIENCE_S
        while not (problem := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
            assert time.monotonic() < end, "the kernel still waits"
            time.sleep(0.05)
    assert problem == errno.ETIMEDOUT


def test_both_ends_note_the_time_when_bytes_are_read() -> None:
    for end in (IncomingConnection, DialledConnection):
        assert end.data_received is LinkConnection.data_received


async def pour(sock: socket.socket, data: bytes) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(sock, data)


def test_a_peer_that_asks_for_answers_and_does_not_read_them_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "MAX_UNREAD_BYTES", 100_000)

    async def receive(incoming: ServerConnection) -> None:
        assert isinstance(incoming, IncomingConnection)
        incoming.trust()
        with suppress(ConnectionClosed):
            await incoming.recv()

    async def scenario() -> None:
        settings: dict[str, Any] = {**SETTINGS, "create_connection": IncomingConnection}
        async with serve(receive, "127.0.0.1", 0, **settings) as server:
            (listening,) = server.sockets
            address = listening.getsockname()
            protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{address[1]}/"))
            protocol.send_request(protocol.connect())
            with socket.create_connection(address) as sock:
                sock.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(sock, b"".join(protocol.data_to_send()))
                pings = Frame(Opcode.PING, bytes(125)).serialize(mask=True) * 1000
                with pytest.raises(ConnectionError):
                    await asyncio.wait_for(pour(sock, pings), PATIENCE_S)

    asyncio.run(scenario())
