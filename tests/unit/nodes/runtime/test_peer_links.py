"""Links between brokers: dialled on demand, one for each two, closed in order when there are too many."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.overlay.base import Drop
from nodes.protocol.wire import Kind
from nodes.runtime import dialing, link_eviction, peer_links
from support.nodes.loopback_brokers import LoopbackBroker, brokers, configs, install, until
from support.ports import ReservedPorts


@pytest.fixture(autouse=True)
def _recording(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch.setitem)


@pytest.fixture
def ports() -> Iterator[ReservedPorts]:
    with ReservedPorts() as reserved:
        yield reserved


def numbers(record: list[tuple[object, ...]]) -> list[object]:
    return [what[2] for what in record]


def test_a_broker_calls_another_when_there_is_something_to_send(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with brokers(tmp_path, 2) as (one, two):
            for number in range(1, 4):
                one.send("b2", number)
            await until(lambda: len(two.observed("message")) == 3)
            assert two.core.observed == [("up", "b1"), *(("message", "b1", n) for n in (1, 2, 3))]
            two.send("b1", 4)
            await until(lambda: one.observed("message"))
            assert one.core.observed == [("up", "b2"), ("message", "b2", 4)]
            assert (list(one.broker.links), list(two.broker.links)) == (["b2"], ["b1"])

    asyncio.run(scenario())


def test_a_broker_that_does_not_listen_is_unreachable_and_its_queued_messages_are_dropped(
    tmp_path: Path, ports: ReservedPorts
) -> None:
    async def scenario() -> None:
        first, absent = configs(tmp_path, 2, ports)
        one = await LoopbackBroker(first).go()
        one.send("b2", 1)
        await until(lambda: one.observed("unreachable", "b2"))
        assert one.broker.queued == 0
        (record,) = one.logged("unreachable")
        assert record["peer"] == "b2"
        assert "refused" in record["reason"] or "Connect call failed" in record["reason"]
        two = await LoopbackBroker(absent).go()
        one.send("b2", 2)
        await until(lambda: numbers(two.observed("message")) == [2])
        for node in (one, two):
            await node.stop()

    asyncio.run(scenario())


def test_a_broker_that_accepts_connections_and_sends_nothing_is_unreachable_too(
    tmp_path: Path, ports: ReservedPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialing, "ANSWER_WITHIN_S", 0.2)

    async def scenario() -> None:
        first, silent = configs(tmp_path, 2, ports)
        assert silent.listen is not None
        with socket.create_server((silent.listen.host, silent.listen.port)):
            one = await LoopbackBroker(first).go()
            one.send("b2", 1)
            await until(lambda: one.observed("unreachable", "b2"))
            await one.stop()

    asyncio.run(scenario())


def test_a_broker_that_refuses_connections_is_not_dialled_a_hundred_times_a_second(
    tmp_path: Path, ports: ReservedPorts
) -> None:
    async def scenario() -> None:
        first, _ = configs(tmp_path, 2, ports)
        one = await LoopbackBroker(first).go()
        began = asyncio.get_running_loop().time()
        for _ in range(200):  # a second; on a busy machine it takes longer
            one.send("b2")
            await asyncio.sleep(0.005)
        more_s = asyncio.get_running_loop().time() - began - 1.0
        assert 3 <= len(one.observed("unreachable")) <= 8 + more_s
        await one.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("first", ["b1", "b2"])
@pytest.mark.parametrize("steps", range(0, 24, 2))
def test_two_brokers_that_dial_each_other_at_once_have_one_link_and_lose_nothing(
    tmp_path: Path, steps: int, first: str
) -> None:
    async def scenario() -> None:
        async with brokers(tmp_path, 2) as both:
            one, two = both if first == "b1" else reversed(both)
            here, there = one.config.name, two.config.name
            one.send(there, 1)
            for _ in range(steps):  # how far the first one has dialled when the other begins
                await asyncio.sleep(0)
            two.send(here, 2)
            await until(lambda: one.observed("message") and two.observed("message"))
            one.send(there, 3)
            two.send(here, 4)
            await until(lambda: len(one.observed("message")) + len(two.observed("message")) == 4)
            assert one.core.observed == [
                ("up", there),
                ("message", there, 2),
                ("message", there, 4),
            ]
            assert two.core.observed == [("up", here), ("message", here, 1), ("message", here, 3)]

    asyncio.run(scenario())


def test_too_many_links_are_closed_in_order_the_one_unused_for_longest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_eviction, "UNUSED_S", 0.05)
    monkeypatch.setattr(peer_links, "RECHECK_S", 0.02)

    async def scenario() -> None:
        async with brokers(tmp_path, 4, max_links=2) as (one, two, three, four):
            for number, other in ((1, two), (2, three), (3, four)):
                one.send(other.config.name, number)
                await until(lambda other=other: other.observed("message"))
            await until(lambda: one.observed("down"))
            await until(lambda: two.observed("down"))
            assert one.observed("down") == [("down", "b2", True)]
            assert two.observed("down") == [("down", "b1", True)]
            assert sorted(one.broker.links) == ["b3", "b4"]
            one.send("b2", 5)
            await until(lambda: numbers(two.observed("message")) == [1, 5])
            await until(lambda: len(one.broker.links) == 2)
            assert one.observed("down") == [("down", "b2", True), ("down", "b3", True)]
            assert all(not three.observed("down", "b1", False) for three in (two, three, four))

    asyncio.run(scenario())


def test_a_heartbeat_does_not_save_a_link_from_eviction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_eviction, "UNUSED_S", 0.05)
    monkeypatch.setattr(peer_links, "RECHECK_S", 0.02)

    async def scenario() -> None:
        async with brokers(tmp_path, 4, max_links=2) as (one, two, three, _):
            for other in (two, three):
                one.send(other.config.name, 1)
                await until(lambda other=other: other.observed("message"))
            one.send("b2", kind=Kind.HEARTBEAT)
            await until(lambda: len(two.observed("message")) == 2 and one.broker.links["b2"].idle)
            one.send("b4", 1)
            await until(lambda: one.observed("down"))
            assert one.observed("down") == [("down", "b2", True)]

    asyncio.run(scenario())


def test_a_message_that_arrives_during_an_orderly_close_is_answered_over_a_new_link(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with brokers(tmp_path, 2) as (one, two):
            one.core.answers = True
            one.send("b2", 1)
            await until(lambda: two.observed("message"))
            two.send("b1", 2, size=3_000_000)
            for _ in range(3):  # the kernel has its first bytes, and no node has read them
                await asyncio.sleep(0)
            one.broker.links["b2"].close_orderly()
            await until(lambda: 2 in numbers(two.observed("message")))
            assert numbers(one.observed("message")) == [2]
            assert one.observed("down") == [("down", "b2", True)]

    asyncio.run(scenario())


@pytest.mark.parametrize("first", ["b1", "b2"])
def test_messages_queued_when_the_peer_closes_in_order_go_over_the_next_link(
    tmp_path: Path, first: str
) -> None:
    async def scenario() -> None:
        async with brokers(tmp_path, 2) as (one, two):
            caller, called = (one, two) if first == "b1" else (two, one)
            caller.send(called.config.name, 1)  # either may have made the connection
            await until(lambda: called.observed("message"))
            two.send("b1", 2, size=5_000_000)
            for number in range(3, 20):
                two.send("b1", number, kind=Kind.ACK if number % 2 else Kind.PUBLISH)
            for _ in range(3):  # the kernel has the first bytes, and no node has read them
                await asyncio.sleep(0)
            assert two.broker.links["b1"].scheduler.queued.messages > 10
            one.broker.links["b2"].close_orderly()
            two.send("b1", 20, kind=Kind.OVERLAY)
            expected = [*range(2, 21)] if first == "b1" else [1, *range(2, 21)]
            await until(lambda: len(one.observed("message")) >= len(expected))
            assert numbers(one.observed("message")) == expected
            assert one.observed("down") == [("down", "b2", True)]
            assert two.observed("down") == [("down", "b1", True)]
            assert [record["queued"] for record in two.logged("disconnect")] == [0]

    asyncio.run(scenario())


def test_a_link_that_is_receiving_a_long_message_is_not_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_eviction, "UNUSED_S", 0.0)

    async def scenario() -> None:
        async with brokers(tmp_path, 2) as (one, two):
            two.send("b1", 1)
            await until(lambda: one.observed("message"))
            link = one.broker.links["b2"]
            assert link_eviction.links_to_evict([link], 0, one.broker.now() + 1) == ([link], 0)
            two.send("b1", 2, size=5_000_000)
            await until(lambda: link.receiving, every_s=0)  # a turn of the loop reads a part of it
            assert link_eviction.links_to_evict([link], 0, one.broker.now() + 1) == ([], 1)
            await until(lambda: len(one.observed("message")) == 2)
            assert not link.receiving

    asyncio.run(scenario())


def test_a_link_that_was_dropped_is_gone_at_once_and_the_next_message_calls_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with brokers(tmp_path, 2) as (one, two):
            one.send("b2", 1)
            await until(lambda: two.observed("message"))
            one.broker.perform([Drop("b2", "silent")])
            assert one.broker.links == {}
            one.send("b2", 2)
            await until(lambda: numbers(two.observed("message")) == [1, 2])
            assert one.observed("down") == []  # the core dropped it itself
            assert two.observed("down") == [("down", "b1", False)]

    asyncio.run(scenario())


def test_a_broker_that_was_started_again_replaces_its_old_link(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with brokers(tmp_path, 2) as (one, two):
            one.send("b2", 1)
            await until(lambda: two.observed("message"))
            again = LoopbackBroker(
                one.config
            )  # the old process has vanished without closing its link
            again.send("b2", 2)
            await until(lambda: numbers(two.observed("message")) == [1, 2])
            assert two.core.observed[2:] == [
                ("down", "b1", False),
                ("up", "b1"),
                ("message", "b1", 2),
            ]
            await again.broker.close()

    asyncio.run(scenario())


def test_a_broker_leaves_when_its_core_has_left_and_goes_on_serving_brokers_until_then(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with brokers(tmp_path, 2) as (one, two):
            one.core.left = False
            one.send("b2", 1)
            await until(lambda: two.observed("message"))
            one.broker.terminate()
            await until(lambda: one.observed("leave"))
            one.send("b2", 2)
            await until(lambda: numbers(two.observed("message")) == [1, 2])
            assert two.observed("down") == []
            one.core.left = True
            assert one.life is not None
            await one.life
            await until(lambda: two.observed("down"))

    asyncio.run(scenario())
