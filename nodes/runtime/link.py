"""One WebSocket connection with a scheduler in front of it and an assembler behind it."""

import asyncio
from collections.abc import Callable

from websockets.exceptions import ConnectionClosed

from nodes.delivery import METHODS
from nodes.delivery.base import Assembler, Chunk, Dropped, Needs, Scheduler
from nodes.protocol.wire import Message, WireError, decode
from nodes.runtime import tcp_info
from nodes.runtime.config import Method
from nodes.runtime.connection import (
    GOING_AWAY,
    NORMAL,
    NOT_USED,
    PROTOCOL_ERROR,
    LinkConnection,
    broken_rule,
    close,
    why_closed,
)
from nodes.runtime.link_eviction import LinkActivity
from nodes.runtime.udp_acks import LinkAcks

Handle = Callable[["Link", Message, int], None]  # link, message, when its last byte came (ns)
Refusal = Callable[["Link", str], None]  # link, reason

NO_NEEDS = Needs()
IN_A_ROW = 64  # messages out of one read, before others have their turn


class Link:
    """A connection to a peer that has finished the handshake.

    After its end, `orderly` says that one side closed it because it was not used, and that everything sent has arrived;
    `peer_stopping` that the peer is about to stop; `silent` that this side gave it up, because the peer sent nothing.
    """

    def __init__(
        self,
        peer: str,
        connection: LinkConnection,
        scheduler: Scheduler,
        assembler: Assembler,
        needs: Needs = NO_NEEDS,
        udp_acks: LinkAcks | None = None,
    ) -> None:
        self.peer = peer
        self.scheduler = scheduler
        self._connection = connection
        self._assembler = assembler
        self._needs = needs
        self._udp_acks = udp_acks
        self._now = asyncio.get_running_loop().time
        self._chunks_received = 0
        self._traffic = tcp_info.NO_TRAFFIC
        self.activity = LinkActivity(self._now())
        self.orderly = False
        self.queue_kept = False  # whether the remaining queue waits for the next link
        self.peer_stopping = False
        self.silent = False
        self.closing_orderly = False  # whether this side is closing it in order
        self.ended = asyncio.Event()
        self._work = asyncio.Event()  # something has changed: the scheduler may have a chunk now
        self._ending: str | None = None  # why this side closes
        self._closing: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Take over the connection; call this before `offer`."""
        self._connection.prompt_acks = self._needs.prompt_acks
        if self._udp_acks is not None:
            self._udp_acks.received = self._on_ack
        self.scheduler.on_link_up(self._connection.packet_payload(), self._now())

    def offer(
        self, data: bytes, priority: int, *, control: bool = False, upkeep: bool = False
    ) -> tuple[Dropped, ...]:
        """Queue an encoded message; the messages that were dropped for it."""
        now = self._now()
        dropped = self.scheduler.offer(data, priority, now, control=control, upkeep=upkeep)
        self._work.set()
        return dropped

    @property
    def idle(self) -> bool:
        """Whether nothing waits here or is under way to the peer."""
        return not self.scheduler.queued.messages and not self.under_way

    @property
    def receiving(self) -> bool:
        """Whether a message is coming in, and not all of it is here."""
        return self._connection.in_a_frame

    @property
    def under_way(self) -> int:
        """Bytes that the peer's kernel has not acknowledged."""
        return self._connection.unsent_bytes()

    def active_ago_s(self) -> float | None:
        """How long ago the peer was active; None: not since the last call.

        The bytes of a long message on a narrow link show activity long before the message is whole. An acknowledgement
        by the peer's kernel says little about the peer's process; but as long as bytes are under way, its reply cannot
        have come yet.
        """
        before, self._traffic = self._traffic, self._connection.traffic()
        if self._traffic.received > before.received:
            return self._traffic.received_ago_s
        if self._traffic.acknowledged > before.acknowledged and not self.idle:
            return self._traffic.acknowledged_ago_s
        return None

    def end(self, reason: str, code: int = PROTOCOL_ERROR) -> None:
        """Close from this side: ignore further messages; `run` returns the reason."""
        if self._ending is None:
            self._ending = reason
            self._closing = asyncio.create_task(close(self._connection, reason, code))

    def close_orderly(self) -> None:
        """Close the unused link in order: handle all that the peer sends until it gets the close frame."""
        if self._ending is None:
            self._ending, self.closing_orderly = NOT_USED, True
            self._closing = asyncio.create_task(self._connection.close_orderly())

    @property
    def closed_by_peer(self) -> bool:
        """Whether the peer is closing the unused link in order."""
        return self._connection.closed_by_peer

    def cut(self, reason: str) -> None:
        """Abort the connection without a close frame: the peer is silent."""
        self._ending = self._ending or reason
        self.silent = True
        self._connection.transport.abort()

    async def run(self, handle: Handle, refuse: Refusal) -> str:
        """Serve the connection until it ends; why it ended. `refuse` is called for invalid messages of the peer."""
        sender = asyncio.create_task(self._send())
        try:
            reason = await self._receive(handle, refuse)
        finally:
            sender.cancel()
            await asyncio.wait([sender])
            if self._udp_acks is not None:
                self._udp_acks.close()
            self.scheduler.on_link_lost(self._now(), orderly=self.orderly)
        if not sender.cancelled():
            sender.result()  # raises what went wrong there
        if self._closing is not None:
            await self._closing
        self.ended.set()
        return self._ending or reason

    async def _receive(self, handle: Handle, refuse: Refusal) -> str:
        arrived_ns, in_a_row = 0, 0
        try:
            while True:
                chunk = await self._connection.receive_chunk()
                in_a_row = in_a_row + 1 if arrived_ns == self._connection.arrived_ns else 0
                arrived_ns = self._connection.arrived_ns
                if in_a_row >= IN_A_ROW:
                    in_a_row = 0
                    await asyncio.sleep(0)
                if self._ending is not None and not self.closing_orderly:
                    continue  # until the close is answered
                if self._udp_acks is not None:
                    self._udp_acks.send(self._chunks_received)
                    self._chunks_received += 1
                try:
                    messages = self._unpack(chunk)
                except ValueError as error:
                    refuse(self, str(error))
                else:
                    if not messages:  # a piece of a long one
                        self.activity.last = self._now()
                    for message in messages:
                        handle(self, message, arrived_ns)
        except ConnectionClosed as closed:
            if self._ending is None and (problem := broken_rule(closed)) is not None:
                refuse(self, problem)
            self._note_end(closed)
            return why_closed(closed)

    def _note_end(self, closed: ConnectionClosed) -> None:
        if (received := closed.rcvd) is None:
            return
        self.peer_stopping = received.code == GOING_AWAY
        by_peer = self._ending is None and (received.code, received.reason) == (NORMAL, NOT_USED)
        self.orderly = self.closing_orderly or (by_peer and closed.__cause__ is None)

    def _unpack(self, chunk: Chunk | str) -> list[Message]:
        if isinstance(chunk, str):
            raise WireError("a text message; only binary ones are spoken here")
        if chunk.bits and not self._needs.bits:
            raise WireError("reserved bits are set, and this link's method has no use for them")
        return [decode(whole) for whole in self._assembler.on_chunk(chunk)]

    def _on_ack(self, number: int) -> None:
        self.scheduler.on_ack(number, self._now())
        self._work.set()

    async def _send(self) -> None:
        scheduler, connection = self.scheduler, self._connection
        try:
            while True:
                self._work.clear()
                if (chunk := scheduler.next_chunk(self._now())) is not None:
                    await connection.send_chunk(chunk)
                else:
                    await self._wait_for_work(scheduler.next_deadline())
                if self._needs.link_model:
                    held, round_trip_s = (
                        connection.unsent_bytes(),
                        connection.shortest_round_trip_s(),
                    )
                else:
                    held, round_trip_s = 0, None
                scheduler.on_progress(held, self._now(), round_trip_s)
        except ConnectionClosed:
            return
        except Exception:
            self._connection.transport.abort()  # a link that cannot send must not look alive
            raise

    async def _wait_for_work(self, deadline: float | None) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._work.wait()
        except TimeoutError:
            return


class LinkMethod:
    """The delivery method of a link, both sides, with their parameters; ValueError if these are wrong."""

    def __init__(self, chosen: Method) -> None:
        self._delivery = METHODS[chosen.method]
        self._parameters = chosen.parameters
        self.needs = self._delivery.needs(chosen.parameters)
        self.scheduler()
        self.assembler()

    def scheduler(self) -> Scheduler:
        """A queue for a link."""
        return self._delivery.scheduler(self._parameters)

    def assembler(self) -> Assembler:
        """What puts together the chunks of one connection."""
        return self._delivery.assembler(self._parameters)
