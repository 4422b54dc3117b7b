"""One WebSocket connection in virtual time, with a scheduler in front of it and an assembler behind it: what
`nodes.runtime.link` is to real nodes.
"""

from collections.abc import Callable
from math import ceil

from nodes.delivery.base import Chunk, Dropped, Needs, Scheduler
from nodes.protocol.wire import Message, decode
from nodes.runtime.link import LinkMethod
from nodes.runtime.link_eviction import LinkActivity
from testbed.backends.simulated.link_layer import Flow
from testbed.backends.simulated.loop import SECOND, Loop, Timer
from testbed.backends.simulated.stream_contents import frame_head
from testbed.backends.simulated.tcp import Endpoint

GRAIN = SECOND // 1000  # of an event loop's timers: it wakes up to so much later

Handle = Callable[["SimulatedLink", Message], None]


class SimulatedLink:
    """A connection to a peer that has said HELLO."""

    def __init__(
        self,
        loop: Loop,
        peer: str,
        endpoint: Endpoint,
        outgoing: Flow,
        method: LinkMethod,
        scheduler: Scheduler,
        handle: Handle,
        read_after_ns: int,
    ) -> None:
        self.peer = peer
        self.scheduler = scheduler
        self.endpoint = endpoint
        self.activity = LinkActivity(loop.seconds)
        self.carried = False  # what was queued in the end waits for the next link
        self.closing_orderly = False  # whether this side is closing it in order
        self._loop = loop
        self._outgoing = outgoing
        self._needs: Needs = method.needs
        self._assembler = method.assembler()
        self._handle = handle
        self._read_after_ns = read_after_ns  # what has come
        self._writing = False  # a chunk is given out, and the kernel's buffer is full
        self._chunks_received = 0
        self._woken = False
        self._sending_stopped = False
        self._ended = False
        self._timer = Timer(loop, self._wake)

    def begin(self) -> None:
        """The connection is this link's from now on; to be called before anything is offered."""
        if self._needs.prompt_acks:
            self.endpoint.receiver.put_off_ns = self._read_after_ns
        self.endpoint.on_ack = self._on_answer
        self.endpoint.sender.on_writable = self._on_writable
        self.scheduler.on_link_up(self.endpoint.packet_payload, self._loop.seconds)
        self._work()

    @property
    def idle(self) -> bool:
        """Whether nothing waits here or is under way to the peer."""
        return not self.scheduler.queued.messages and not self.under_way

    @property
    def receiving(self) -> bool:
        """Whether a message is coming in, and not all of it is here."""
        return self.endpoint.receiver.in_a_frame

    @property
    def under_way(self) -> int:
        """Bytes that the kernel has and the peer's kernel has not."""
        return self.endpoint.sender.unacknowledged

    def offer(
        self, data: bytes, priority: int, *, control: bool = False, upkeep: bool = False
    ) -> tuple[Dropped, ...]:
        """Queue an encoded message; what was dropped because of it."""
        now = self._loop.seconds
        dropped = self.scheduler.offer(data, priority, now, control=control, upkeep=upkeep)
        self._work()
        return dropped

    def stop_sending(self) -> None:
        """Begin nothing new: the peer is closing it in order."""
        self._sending_stopped = True
        self._timer.set(None)

    def end(self, *, orderly: bool = False) -> None:
        """The connection is gone; `orderly`: it was closed in order."""
        if self._ended:
            return
        self._ended = True
        self._timer.set(None)
        self.scheduler.on_link_lost(self._loop.seconds, orderly=orderly)

    def on_chunk(self, chunk: Chunk) -> None:
        """All bytes of a chunk have come."""
        if self._needs.udp_acks:
            self.endpoint.answer(self._chunks_received % 256)
            self._chunks_received += 1
        messages = self._assembler.on_chunk(chunk)
        if not messages:  # a piece of a long one
            self.activity.last = self._loop.seconds
        for whole in messages:
            self._handle(self, decode(whole))

    def _work(self) -> None:
        """The scheduler may have a chunk now; it is asked after all that happens at this moment."""
        if not self._woken:
            self._woken = True
            self._loop.at(self._loop.now, self._wake)

    def _wake(self, _: None = None) -> None:
        self._woken = False
        if not self._writing and not self._ended and not self._sending_stopped:
            self._progress()
            self._send()

    def _send(self) -> None:
        """As real nodes do: ask the scheduler, write, report progress; wait if there is nothing to send."""
        scheduler, loop = self.scheduler, self._loop
        while (chunk := scheduler.next_chunk(loop.seconds)) is not None:
            self._write(chunk)
            if not self.endpoint.sender.can_write:
                self._writing = True
                self._timer.set(None)
                return
            self._progress()
        deadline = scheduler.next_deadline()
        self._timer.set(None if deadline is None else loop.now + self._grains(deadline) * GRAIN)

    def _grains(self, deadline: float) -> int:
        return max(1, ceil((deadline * SECOND - self._loop.now) / GRAIN))

    def _write(self, chunk: Chunk) -> None:
        write(self.endpoint, self._outgoing, chunk)

    def _on_writable(self) -> None:
        if self._writing and not self._ended:
            self._writing = False
            self._progress()
            if not self._sending_stopped:
                self._send()

    def _progress(self) -> None:
        sender = self.endpoint.sender
        self.scheduler.on_progress(
            sender.unacknowledged, self._loop.seconds, self.endpoint.round_trip_s
        )

    def _on_answer(self, number: int) -> None:
        if self._ended:
            return
        self.scheduler.on_ack(number, self._loop.seconds)
        self._work()


def write(endpoint: Endpoint, outgoing: Flow, chunk: Chunk) -> None:
    """A chunk as one frame to the kernel."""
    head = frame_head(len(chunk.data), masked=endpoint.client)
    outgoing.ledger.note(endpoint.sender.written, chunk, head)
    endpoint.write(head + len(chunk.data), chunk)
