"""A link between a scheduler and a connection, with a connection made of lists."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from nodes.delivery.base import Chunk, Dropped, Needs, Queued
from nodes.delivery.fifo import Fifo, Whole
from nodes.protocol.wire import Kind, Message, encode
from nodes.runtime.link import Link
from nodes.runtime.tcp_info import NO_TRAFFIC, Traffic

LOST = ConnectionClosedError(None, None)


class FakeTransport:
    """Loses the connection when it is aborted."""

    def __init__(self, connection: "FakeConnection") -> None:
        self.connection = connection

    def abort(self) -> None:
        self.connection.lose()


class FakeConnection:
    """The part of a WebSocket connection that a Link uses; it receives `incoming` and records chunks in `sent`."""

    arrived_ns = 77
    prompt_acks = False
    has_seen = NO_TRAFFIC
    unsent = 5

    def __init__(self, *incoming: bytes | str | Chunk, jams_after: int = 1_000_000) -> None:
        self.sent: list[bytes] = []
        self.closed_with: tuple[int, str] | None = None
        self.transport = FakeTransport(self)
        self._incoming: asyncio.Queue[Chunk | str | None] = asyncio.Queue()
        self._lost_as = LOST
        self._jams_after = jams_after
        self._lost = asyncio.Event()
        for data in incoming:
            self._incoming.put_nowait(Chunk(data) if isinstance(data, bytes) else data)

    async def receive_chunk(self) -> Chunk | str:
        chunk = await self._incoming.get()
        if chunk is None:
            raise self._lost_as
        return chunk

    async def send_chunk(self, chunk: Chunk) -> None:
        if len(self.sent) >= self._jams_after:
            await self._lost.wait()
            raise LOST
        self.sent.append(chunk.data)

    def packet_payload(self) -> int:
        return 1444

    def unsent_bytes(self) -> int:
        return self.unsent

    def traffic(self) -> Traffic:
        return self.has_seen

    def shortest_round_trip_s(self) -> float:
        return 0.25

    async def close(self, code: int, reason: str) -> None:
        self.closed_with = (code, reason)
        self.lose()

    def lose(self, how: ConnectionClosedError = LOST) -> None:
        self._lost_as = how
        self._lost.set()
        self._incoming.put_nowait(None)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


class Listener:
    """Records the messages and refusals that a link hands over."""

    def __init__(self) -> None:
        self.got: list[tuple[Message, int]] = []
        self.refusals: list[str] = []

    def handle(self, link: Link, message: Message, arrived_ns: int) -> None:
        self.got.append((message, arrived_ns))

    def refuse(self, link: Link, reason: str) -> None:
        self.refusals.append(reason)
        link.end(reason)


def test_messages_go_out_in_order_and_come_in_with_their_time() -> None:
    async def scenario() -> None:
        message = Message(Kind.PUBLISH, topic="t")
        connection, listener = FakeConnection(encode(message)), Listener()
        link = Link("b1", connection, Fifo({}), Whole({}))
        assert link.offer(b"one", 1) == ()
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: connection.sent == [b"one"])
        link.offer(b"two", 5)
        await until(lambda: connection.sent == [b"one", b"two"])
        assert link.scheduler.queued == Queued(0, 0)
        connection.lose()
        assert await running == "no close frame received or sent"
        assert listener.got == [(message, 77)]

    run(scenario)


def test_messages_that_the_kernel_did_not_accept_stay_queued_when_the_link_is_lost() -> None:
    async def scenario() -> None:
        connection, queue, listener = FakeConnection(jams_after=1), Fifo({}), Listener()
        link = Link("b1", connection, queue, Whole({}))
        for data in (b"one", b"two", b"three"):
            link.offer(data, 1)
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: connection.sent == [b"one"])
        assert queue.queued.messages == 2
        connection.lose()
        await running
        again = FakeConnection()
        running = asyncio.create_task(
            Link("b1", again, queue, Whole({})).run(listener.handle, listener.refuse)
        )
        await until(lambda: again.sent == [b"two", b"three"])
        again.lose()
        await running

    run(scenario)


@pytest.mark.parametrize("bad", ["text", b"garbage"])
def test_a_link_accepts_nothing_more_after_bytes_that_are_no_message(bad: bytes | str) -> None:
    async def scenario() -> None:
        good = encode(Message(Kind.PUBLISH, topic="t"))
        connection, listener = FakeConnection(bad, good, good), Listener()
        link = Link("x1", connection, Fifo({}), Whole({}))
        reason = await link.run(listener.handle, listener.refuse)
        assert listener.refusals == [reason]
        assert connection.closed_with == (1002, reason)
        assert listener.got == []

    run(scenario)


class HoldsBack(Fifo):
    """Gives its next chunk only when a time has passed and progress was reported."""

    def __init__(self, due: float) -> None:
        super().__init__({})
        self.due: float | None = due
        self.progress: list[tuple[int, float | None]] = []

    def next_chunk(self, now: float) -> Chunk | None:
        return None if self.due is not None else super().next_chunk(now)

    def on_progress(self, unsent_bytes: int, now: float, round_trip_s: float | None = None) -> None:
        super().on_progress(unsent_bytes, now)
        self.progress.append((unsent_bytes, round_trip_s))
        if self.due is not None and now >= self.due:
            self.due = None

    def next_deadline(self) -> float | None:
        return self.due


def test_a_method_that_holds_back_is_notified_of_progress_at_its_deadline() -> None:
    async def scenario() -> None:
        connection, listener = FakeConnection(), Listener()
        queue = HoldsBack(asyncio.get_running_loop().time() + 0.02)
        link = Link("b1", connection, queue, Whole({}), Needs(link_model=True))
        link.offer(b"later", 1)
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: connection.sent == [b"later"])
        assert queue.due is None
        assert set(queue.progress) == {(5, 0.25)}
        connection.lose()
        await running

    run(scenario)


def test_the_kernel_is_not_queried_for_a_method_that_needs_no_link_model() -> None:
    async def scenario() -> None:
        connection, listener = FakeConnection(), Listener()
        queue = HoldsBack(asyncio.get_running_loop().time())
        link = Link("b1", connection, queue, Whole({}))
        link.offer(b"at once", 1)
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: connection.sent == [b"at once"])
        assert set(queue.progress) == {(0, None)}
        connection.lose()
        await running

    run(scenario)


class WaitsForAcks(Fifo):
    """Gives the next chunk when the last one was acknowledged."""

    def __init__(self) -> None:
        super().__init__({})
        self.packet_payload = 0
        self.acknowledged: list[int] = [255]

    def on_link_up(self, packet_payload: int, now: float) -> None:
        self.packet_payload = packet_payload

    def next_chunk(self, now: float) -> Chunk | None:
        return super().next_chunk(now) if self.acknowledged else None

    def on_progress(self, unsent_bytes: int, now: float, round_trip_s: float | None = None) -> None:
        if self._in_hand is not None:
            self.acknowledged.clear()
        super().on_progress(unsent_bytes, now)

    def on_ack(self, number: int, now: float) -> None:
        self.acknowledged.append(number)


class FakeAcks:
    """The part of `LinkAcks` that a Link uses."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.received: Callable[[int], None] | None = None
        self.closed = False

    def send(self, number: int) -> None:
        self.sent.append(number)

    def close(self) -> None:
        self.closed = True


