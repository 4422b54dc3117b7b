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

from loopback_lab import PATIENCE_S, Lab, card
from nodes.protocol.wire import HEADER, MAX_MESSAGE_BYTES, VERSION, Kind, Message, encode
from nodes.runtime.broker import MAX_PENDING
from nodes.runtime.handshake import Caller, new_nonce
from under_attack import (
    MIB,
    SLOWEST_S,
    Attack,
    frame,
    guest,
    knock,
    line_to,
    peak_bytes,
    pour,
    withstand,
)

# An idle broker has 26 MiB. Attackers without the secret can make it hold little. An attacker with the secret can fill
# one queue (8 MB), one incoming message and one outgoing message.
BOUND_WITHOUT_SECRET = 48 * MIB
BOUND_WITH_SECRET = 96 * MIB
CROWD = 2 * MAX_PENDING


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


@contextmanager
def deaf_guest(lab: Lab, name: str = "x1") -> Iterator[socket.socket]:
    """A client that reads nothing more after HELLO."""
    protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{lab.port}/"))
    with knock(lab) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        protocol.send_request(protocol.connect())
        line.sendall(b"".join(protocol.data_to_send()))
        caller = Caller(card(name), "b1", new_nonce())
        line.sendall(frame(caller.first()))
        heard: list[Event] = []
        while len(heard) < 2:  # the HTTP response and HELLO
            protocol.receive_data(line.recv(4096))
            heard += protocol.events_received()
        assert isinstance(heard[1], Frame)
        line.sendall(frame(caller.answer(bytes(heard[1].data))))
        yield line


def announcement(size: int) -> bytes:
    """The header of a binary frame of this length (RFC 6455, 5.2)."""
    return struct.pack("!BBQ4s", 0x82, 0xFF, size, b"mask")


# Without the secret


def garbage(lab: Lab, over: threading.Event) -> None:
    chance = random.Random(1)
    while not over.is_set():
        with knock(lab) as line, suppress(OSError):
            line.sendall(chance.randbytes(chance.randrange(1, 20_000)))
            line.settimeout(0.05)
            line.recv(1)


