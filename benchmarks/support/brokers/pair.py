"""A publisher and a subscriber of one broker in one process, so fast that the broker never waits for them.

Our brokers and mosquitto differ in the protocol (`Exchange`). Both ends know what has arrived, so at most `WINDOW`
messages are on their way, with and without acknowledgements in the protocol.
"""

import select
import socket
import time
from statistics import median
from typing import Protocol

WINDOW = 256  # messages under way, so that the broker always has work
AT_ONCE = 64  # messages in one write
READ_BYTES = 1 << 18
PATIENCE_S = 30.0
APART_S = 0.005  # between single messages: all is idle again
FIRST = 1  # the number of the first message


class Exchange(Protocol):
    """The protocol between the two ends and a broker."""

    publisher: socket.socket
    subscriber: socket.socket

    def publication(self, number: int) -> bytes:
        """The publication of this number, as the publisher sends it."""

    def received(self, data: bytes) -> int:
        """Process bytes of the subscriber: count complete publications, and acknowledge them if the protocol does."""


class Stuck(Exception):
    """Nothing arrived for a long time."""


class Pair:
    """Drives both ends of one broker."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._sent = 0
        self._received = 0
        self._poll = select.poll()
        self._publisher, self._subscriber = exchange.publisher, exchange.subscriber
        for sock in (self._publisher, self._subscriber):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._poll.register(sock, select.POLLIN)

    def blast(self, seconds: float) -> tuple[int, float]:
        """Send as fast as the broker forwards; return the number of messages, and the seconds until all arrived."""
        before, began = self._received, time.monotonic()
        while time.monotonic() < began + seconds:
            window = min(AT_ONCE, WINDOW - (self._sent - self._received))
            if window > AT_ONCE // 2:
                self._send(window)
            self._read(0.0 if window == AT_ONCE else PATIENCE_S)
        self._drain()
        return self._received - before, time.monotonic() - began

    def delays(self, count: int) -> list[float]:
        """Seconds that single messages take, one after the other, with pauses in between."""
        found = []
        for _ in range(count):
            time.sleep(APART_S)
            began = time.perf_counter()
            self._send(1)
            self._drain()
            found.append(time.perf_counter() - began)
        return found

    def _send(self, count: int) -> None:
        first = FIRST + self._sent
        self._sent += count
        frames = [self._exchange.publication(number) for number in range(first, first + count)]
        self._publisher.sendall(b"".join(frames))

    def _drain(self) -> None:
        while self._received < self._sent:
            self._read(PATIENCE_S)

    def _read(self, patience_s: float) -> None:
        ready = self._poll.poll(patience_s * 1000)
        if not ready and patience_s:
            raise Stuck(f"{self._received} of {self._sent} messages arrived, and then none")
        for sock, _ in ready:
            if sock == self._publisher.fileno():
                data = self._publisher.recv(READ_BYTES)  # acknowledgements, which are not needed
            else:
                data = self._subscriber.recv(READ_BYTES)
                self._received += self._exchange.received(data)
            if not data:
                raise Stuck("the broker has closed the connection")


def direct_delay(size: int, count: int) -> float:
    """The median delay of this many bytes between two sockets on the loopback, without a broker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far, _ = listening.accept()
    with near, far:
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return median(_once(near, far, size) for _ in range(count))


def _once(near: socket.socket, far: socket.socket, size: int) -> float:
    time.sleep(APART_S)
    waiting = select.poll()
    waiting.register(far, select.POLLIN)
    began = time.perf_counter()
    near.sendall(bytes(size))
    left = size
    while left:
        waiting.poll(PATIENCE_S * 1000)
        left -= len(far.recv(READ_BYTES))
    return time.perf_counter() - began