def test_an_acknowledgement_releases_the_next_chunk_and_each_chunk_is_acknowledged() -> None:
    async def scenario() -> None:
        message = encode(Message(Kind.PUBLISH, topic="t"))
        connection, listener = FakeConnection(*[message] * 3), Listener()
        queue, udp_acks = WaitsForAcks(), FakeAcks()
        link = Link("b1", connection, queue, Whole({}), Needs(udp_acks=True), udp_acks)
        link.begin()
        assert queue.packet_payload == 1444
        for data in (b"one", b"two"):
            link.offer(data, 1)
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: len(listener.got) == 3)
        assert udp_acks.sent == [0, 1, 2]
        assert connection.sent == [b"one"]
        assert udp_acks.received is not None
        udp_acks.received(0)
        await until(lambda: connection.sent == [b"one", b"two"])
        connection.lose()
        await running
        assert udp_acks.closed

    run(scenario)


class Evicting(Fifo):
    """Evicts all waiting messages for each new one."""

    def offer(
        self,
        data: bytes,
        priority: int,
        now: float,
        *,
        control: bool = False,
        upkeep: bool = False,
    ) -> tuple[Dropped, ...]:
        gone = [Dropped(waiting.data, 1, "made room") for waiting in self._waiting]
        self._waiting.clear()
        super().offer(data, priority, now, control=control, upkeep=upkeep)
        return tuple(gone)


