"""A node attacks a broker: it claims, or can prove, that it is a broker of the same lab."""

import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection

from nodes.protocol.skipgraph_codec import FORMS, encode
from nodes.protocol.skipgraph_messages import (
    Claim,
    Contact,
    Gap,
    GraphMessage,
    Locate,
    Multicast,
    Way,
)
from nodes.protocol.wire import CUSTODY, Kind, Message
from nodes.protocol.wire import encode as encode_message
from nodes.runtime.handshake import Caller, new_nonce
from support.nodes.attacked_broker import (
    MIB,
    SLOWEST_S,
    Attack,
    connected_client,
    connection_to,
    frame,
    peak_bytes,
    pour,
    withstand,
)
from support.nodes.loopback_nodes import PATIENCE_S, Lab, card

HOSTILE = "b9"  # a broker of the lab that does not run: attackers claim to be this one
# Without an attack a broker of sg-tbps has 27 MiB.
BOUND_WITHOUT_SECRET = 48 * MIB
BOUND_WITH_SECRET = 96 * MIB
LOWEST, HIGHEST = b"\0", b"\xff" * 200
UNKNOWN = Contact(HIGHEST, 2**32 - 1, 2**64 - 1)
ATTACKER = Contact(b"alert", 9, 0)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def in_the_graph(lab: Lab) -> dict[str, Any]:
    """The configuration of a broker that knows one other broker, which does not run."""
    absent = {"host": "127.0.0.1", "port": lab.free_port()}
    return {
        "overlay": {"method": "sg-tbps", "parameters": {}},
        "others": [{"name": HOSTILE, "number": 9, **absent}],
    }


def overlay_frame(message: GraphMessage) -> bytes:
    """A WebSocket frame with this overlay message."""
    return frame(encode_message(Message(Kind.OVERLAY, origin=9, payload=encode(message))))


@contextmanager
def hostile_broker(lab: Lab) -> Iterator[ClientConnection]:
    with connected_client(lab, HOSTILE) as connection:
        yield connection


# Without the secret


def overlay_messages_instead_of_hello(lab: Lab, over: threading.Event) -> None:
    frames = overlay_frame(Locate(b"alert", 9, 1)) * 100
    while not over.is_set():
        with suppress(WebSocketException, OSError), connection_to(lab) as connection:
            pour(connection.socket, frames, over)


def overlay_messages_instead_of_the_proof(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), connection_to(lab) as connection:
            connection.send(Caller(card(HOSTILE), "b1", new_nonce()).first())
            connection.recv(timeout=PATIENCE_S)
            connection.send(encode_message(Message(Kind.OVERLAY, payload=bytes(80))))
            with suppress(ConnectionClosed):
                connection.recv(timeout=PATIENCE_S)


# With the secret


def overlay_messages_with_random_payloads(lab: Lab, over: threading.Event) -> None:
    generator = random.Random(1)
    while not over.is_set():
        with suppress(WebSocketException, OSError), hostile_broker(lab) as connection:
            for number in itertools.islice(itertools.cycle(FORMS), 100):
                payload = bytes([number]) + generator.randbytes(generator.randrange(200))
                connection.send(encode_message(Message(Kind.OVERLAY, payload=payload)))


def impossible_keys_and_numbers(lab: Lab, over: threading.Event) -> None:
    claims: list[GraphMessage] = [
        Claim(at, peer, 2**64 - 1, right, number, 2**32 - 1)
        for at in (LOWEST, b"alert", HIGHEST)
        for peer in (UNKNOWN, ATTACKER)
        for right in (UNKNOWN, ATTACKER)
        for number in (0, 2**64 - 1)
    ]
    gaps: list[GraphMessage] = [
        Gap(ticket, UNKNOWN, UNKNOWN, 2**64 - 1) for ticket in (0, 1, 2**32 - 1)
    ]
    frames = b"".join(overlay_frame(message) for message in (*claims, *gaps))
    while not over.is_set():
        with suppress(WebSocketException, OSError), hostile_broker(lab) as connection:
            pour(connection.socket, frames, over)


def multicasts_to_all_brokers(lab: Lab, over: threading.Event) -> None:
    def multicast(number: int) -> bytes:
        low, high = ((LOWEST, HIGHEST), (HIGHEST, LOWEST), (b"", b""))[number % 3]
        way = (Way.FLOOD, Way.SPLIT)[number % 2]
        routing = encode(Multicast(b"alert", HIGHEST, 9, way, LOWEST, low, high, number, b""))
        noise = Message(
            Kind.PUBLISH, 5, 255, CUSTODY, 9, 9 << 32 | number, 1, "noise", bytes(100), routing
        )
        return frame(encode_message(noise))

    for begin in itertools.count(1, 1000):
        if over.is_set():
            return
        with suppress(WebSocketException, OSError), hostile_broker(lab) as connection:
            connection.socket.sendall(b"".join(multicast(begin + number) for number in range(1000)))


def a_flood_of_locate_messages(lab: Lab, over: threading.Event) -> None:
    frames = b"".join(
        overlay_frame(Locate(key, asker, ticket))
        for key in (LOWEST, b"alert", HIGHEST)
        for asker in (1, 9, 2**32 - 1)
        for ticket in range(50)
    )
    while not over.is_set():
        with suppress(WebSocketException, OSError), hostile_broker(lab) as connection:
            pour(connection.socket, frames, over)


WITHOUT_SECRET: list[Attack] = [
    overlay_messages_instead_of_hello,
    overlay_messages_instead_of_the_proof,
]
WITH_SECRET: list[Attack] = [
    overlay_messages_with_random_payloads,
    impossible_keys_and_numbers,
    multicasts_to_all_brokers,
    a_flood_of_locate_messages,
]


@pytest.mark.parametrize("attack", WITHOUT_SECRET, ids=lambda attack: attack.__name__)
def test_a_peer_that_only_claims_to_be_a_broker_cannot_disturb_the_lab(
    lab: Lab, attack: Attack
) -> None:
    broker, slowest = withstand(lab, attack, **in_the_graph(lab))
    assert peak_bytes(broker) < BOUND_WITHOUT_SECRET
    assert slowest < SLOWEST_S
    assert HOSTILE not in broker.ask("status")["peers"]
    assert broker.log.stat().st_size < MIB


@pytest.mark.parametrize("attack", WITH_SECRET, ids=lambda attack: attack.__name__)
def test_a_broker_that_sends_nonsense_neither_stops_another_nor_fills_its_memory(
    lab: Lab, attack: Attack
) -> None:
    broker, slowest = withstand(lab, attack, **in_the_graph(lab))
    assert peak_bytes(broker) < BOUND_WITH_SECRET
    assert slowest < SLOWEST_S
