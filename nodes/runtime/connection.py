"""The WebSocket connection below a link, the same at both ends.

Settings, and why:
- no compression: captures must be readable, and bytes on the link must follow from the scenario alone;
- no WebSocket pings: on a narrow link with a long queue their replies come too late and end healthy connections;
  TCP itself finds a vanished peer, see `watch_for_vanished_peer`;
- write_limit 0: `send` returns when the kernel has all bytes, so "queued" counts only what the kernel has not;
- no message longer than `wire.MAX_MESSAGE_BYTES`, and none longer than a HELLO before the peer has given its proof;
  a connection that brings one is ended when its head is read;
- TCP_NODELAY, which asyncio sets by itself: a piece shorter than a packet must not wait for the one before it.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import CLIENT, CONNECTING, OPEN

from nodes.delivery.base import Chunk
from nodes.protocol.wire import MAX_MESSAGE_BYTES
from nodes.runtime import label_extension, tcp_info
from nodes.runtime.handshake import MAX_HELLO_BYTES

OPEN_TIMEOUT_S = 30.0  # also for HELLO
CLOSE_TIMEOUT_S = 1.0
ORDERLY_CLOSE_S = (
    10.0  # in which nothing moves: then a connection that is closed in order is given up
)
BEFORE_PROOF_BYTES = 2 * MAX_HELLO_BYTES  # what is read of a peer before its proof: HTTP and HELLO
MAX_UNREAD_BYTES = MAX_MESSAGE_BYTES + 65_536  # what may wait below a scheduler
READ_BYTES = 32_768  # at once; thousands of tiny frames in one read would keep all others waiting
PROBE_AFTER_S, PROBE_EVERY_S, PROBES = 90, 10, 3  # later than most heartbeats, which then do
VANISHED_AFTER_S = PROBE_AFTER_S + PROBES * PROBE_EVERY_S

SETTINGS: dict[str, Any] = {
    "compression": None,
    "open_timeout": OPEN_TIMEOUT_S,
    "ping_interval": None,
    "close_timeout": CLOSE_TIMEOUT_S,
    "max_size": MAX_HELLO_BYTES,  # until `trust`
    "write_limit": 0,
}

# RFC 6455, 7.4.1
NORMAL, GOING_AWAY, PROTOCOL_ERROR, POLICY_VIOLATION = 1000, 1001, 1002, 1008
INVALID_DATA, TOO_BIG = 1007, 1009
NOT_USED = "not used"  # why a link between brokers is closed in order, with NORMAL


class LinkConnection(Connection):
    """Carries chunks, and knows the socket below.

    It also records when the newest bytes were read, so that the messages before it in a burst do not delay a message's
    arrival time. The receiving task empties the queue of frames before more bytes are read, so the time is right for
    each.
    """

    arrived_ns = 0
    prompt_acks = False  # whether TCP acknowledges each read at once
    _may_read: int | None = BEFORE_PROOF_BYTES  # None: the peer has given its proof
    _held: bytes | None = (
        None  # what came behind its proof, before that was checked; None: nothing may
    )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        transport.max_size = READ_BYTES  # type: ignore[attr-defined] # of asyncio's socket transports

    def data_received(self, data: bytes) -> None:
        self.arrived_ns = time.time_ns()
        if self.prompt_acks:
            tcp_info.acknowledge_now(self.sock)
        if self._may_read is not None:
            data = self._allowed(data)
        super().data_received(data)
        if self._held:
            self._hold()
        if self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.transport.abort()  # the peer sends pings and does not read the pongs

    def expect_proof(self, size: int) -> None:
        """The peer's next message has exactly so many bytes; bytes behind it wait for `trust`."""
        self.protocol.max_message_size = size
        self._may_read, self._held = tcp_info.masked_frame(size), b""

    def trust(self) -> None:
        """The peer has given its proof: read everything that it sends from now on."""
        held, self._held, self._may_read = self._held or b"", None, None
        self.protocol.max_message_size = MAX_MESSAGE_BYTES
        if len(held) > BEFORE_PROOF_BYTES:
            self.transport.resume_reading()
        if held and self.protocol.state is OPEN:
            super().data_received(held)

    def _allowed(self, data: bytes) -> bytes:
        """The part of the bytes that may be read before the peer's proof is checked."""
        assert self._may_read is not None
        if self.protocol.state not in (CONNECTING, OPEN):
            return data  # the library throws it away
        now, later = data[: self._may_read], data[self._may_read :]
        self._may_read -= len(now)
        if self._held is not None:
            self._held += later
        elif later:
            self._too_much()
            return b""
        return now

    def _hold(self) -> None:
        if self.protocol.state is not OPEN:
            self._held = b""  # the peer was refused
        elif len(self._held or b"") > BEFORE_PROOF_BYTES:
            self.transport.pause_reading()

    def _too_much(self) -> None:
        reason = f"more than {BEFORE_PROOF_BYTES} bytes before its proof"
        if self.protocol.state is CONNECTING:
            self.protocol.handshake_exc = ValueError(reason)
            self.transport.abort()
        else:
            self.protocol.fail(TOO_BIG, reason)
            self.send_data()

    @property
    def sock(self) -> socket.socket:
        """The socket below."""
        sock: socket.socket = self.transport.get_extra_info("socket")
        return sock

    @property
    def labelled(self) -> bool:
        """Whether both sides have agreed that a chunk may have bits."""
        return label_extension.agreed(self.protocol) is not None

    async def send_chunk(self, chunk: Chunk) -> None:
        """As one binary message; returns when all of it is with the kernel."""
        if (label := label_extension.agreed(self.protocol)) is not None:
            label.outgoing = chunk.bits
        if self.protocol.state is not OPEN or self.transport.is_closing():
            if self.closed_by_peer:
                await self._wait_for_close(lambda: self.traffic().acknowledged)
            await self.send(chunk.data)  # raises what there is to say
            return
        # The same as `send`, at half the cost: a link has one sender, and no fragments.
        self.protocol.send_binary(chunk.data)
        self.send_data()
        if self.paused:
            await self._drained()

    async def _drained(self) -> None:
        try:
            await self.drain()
            return
        except OSError:
            await self.wait_closed()
        raise self.close_exc

    async def close_orderly(self) -> None:
        """Close it in order: wait for all that the peer sends until it gets the close frame, as long as bytes come."""
        self.close_timeout = None
        closing = asyncio.create_task(self.close(NORMAL, NOT_USED))
        await self._wait_for_close(lambda: self.traffic().received)
        await closing

    async def _wait_for_close(self, moved: Callable[[], int]) -> None:
        """Return when the connection has ended; abort it if nothing moves any more."""
        while True:
            before = moved()
            try:
                async with asyncio.timeout(ORDERLY_CLOSE_S):
                    await self.wait_closed()
                return
            except TimeoutError:
                if moved() == before:
                    self.set_connection_exc(TimeoutError("the close was not finished in time"))
                    self.transport.abort()

    @property
    def closed_by_peer(self) -> bool:
        """Whether the peer closes it in order, since it is not used."""
        received = self.protocol.close_rcvd
        return received is not None and (received.code, received.reason) == (NORMAL, NOT_USED)

    @property
    def in_a_frame(self) -> bool:
        """Whether a part of a frame has come, and the rest has not."""
        return bool(self.protocol.reader.buffer)

    async def receive_chunk(self) -> Chunk | str:
        """The next message; a text, if the peer sends one."""
        data = await self.recv()
        label = label_extension.agreed(self.protocol)
        bits = 0 if label is None else label.received.popleft()
        return data if isinstance(data, str) else Chunk(data, bits)

    async def receive_plain(self) -> bytes | str:
        """The next message, where none has bits."""
        chunk = await self.receive_chunk()
        return chunk if isinstance(chunk, str) else chunk.data

    def packet_payload(self) -> int:
        """How many bytes of a chunk fill exactly one packet."""
        return tcp_info.packet_payload(self.sock, masked=self.protocol.side is CLIENT)

    def unsent_bytes(self) -> int:
        """What the kernel holds and the peer has not acknowledged."""
        return tcp_info.unsent_bytes(self.sock)

    def traffic(self) -> tcp_info.Traffic:
        """What has gone over it."""
        return tcp_info.traffic(self.sock)

    def shortest_round_trip_s(self) -> float | None:
        """The shortest round trip that TCP has seen; None: not known."""
        return tcp_info.shortest_round_trip_s(self.sock)


def watch_for_vanished_peer(sock: socket.socket, after_s: float = VANISHED_AFTER_S) -> None:
    """Let TCP give up on a peer from which nothing came for two minutes, whether bytes are under way or not.

    The keepalive probes an idle link (with empty packets that wait behind nothing). While data is unacknowledged the
    keepalive is silent, and without TCP_USER_TIMEOUT the kernel would repeat the data for a quarter of an hour.
    120 s is above the minimum of RFC 1122 (4.2.3.5), 100 s, and did not end a fully loaded link of 80 kbit/s
    with 20 % loss each way (docs/explanation/nodes.md). Idle links have the same time: the option overrules the
    number of probes.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_AFTER_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_EVERY_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(after_s * 1000))


async def close(
    connection: Connection, reason: str, code: int, within_s: float = CLOSE_TIMEOUT_S
) -> None:
    """Close with a reason, cut to the 123 bytes that a close frame holds (RFC 6455, 5.5).

    The library's own time limit begins when the kernel has the close frame; on a jammed link it never gets it.
    """
    connection.close_timeout = within_s
    short = reason.encode(errors="replace")[:123].decode(errors="ignore")
    try:
        async with asyncio.timeout(2 * within_s):
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