def test_offer_returns_the_message_that_was_evicted_for_another() -> None:
    async def scenario() -> None:
        link = Link("b1", FakeConnection(), Evicting({}), Whole({}))
        assert link.offer(b"one", 1) == ()
        assert link.offer(b"two", 5) == (Dropped(b"one", 1, "made room"),)

    run(scenario)


def test_bits_that_the_method_does_not_use_end_the_link() -> None:
    async def scenario() -> None:
        message = encode(Message(Kind.PUBLISH, topic="t"))
        connection, listener = FakeConnection(Chunk(message, 0b100)), Listener()
        reason = await Link("x1", connection, Fifo({}), Whole({})).run(
            listener.handle, listener.refuse
        )
        assert "reserved bits" in reason
        assert (listener.refusals, listener.got) == ([reason], [])
        labelled = FakeConnection(Chunk(message, 0b100))
        link = Link("x1", labelled, Fifo({}), Whole({}), Needs(bits=True))
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: len(listener.got) == 1)
        labelled.lose()
        await running

    run(scenario)


def test_a_method_that_wants_prompt_acknowledgements_gets_them() -> None:
    async def scenario() -> None:
        for wanted in (False, True):
            connection = FakeConnection()
            needs = Needs(prompt_acks=wanted)
            Link("x1", connection, Fifo({}), Whole({}), needs).begin()
            assert connection.prompt_acks is wanted

    run(scenario)


class Broken(Fifo):
    """A method with a bug."""

    def next_chunk(self, now: float) -> Chunk | None:
        raise ZeroDivisionError


def test_a_link_whose_method_fails_ends_with_the_error() -> None:
    async def scenario() -> None:
        connection, listener = FakeConnection(), Listener()
        link = Link("b1", connection, Broken({}), Whole({}))
        with pytest.raises(ZeroDivisionError):
            await link.run(listener.handle, listener.refuse)

    run(scenario)


TOO_BIG = Close(1009, "frame with 9 bytes exceeds limit of 8 bytes")
GONE = Close(1001, "")


@pytest.mark.parametrize(
    ("closed", "refusals"),
    [
        (ConnectionClosedError(None, TOO_BIG), [TOO_BIG.reason]),
        (ConnectionClosedError(GONE, TOO_BIG, rcvd_then_sent=False), [TOO_BIG.reason]),
        (ConnectionClosedError(TOO_BIG, TOO_BIG, rcvd_then_sent=True), []),  # the peer closed first
        (ConnectionClosedError(None, Close(1002, "")), ["sent 1002"]),
        (ConnectionClosedError(None, Close(1007, "no UTF-8")), ["no UTF-8"]),
        (ConnectionClosedError(None, GONE), []),
        (ConnectionClosedError(GONE, None), []),
        (LOST, []),
    ],
)
def test_a_peer_that_breaks_the_rules_of_websockets_is_refused_and_one_that_goes_is_not(
    closed: ConnectionClosedError, refusals: list[str]
) -> None:
    async def scenario() -> None:
        connection, listener = FakeConnection(), Listener()
        link = Link("x1", connection, Fifo({}), Whole({}))
        connection.lose(closed)
        reason = await link.run(listener.handle, listener.refuse)
        assert len(listener.refusals) == len(refusals)
        for refusal, expected in zip(listener.refusals, refusals, strict=True):
            assert expected in refusal
            assert reason == refusal

    run(scenario)


def test_received_bytes_and_acknowledged_bytes_of_a_long_message_are_signs_of_life() -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        link = Link("b1", connection, Fifo({}), Whole({}))  # type: ignore[arg-type]
        assert link.active_ago_s() is None
        connection.has_seen = Traffic(10, 0.5, 0, 9.0)
        assert link.active_ago_s() == 0.5
        assert link.active_ago_s() is None, "this activity is known already"
        connection.has_seen = Traffic(10, 7.0, 99, 0.25)
        assert link.active_ago_s() == 0.25
        connection.unsent = 0
        connection.has_seen = Traffic(10, 7.0, 199, 0.25)
        assert link.active_ago_s() is None, (
            "nothing is unsent; from now on the peer must send something itself"
        )

    run(scenario)
