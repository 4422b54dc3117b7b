"""A link between a scheduler and a connection, with a connection made of lists."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from nodes.delivery.base import Queued
from nodes.delivery.fifo import Fifo, Whole
from nodes.runtime.link import Link
from nodes.wire import Kind, Message, encode

LOST = ConnectionClosedError(None, None)


class FakeTransport:
    """Says that there is no socket, and remembers being aborted."""

    def __init__(self, connection: "FakeConnection") -> None:
        self.connection = connection

    def get_extra_info(self, _: str) -> None:
        return None

    def abort(self) -> None:
        self.connection.lose()


class FakeConnection:
    """What a Link uses of a WebSocket connection: `incoming` is received, what is sent stands in `sent`."""

    arrived_ns = 77

    def __init__(self, *incoming: bytes | str, jams_after: int = 1_000_000) -> None:
        self.sent: list[bytes] = []
        self.closed_with: tuple[int, str] | None = None
        self.transport = FakeTransport(self)
        self._incoming: asyncio.Queue[bytes | str | None] = asyncio.Queue()
        self._lost_as = LOST
        self._jams_after = jams_after
        self._lost = asyncio.Event()
        for data in incoming:
            self._incoming.put_nowait(data)

    async def recv(self) -> bytes | str:
        data = await self._incoming.get()
        if data is None:
            raise self._lost_as
        return data

    async def send(self, data: bytes) -> None:
        if len(self.sent) >= self._jams_after:
            await self._lost.wait()
            raise LOST
        self.sent.append(data)

    async def close(self, code: int, reason: str) -> None:
        self.closed_with = (code, reason)
        self.lose()

    def lose(self, how: ConnectionClosedError = LOST) -> None:
        self._lost_as = how
        self._lost.set()
        self._incoming.put_nowait(None)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(bounded())


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


class Listener:
    """Takes what a link hands over."""

    def __init__(self) -> None:
        self.got: list[tuple[Message, int]] = []
        self.refusals: list[str] = []

    def handle(self, link: Link, message: Message, arrived_ns: int) -> None:
        self.got.append((message, arrived_ns))

    def refuse(self, link: Link, reason: str) -> None:
        self.refusals.append(reason)
        link.end(reason)


def test_messages_go_out_in_order_and_come_in_with_their_time() -> None:
    async def story() -> None:
        message = Message(Kind.PUBLISH, topic="t")
        connection, listener = FakeConnection(encode(message)), Listener()
        link = Link("b1", connection, Fifo({}), Whole({}))
        assert link.offer(b"one", 1) is None
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: connection.sent == [b"one"])
        link.offer(b"two", 5)
        await until(lambda: connection.sent == [b"one", b"two"])
        assert link.scheduler.queued == Queued(0, 0)
        connection.lose()
        assert await running == "no close frame received or sent"
        assert listener.got == [(message, 77)]

    run(story)


def test_what_the_kernel_did_not_take_is_still_queued_when_the_link_is_gone() -> None:
    async def story() -> None:
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

    run(story)


@pytest.mark.parametrize("bad", ["text", b"garbage"])
def test_after_bytes_that_are_no_message_nothing_more_is_taken(bad: bytes | str) -> None:
    async def story() -> None:
        good = encode(Message(Kind.PUBLISH, topic="t"))
        connection, listener = FakeConnection(bad, good, good), Listener()
        link = Link("x1", connection, Fifo({}), Whole({}))
        reason = await link.run(listener.handle, listener.refuse)
        assert listener.refusals == [reason]
        assert connection.closed_with == (1002, reason)
        assert listener.got == []

    run(story)


class HoldsBack(Fifo):
    """Gives its next chunk only when a time has passed and progress was told."""

    def __init__(self, due: float) -> None:
        super().__init__({})
        self.due: float | None = due
        self.progress: list[int] = []

    def next_chunk(self, now: float) -> bytes | None:
        return None if self.due is not None else super().next_chunk(now)

    def on_progress(self, unsent_bytes: int, now: float) -> None:
        super().on_progress(unsent_bytes, now)
        self.progress.append(unsent_bytes)
        if self.due is not None and now >= self.due:
            self.due = None

    def next_deadline(self) -> float | None:
        return self.due


def test_a_method_that_holds_back_hears_of_progress_at_its_deadline() -> None:
    async def story() -> None:
        connection, listener = FakeConnection(), Listener()
        queue = HoldsBack(asyncio.get_running_loop().time() + 0.02)
        link = Link("b1", connection, queue, Whole({}))
        link.offer(b"later", 1)
        running = asyncio.create_task(link.run(listener.handle, listener.refuse))
        await until(lambda: connection.sent == [b"later"])
        assert queue.due is None
        connection.lose()
        await running

    run(story)


class Broken(Fifo):
    """A method with a mistake."""

    def next_chunk(self, now: float) -> bytes | None:
        raise ZeroDivisionError


def test_a_link_whose_method_fails_does_not_look_alive() -> None:
    async def story() -> None:
        connection, listener = FakeConnection(), Listener()
        link = Link("b1", connection, Broken({}), Whole({}))
        with pytest.raises(ZeroDivisionError):
            await link.run(listener.handle, listener.refuse)

    run(story)


TOO_BIG = Close(1009, "frame with 9 bytes exceeds limit of 8 bytes")
GONE = Close(1001, "")


@pytest.mark.parametrize(
    ("closed", "refusals"),
    [
        (ConnectionClosedError(None, TOO_BIG), [TOO_BIG.reason]),
        (ConnectionClosedError(GONE, TOO_BIG, rcvd_then_sent=False), [TOO_BIG.reason]),
        (ConnectionClosedError(TOO_BIG, TOO_BIG, rcvd_then_sent=True), []),  # this side was it
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
    async def story() -> None:
        connection, listener = FakeConnection(), Listener()
        link = Link("x1", connection, Fifo({}), Whole({}))
        connection.lose(closed)
        reason = await link.run(listener.handle, listener.refuse)
        assert len(listener.refusals) == len(refusals)
        for said, expected in zip(listener.refusals, refusals, strict=True):
            assert expected in said
            assert reason == said

    run(story)
