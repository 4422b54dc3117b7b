"""The WebSocket connection below a link, the same at both ends.

Settings, and why:
- no compression: captures must be readable, and bytes on the line must follow from the scenario alone;
- no WebSocket pings: on a narrow line with a long queue their answers come too late and end healthy connections;
  TCP itself finds a vanished peer, see `watch_for_vanished_peer`;
- write_limit 0: `send` returns when all bytes are with the kernel, so "queued" means what it says;
- no message longer than `wire.MAX_MESSAGE_BYTES`; a connection that brings one is ended;
- TCP_NODELAY, which asyncio sets by itself: a piece shorter than a packet must not wait for the one before it.
"""

import asyncio
import socket
import time
from typing import Any

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import CLIENT

from nodes.delivery.base import Chunk
from nodes.runtime import kernel, labelling
from nodes.wire import MAX_MESSAGE_BYTES

OPEN_TIMEOUT_S = 30.0  # also for HELLO
CLOSE_TIMEOUT_S = 1.0
PROBE_AFTER_S, PROBE_EVERY_S, PROBES = 60, 20, 3
VANISHED_AFTER_S = PROBE_AFTER_S + PROBES * PROBE_EVERY_S

SETTINGS: dict[str, Any] = {
    "compression": None,
    "open_timeout": OPEN_TIMEOUT_S,
    "ping_interval": None,
    "close_timeout": CLOSE_TIMEOUT_S,
    "max_size": MAX_MESSAGE_BYTES,
    "write_limit": 0,
}

# RFC 6455, 7.4.1
NORMAL, GOING_AWAY, PROTOCOL_ERROR, POLICY_VIOLATION = 1000, 1001, 1002, 1008
INVALID_DATA, TOO_BIG = 1007, 1009


class LinkConnection(Connection):
    """Carries chunks, and knows the line below.

    It also knows when the newest bytes were read: a message that came in a burst is not the later for those before
    it. The receiving task empties the queue of frames before more bytes are read, so the time is right for each.
    """

    arrived_ns = 0
    prompt_acks = False  # whether what was read is acknowledged at once

    def data_received(self, data: bytes) -> None:
        self.arrived_ns = time.time_ns()
        if self.prompt_acks:
            kernel.acknowledge_now(self.line)
        super().data_received(data)

    @property
    def line(self) -> socket.socket:
        """The socket below."""
        line: socket.socket = self.transport.get_extra_info("socket")
        return line

    @property
    def labelled(self) -> bool:
        """Whether both sides have agreed that a chunk may have bits."""
        return labelling.agreed(self.protocol) is not None

    async def send_chunk(self, chunk: Chunk) -> None:
        """As one binary message; returns when all of it is with the kernel."""
        if (label := labelling.agreed(self.protocol)) is not None:
            label.say = chunk.bits
        await self.send(chunk.data)

    async def receive_chunk(self) -> Chunk | str:
        """The next message; a text, if the peer sends one."""
        data = await self.recv()
        label = labelling.agreed(self.protocol)
        bits = 0 if label is None else label.heard.popleft()
        return data if isinstance(data, str) else Chunk(data, bits)

    async def receive_plain(self) -> bytes | str:
        """The next message, where none has bits."""
        chunk = await self.receive_chunk()
        return chunk if isinstance(chunk, str) else chunk.data

    def packet_room(self) -> int:
        """How many bytes of a chunk fill exactly one packet."""
        return kernel.packet_room(self.line, masked=self.protocol.side is CLIENT)

    def unsent_bytes(self) -> int:
        """What the kernel holds and the peer has not acknowledged."""
        return kernel.unsent_bytes(self.line)

    def shortest_round_trip_s(self) -> float | None:
        """The shortest round trip that TCP has seen; None: not known."""
        return kernel.shortest_round_trip_s(self.line)


def watch_for_vanished_peer(line: socket.socket, after_s: float = VANISHED_AFTER_S) -> None:
    """Let TCP give up on a peer from which nothing came for two minutes, whether bytes are under way or not.

    An idle line is probed by the keepalive (empty packets that wait behind nothing). While data is unacknowledged the
    keepalive is silent, and without TCP_USER_TIMEOUT the kernel would repeat the data for a quarter of an hour.
    120 s is above what RFC 1122 (4.2.3.5) asks for at least (100 s), and did not end a fully loaded line of 80 kbit/s
    with 20 % loss each way (docs/nodes.md). Idle lines have the same time: the option overrules the number of probes.
    """
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_AFTER_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_EVERY_S)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(after_s * 1000))


async def close(connection: Connection, reason: str, code: int) -> None:
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


def broken_rule(closed: ConnectionClosed) -> str | None:
    """How the peer broke the rules of WebSockets, if that is why the library ended the connection."""
    sent = closed.sent
    if sent is None or closed.rcvd_then_sent:
        return None
    broken = sent.code in (PROTOCOL_ERROR, INVALID_DATA, TOO_BIG)
    return sent.reason or str(closed) if broken else None
