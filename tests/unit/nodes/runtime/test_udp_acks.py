"""Acknowledgements by UDP: a link accepts those of its peer, and ignores all others."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from nodes.runtime.udp_acks import AckSocket, Address

# A loopback address of this process alone: no other process takes its ports.
LOCAL = (f"127.{64 + (os.getpid() >> 16)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}", 0)


def free_address() -> Address:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(LOCAL)
        address: Address = probe.getsockname()
        return address


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def test_each_side_receives_the_others_acks_and_numbers_restart_after_255() -> None:
    async def scenario() -> None:
        broker_at, client_at = free_address(), free_address()
        broker, client = AckSocket(broker_at), AckSocket(client_at)
        here, there = broker.with_peer(client_at), client.with_peer(broker_at, alone=True)
        at_broker: list[int] = []
        at_client: list[int] = []
        here.received, there.received = at_broker.append, at_client.append
        for number in range(250, 260):
            there.send(number)
        here.send(7)
        await until(lambda: len(at_broker) == 10 and at_client)
        assert at_broker == [*range(250, 256), 0, 1, 2, 3]
        assert at_client == [7]
        there.close()
        AckSocket(client_at).close()  # the address is free again
        here.close()
        broker.close()

    run(scenario)


def test_acks_of_unknown_peers_and_acks_of_another_length_are_ignored() -> None:
    async def scenario() -> None:
        broker_at = free_address()
        broker = AckSocket(broker_at)
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unknown,
        ):
            peer.bind(LOCAL)
            received: list[int] = []
            broker.with_peer(peer.getsockname()).received = received.append
            unknown.sendto(b"\1", broker_at)
            for answer in (b"", b"\2\2", bytes(1000), b"\3"):
                peer.sendto(answer, broker_at)
            await until(lambda: received)
        assert received == [3]
        broker.close()

    run(scenario)


def test_a_closed_link_receives_no_acks_and_does_not_replace_its_successor() -> None:
    async def scenario() -> None:
        broker_at, client_at = free_address(), free_address()
        broker, client = AckSocket(broker_at), AckSocket(client_at)
        sender = client.with_peer(broker_at)
        older, newer = broker.with_peer(client_at), broker.with_peer(client_at)
        at_older: list[int] = []
        at_newer: list[int] = []
        older.received, newer.received = at_older.append, at_newer.append
        older.close()
        sender.send(1)
        await until(lambda: at_newer)
        assert (at_older, at_newer) == ([], [1])
        broker.close()
        client.close()
        sender.send(2)  # too late, and no harm

    run(scenario)


def test_an_address_in_use_is_an_error() -> None:
    async def scenario() -> None:
        at = free_address()
        first = AckSocket(at)
        with pytest.raises(OSError, match="in use"):
            AckSocket(at)
        first.close()

    run(scenario)