def a_crowd_that_says_nothing(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as crowd:
        for _ in range(CROWD):
            crowd.enter_context(knock(lab))
        over.wait(PATIENCE_S)


def connections_as_fast_as_they_can_be_made(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        knock(lab).close()


def http_drop_by_drop(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as crowd:
        lines = [crowd.enter_context(knock(lab)) for _ in range(100)]
        for letter in itertools.cycle(b"GET / HTTP/1.1\r\nx: y"):
            for line in lines:
                with suppress(OSError):
                    line.send(bytes([letter]))
            if over.wait(0.05):
                return


def guests_that_never_say_hello(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as crowd:
        for _ in range(300):
            with suppress(WebSocketException, OSError):
                crowd.enter_context(line_to(lab))
            if over.is_set():
                return
        over.wait(PATIENCE_S)


def a_gigabyte_announced(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        for size in (1 << 30, (1 << 63) - 1, MAX_MESSAGE_BYTES):
            with suppress(WebSocketException, OSError), line_to(lab) as line:
                line.socket.sendall(announcement(size) + bytes(100_000))
                with suppress(ConnectionClosed):
                    line.recv(timeout=PATIENCE_S)
                assert line.close_code == 1009


def thousands_of_tiny_frames_before_hello(lab: Lab, over: threading.Event) -> None:
    tiny = frame(b"") * 50_000
    while not over.is_set():
        with suppress(WebSocketException, OSError), line_to(lab) as line:
            pour(line.socket, tiny, over)


def hello_and_then_a_flood_instead_of_the_proof(lab: Lab, over: threading.Event) -> None:
    ping = frame(bytes(105), Opcode.PING)  # as long as a proof, and not a message
    while not over.is_set():
        with suppress(WebSocketException, OSError), line_to(lab) as line:
            line.send(Caller(card("x1"), "b1", new_nonce()).first())
            line.recv(timeout=PATIENCE_S)
            pour(line.socket, ping * 1000, over)


def guesses_at_the_secret(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), line_to(lab) as line:
            hello = Caller(card("s1"), "b1", new_nonce()).first()  # in the name of an honest node
            line.send(hello)
            line.recv(timeout=PATIENCE_S)
            line.send(hello[:28] + b'{"proof": "%s"}' % os.urandom(32).hex().encode())
            with suppress(ConnectionClosed):
                line.recv(timeout=PATIENCE_S)
            assert line.close_reason == "s1 does not know the lab's secret"


# With the secret


def a_flood_of_publications(lab: Lab, over: threading.Event) -> None:
    with guest(lab) as line:
        pour(line.socket, frame(encode(Message(Kind.PUBLISH, topic="noise"))) * 500, over)


def a_flood_of_large_publications(lab: Lab, over: threading.Event) -> None:
    large = encode(Message(Kind.PUBLISH, topic="noise", payload=bytes(1_000_000)))
    with guest(lab, "x1") as line, deaf_guest(lab, "x2") as wants:
        wants.sendall(frame(encode(Message(Kind.SUBSCRIBE, topic="noise"))))
        pour(line.socket, frame(large), over)


def a_flood_of_subscriptions(lab: Lab, over: threading.Event) -> None:
    for turn in itertools.count():
        with suppress(WebSocketException, OSError), guest(lab, f"x{turn}") as line:
            for number in itertools.count():
                wish = Message(Kind.SUBSCRIBE, topic=f"{turn}/{number}" + "t" * 200)
                line.send(encode(wish))
                if over.is_set():
                    return


def pings_whose_answers_nobody_reads(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with deaf_guest(lab) as line:
            pour(line, frame(bytes(125), Opcode.PING) * 1000, over)


def endless_fragments(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), guest(lab) as line:
            line.socket.sendall(frame(b"", fin=False))
            pour(line.socket, frame(b"", Opcode.CONT, fin=False) * 10_000, over)


def impossible_headers(lab: Lab, over: threading.Event) -> None:
    chance = random.Random(2)
    edges = {1: (0, 1, 5, 6, 255), 2: (0, 1, 255, 256, 65535), 4: (0, 2**32 - 1), 8: (0, 2**64 - 1)}
    while not over.is_set():
        with suppress(WebSocketException, OSError), guest(lab) as line:
            for _ in range(20):
                values = [chance.choice(edges[size]) for size in (1, 1, 1, 2, 2, 4, 8, 8)]
                data = HEADER.pack(VERSION, *values) + chance.randbytes(chance.randrange(300))
                line.send(data)


def a_large_message_that_never_ends(lab: Lab, over: threading.Event) -> None:
    with ExitStack() as crowd:
        for number in range(3):
            line = crowd.enter_context(guest(lab, f"x{number}"))
            line.socket.sendall(announcement(MAX_MESSAGE_BYTES) + bytes(MAX_MESSAGE_BYTES - 1))
        over.wait(PATIENCE_S)


def the_same_name_again_and_again(lab: Lab, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(WebSocketException, OSError), guest(lab):
            pass


WITHOUT_SECRET: list[Attack] = [
    garbage,
    a_crowd_that_says_nothing,
    connections_as_fast_as_they_can_be_made,
    http_drop_by_drop,
    guests_that_never_say_hello,
    a_gigabyte_announced,
    thousands_of_tiny_frames_before_hello,
    hello_and_then_a_flood_instead_of_the_proof,
    guesses_at_the_secret,
]
WITH_SECRET: list[Attack] = [
    a_flood_of_publications,
    a_flood_of_large_publications,
    a_flood_of_subscriptions,
    pings_whose_answers_nobody_reads,
    endless_fragments,
    impossible_headers,
    a_large_message_that_never_ends,
    the_same_name_again_and_again,
]


@pytest.mark.parametrize("attack", WITHOUT_SECRET, ids=lambda attack: attack.__name__)
def test_who_does_not_know_the_secret_cannot_disturb(lab: Lab, attack: Attack) -> None:
    broker, slowest = withstand(lab, attack)
    assert peak_bytes(broker) < BOUND_WITHOUT_SECRET
    assert slowest < SLOWEST_S
    assert broker.log.stat().st_size < MIB


@pytest.mark.parametrize("attack", WITH_SECRET, ids=lambda attack: attack.__name__)
def test_who_knows_it_can_disturb_but_neither_stop_nor_fill_the_broker(
    lab: Lab, attack: Attack
) -> None:
    broker, slowest = withstand(lab, attack)
    assert peak_bytes(broker) < BOUND_WITH_SECRET
    assert slowest < SLOWEST_S
