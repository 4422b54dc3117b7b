"""Acknowledgements by UDP: a link accepts those of its peer, and ignores all others."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from nodes.runtime.udp_acks import AckSocket, Address

LOCAL = ("127.0.0.1", 0)


def free_address() -> Address:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(LOCAL)
        address: Address = probe.getsockname()
        return address


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 30))


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def test_each_side_hears_the_other_and_numbers_begin_again_after_255() -> None:
    async def story() -> None:
        broker_at, guest_at = free_address(), free_address()
        broker, guest = AckSocket(broker_at), AckSocket(guest_at)
        here, there = broker.with_peer(guest_at), guest.with_peer(broker_at, alone=True)
        at_broker: list[int] = []
        at_guest: list[int] = []
        here.received, there.received = at_broker.append, at_guest.append
        for number in range(250, 260):
            there.send(number)
        here.send(7)
        await until(lambda: len(at_broker) == 10 and at_guest)
        assert at_broker == [*range(250, 256), 0, 1, 2, 3]
        assert at_guest == [7]
        there.close()
        AckSocket(guest_at).close()  # the address is free again
        here.close()
        broker.close()

    run(story)


def test_strangers_and_longer_answers_are_not_heard() -> None:
    async def story() -> None:
        broker_at = free_address()
        broker = AckSocket(broker_at)
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
        ):
            peer.bind(LOCAL)
            received: list[int] = []
            broker.with_peer(peer.getsockname()).received = received.append
            stranger.sendto(b"\1", broker_at)
            for answer in (b"", b"\2\2", bytes(1000), b"\3"):
                peer.sendto(answer, broker_at)
            await until(lambda: received)
        assert received == [3]
        broker.close()

    run(story)


def test_a_link_that_is_gone_hears_nothing_and_does_not_take_its_successors_place() -> None:
    async def story() -> None:
        broker_at, guest_at = free_address(), free_address()
        broker, guest = AckSocket(broker_at), AckSocket(guest_at)
        sender = guest.with_peer(broker_at)
        older, newer = broker.with_peer(guest_at), broker.with_peer(guest_at)
        at_older: list[int] = []
        at_newer: list[int] = []
        older.received, newer.received = at_older.append, at_newer.append
        older.close()
        sender.send(1)
        await until(lambda: at_newer)
        assert (at_older, at_newer) == ([], [1])
        broker.close()
        guest.close()
        sender.send(2)  # too late, and no harm

    run(story)


def test_an_address_that_is_taken_is_an_error() -> None:
    async def story() -> None:
        at = free_address()
        first = AckSocket(at)
        with pytest.raises(OSError, match="in use"):
            AckSocket(at)
        first.close()

    run(story)
