"""A broker is attacked by a node that claims, or can prove, to be a broker of the same lab."""

import itertools
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection

from loopback_lab import PATIENCE_S, Lab, card
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
from under_attack import (
    MIB,
    SLOWEST_S,
    Attack,
    frame,
    guest,
    line_to,
    peak_bytes,
    pour,
    withstand,
)

HOSTILE = "b9"  # a broker of the lab that does not run: attackers claim to be this one
# Without an attack a broker of sg-tbps has 27 MiB.
BOUND_WITHOUT_SECRET = 48 * MIB
BOUND_WITH_SECRET = 96 * MIB
LOWEST, HIGHEST = b"\0", b"\xff" * 200
NOBODY = Contact(HIGHEST, 2**32 - 1, 2**64 - 1)
AGAINST = Contact(b"alert", 9, 0)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def in_the_graph() -> dict[str, Any]:
    """The configuration by which the broker knows another one, which is absent."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        absent = {"host": "127.0.0.1", "port": probe.getsockname()[1]}
    return {
        "overlay": {"method": "sg-tbps", "parameters": {}},
        "others": [{"name": HOSTILE, "number": 9, **absent}],
    }


def spoken(message: GraphMessage) -> bytes:
    """A message of the graph as a frame."""
    return frame(encode_message(Message(Kind.OVERLAY, origin=9, payload=encode(message))))


@contextmanager
def hostile_broker(lab: Lab) -> Iterator[ClientConnection]:
    with guest(lab, HOSTILE) as line:
        yield line


# Without the secret


def words_of_the_graph_instead_of_hello(lab: Lab, over: threading.Event) -> None:
    word = spoken(Locate(b"alert", 9, 1)) * 100
    while not over.is_set():
        with suppress(WebSocketException, OSError), line_to(lab) as line:
            pour(line.socket, word, over)


def words_of_the_graph_instead_of_the_proof(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), line_to(lab) as line:
            line.send(Caller(card(HOSTILE), "b1", new_nonce()).first())
            line.recv(timeout=PATIENCE_S)
            line.send(encode_message(Message(Kind.OVERLAY, payload=bytes(80))))
            with suppress(ConnectionClosed):
                line.recv(timeout=PATIENCE_S)


# With the secret


def garbage_about_the_graph(lab: Lab, over: threading.Event) -> None:
    chance = random.Random(1)
    while not over.is_set():
        with suppress(WebSocketException, OSError), hostile_broker(lab) as line:
            for number in itertools.islice(itertools.cycle(FORMS), 100):
                payload = bytes([number]) + chance.randbytes(chance.randrange(200))
                line.send(encode_message(Message(Kind.OVERLAY, payload=payload)))


def impossible_keys_and_numbers(lab: Lab, over: threading.Event) -> None:
    claims: list[GraphMessage] = [
        Claim(at, peer, 2**64 - 1, right, number, 2**32 - 1)
        for at in (LOWEST, b"alert", HIGHEST)
        for peer in (NOBODY, AGAINST)
        for right in (NOBODY, AGAINST)
        for number in (0, 2**64 - 1)
    ]
    gaps: list[GraphMessage] = [
        Gap(ticket, NOBODY, NOBODY, 2**64 - 1) for ticket in (0, 1, 2**32 - 1)
    ]
    words = b"".join(spoken(message) for message in (*claims, *gaps))
    while not over.is_set():
        with suppress(WebSocketException, OSError), hostile_broker(lab) as line:
            pour(line.socket, words, over)


def multicasts_to_everybody(lab: Lab, over: threading.Event) -> None:
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
        with suppress(WebSocketException, OSError), hostile_broker(lab) as line:
            line.socket.sendall(b"".join(multicast(begin + number) for number in range(1000)))


def a_flood_of_questions(lab: Lab, over: threading.Event) -> None:
    words = b"".join(
        spoken(Locate(key, asker, ticket))
        for key in (LOWEST, b"alert", HIGHEST)
        for asker in (1, 9, 2**32 - 1)
        for ticket in range(50)
    )
    while not over.is_set():
        with suppress(WebSocketException, OSError), hostile_broker(lab) as line:
            pour(line.socket, words, over)


WITHOUT_SECRET: list[Attack] = [
    words_of_the_graph_instead_of_hello,
    words_of_the_graph_instead_of_the_proof,
]
WITH_SECRET: list[Attack] = [
    garbage_about_the_graph,
    impossible_keys_and_numbers,
    multicasts_to_everybody,
    a_flood_of_questions,
]


@pytest.mark.parametrize("attack", WITHOUT_SECRET, ids=lambda attack: attack.__name__)
def test_who_only_says_that_it_is_a_broker_cannot_disturb(lab: Lab, attack: Attack) -> None:
    broker, slowest = withstand(lab, attack, **in_the_graph())
    assert peak_bytes(broker) < BOUND_WITHOUT_SECRET
    assert slowest < SLOWEST_S
    assert HOSTILE not in broker.ask("status")["peers"]
    assert broker.log.stat().st_size < MIB


@pytest.mark.parametrize("attack", WITH_SECRET, ids=lambda attack: attack.__name__)
def test_a_broker_that_talks_nonsense_neither_stops_nor_fills_another(
    lab: Lab, attack: Attack
) -> None:
    broker, slowest = withstand(lab, attack, **in_the_graph())
    assert peak_bytes(broker) < BOUND_WITH_SECRET
    assert slowest < SLOWEST_S
