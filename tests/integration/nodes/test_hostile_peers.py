"""A broker under attack goes on serving: its clients' messages arrive, and its memory stays below a bound.

Each attack runs against a real broker on the loopback while an honest sensor publishes to an honest subscriber.
"""

import itertools
import os
import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.protocol import Event
from websockets.uri import parse_uri

from nodes.protocol.wire import HEADER, MAX_MESSAGE_BYTES, VERSION, Kind, Message, encode
from nodes.runtime.broker import MAX_PENDING
from nodes.runtime.handshake import Caller, new_nonce
from support.nodes.attacked_broker import (
    MIB,
    SLOWEST_S,
    Attack,
    connected_client,
    connection_to,
    frame,
    knock,
    peak_bytes,
    pour,
    withstand,
)
from support.nodes.loopback_nodes import PATIENCE_S, Lab, card

# An idle broker has 26 MiB. Attackers without the secret can make it hold little. An attacker with the secret can fill
# one queue (8 MB), one incoming message and one outgoing message.
BOUND_WITHOUT_SECRET = 48 * MIB
BOUND_WITH_SECRET = 96 * MIB
MANY_CONNECTIONS = 2 * MAX_PENDING


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


@contextmanager
def client_that_stops_reading(lab: Lab, name: str = "x1") -> Iterator[socket.socket]:
    """A client that reads nothing more after HELLO."""
    protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{lab.port}/"))
    with knock(lab) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        protocol.send_request(protocol.connect())
        connection.sendall(b"".join(protocol.data_to_send()))
        caller = Caller(card(name), "b1", new_nonce())
        connection.sendall(frame(caller.first()))
        events: list[Event] = []
        while len(events) < 2:  # the HTTP response and HELLO
            protocol.receive_data(connection.recv(4096))
            events += protocol.events_received()
        assert isinstance(events[1], Frame)
        connection.sendall(frame(caller.answer(bytes(events[1].data))))
        yield connection


def announcement(size: int) -> bytes:
    """The header of a binary frame of this length (RFC 6455, 5.2)."""
    return struct.pack("!BBQ4s", 0x82, 0xFF, size, b"mask")


# Without the secret


def garbage(lab: Lab, over: threading.Event) -> None:
    generator = random.Random(1)
    while not over.is_set():
        with knock(lab) as connection, suppress(OSError):
            connection.sendall(generator.randbytes(generator.randrange(1, 20_000)))
            connection.settimeout(0.05)
            connection.recv(1)


def many_silent_connections(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as stack:
        for _ in range(MANY_CONNECTIONS):
            stack.enter_context(knock(lab))
        over.wait(PATIENCE_S)


def connections_as_fast_as_they_can_be_made(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        knock(lab).close()


def http_byte_by_byte(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as stack:
        connections = [stack.enter_context(knock(lab)) for _ in range(100)]
        for byte in itertools.cycle(b"GET / HTTP/1.1\r\nx: y"):
            for connection in connections:
                with suppress(OSError):
                    connection.send(bytes([byte]))
            if over.wait(0.05):
                return


def clients_that_never_send_hello(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            with suppress(WebSocketException, OSError):
                stack.enter_context(connection_to(lab))
            if over.is_set():
                return
        over.wait(PATIENCE_S)


def a_gigabyte_announced(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        for size in (1 << 30, (1 << 63) - 1, MAX_MESSAGE_BYTES):
            with suppress(WebSocketException, OSError), connection_to(lab) as connection:
                connection.socket.sendall(announcement(size) + bytes(100_000))
                with suppress(ConnectionClosed):
                    connection.recv(timeout=PATIENCE_S)
                assert connection.close_code == 1009


def thousands_of_tiny_frames_before_hello(lab: Lab, over: threading.Event) -> None:
    tiny = frame(b"") * 50_000
    while not over.is_set():
        with suppress(WebSocketException, OSError), connection_to(lab) as connection:
            pour(connection.socket, tiny, over)


def hello_and_then_a_flood_instead_of_the_proof(lab: Lab, over: threading.Event) -> None:
    ping = frame(bytes(105), Opcode.PING)  # as long as a proof, and not a message
    while not over.is_set():
        with suppress(WebSocketException, OSError), connection_to(lab) as connection:
            connection.send(Caller(card("x1"), "b1", new_nonce()).first())
            connection.recv(timeout=PATIENCE_S)
            pour(connection.socket, ping * 1000, over)


def guesses_at_the_secret(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), connection_to(lab) as connection:
            hello = Caller(card("s1"), "b1", new_nonce()).first()  # in the name of an honest node
            connection.send(hello)
            connection.recv(timeout=PATIENCE_S)
            connection.send(hello[:28] + b'{"proof": "%s"}' % os.urandom(32).hex().encode())
            with suppress(ConnectionClosed):
                connection.recv(timeout=PATIENCE_S)
            assert connection.close_reason == "s1 does not know the lab's secret"


# With the secret


def a_flood_of_publications(lab: Lab, over: threading.Event) -> None:
    with connected_client(lab) as connection:
        pour(connection.socket, frame(encode(Message(Kind.PUBLISH, topic="noise"))) * 500, over)


def a_flood_of_large_publications(lab: Lab, over: threading.Event) -> None:
    large = encode(Message(Kind.PUBLISH, topic="noise", payload=bytes(1_000_000)))
    with (
        connected_client(lab, "x1") as connection,
        client_that_stops_reading(lab, "x2") as subscriber,
    ):
        subscriber.sendall(frame(encode(Message(Kind.SUBSCRIBE, topic="noise"))))
        pour(connection.socket, frame(large), over)


def a_flood_of_subscriptions(lab: Lab, over: threading.Event) -> None:
    for turn in itertools.count():
        with suppress(WebSocketException, OSError), connected_client(lab, f"x{turn}") as connection:
            for number in itertools.count():
                subscription = Message(Kind.SUBSCRIBE, topic=f"{turn}/{number}" + "t" * 200)
                connection.send(encode(subscription))
                if over.is_set():
                    return


def pings_whose_pongs_are_never_read(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with client_that_stops_reading(lab) as connection:
            pour(connection, frame(bytes(125), Opcode.PING) * 1000, over)


def endless_fragments(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), connected_client(lab) as connection:
            connection.socket.sendall(frame(b"", fin=False))
            pour(connection.socket, frame(b"", Opcode.CONT, fin=False) * 10_000, over)


def impossible_headers(lab: Lab, over: threading.Event) -> None:
    generator = random.Random(2)
    edges = {1: (0, 1, 5, 6, 255), 2: (0, 1, 255, 256, 65535), 4: (0, 2**32 - 1), 8: (0, 2**64 - 1)}
    while not over.is_set():
        with suppress(WebSocketException, OSError), connected_client(lab) as connection:
            for _ in range(20):
                values = [generator.choice(edges[size]) for size in (1, 1, 1, 2, 2, 4, 8, 8)]
                data = HEADER.pack(VERSION, *values) + generator.randbytes(generator.randrange(300))
                connection.send(data)


def a_large_message_that_never_ends(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as stack:
        for number in range(3):
            connection = stack.enter_context(connected_client(lab, f"x{number}"))
            connection.socket.sendall(
                announcement(MAX_MESSAGE_BYTES) + bytes(MAX_MESSAGE_BYTES - 1)
            )
        over.wait(PATIENCE_S)


def the_same_name_again_and_again(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), connected_client(lab):
            pass


WITHOUT_SECRET: list[Attack] = [
    garbage,
    many_silent_connections,
    connections_as_fast_as_they_can_be_made,
    http_byte_by_byte,
    clients_that_never_send_hello,
    a_gigabyte_announced,
    thousands_of_tiny_frames_before_hello,
    hello_and_then_a_flood_instead_of_the_proof,
    guesses_at_the_secret,
]
WITH_SECRET: list[Attack] = [
    a_flood_of_publications,
    a_flood_of_large_publications,
    a_flood_of_subscriptions,
    pings_whose_pongs_are_never_read,
    endless_fragments,
    impossible_headers,
    a_large_message_that_never_ends,
    the_same_name_again_and_again,
]


@pytest.mark.parametrize("attack", WITHOUT_SECRET, ids=lambda attack: attack.__name__)
def test_an_attacker_without_the_secret_cannot_disturb_the_broker(lab: Lab, attack: Attack) -> None:
    broker, slowest = withstand(lab, attack)
    assert peak_bytes(broker) < BOUND_WITHOUT_SECRET
    assert slowest < SLOWEST_S
    assert broker.log.stat().st_size < MIB


@pytest.mark.parametrize("attack", WITH_SECRET, ids=lambda attack: attack.__name__)
def test_an_attacker_with_the_secret_neither_stops_the_broker_nor_fills_its_memory(
    lab: Lab, attack: Attack
) -> None:
    broker, slowest = withstand(lab, attack)
    assert peak_bytes(broker) < BOUND_WITH_SECRET
    assert slowest < SLOWEST_S
