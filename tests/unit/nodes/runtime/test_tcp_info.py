"""The kernel's state of a connection: bytes in flight, the round trip, the payload of a full packet."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nodes.runtime.tcp_info import (
    NO_TRAFFIC,
    acknowledge_now,
    packet_payload,
    shortest_round_trip_s,
    traffic,
    unsent_bytes,
    use_congestion_control,
)

KERNELS_TICK_S = 0.1  # its times are no finer than a tick


class Segments:
    """A socket with a segment size."""

    def __init__(self, size: int) -> None:
        self.size = size

    def fileno(self) -> int:
        return 3

    def getsockopt(self, level: int, option: int) -> int:
        assert (level, option) == (socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        return self.size


@pytest.mark.parametrize(
    ("segment", "masked", "payload"),
    [
        (1448, False, 1444),  # MTU 1500 with time stamps; Lee 2016: 1443 and one label
        (1448, True, 1440),
        (524, True, 516),
        (127, False, 125),
        (65_539, False, 65_535),
        (65_550, False, 65_540),
    ],
)
def test_a_message_of_this_size_and_its_head_fill_one_packet(
    segment: int, masked: bool, payload: int
) -> None:
    assert packet_payload(Segments(segment), masked=masked) == payload  # type: ignore[arg-type]


@contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as here,
        server.accept()[0] as there,
    ):
        here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield here, there


def test_the_round_trip_of_a_connection_is_known_and_of_a_closed_one_is_not() -> None:
    with pair() as (here, _):
        trip = shortest_round_trip_s(here)
        assert trip is not None
        assert 0 < trip < 1
        here.close()
        assert shortest_round_trip_s(here) is None
        assert unsent_bytes(here) == 0
        assert packet_payload(here, masked=False) == 532
        acknowledge_now(here)


def test_a_socket_without_a_peer_has_no_round_trip() -> None:
    with socket.socket() as alone:
        assert shortest_round_trip_s(alone) is None


def test_the_bytes_of_a_connection_are_counted_and_timed() -> None:
    with pair() as (here, there):
        began = time.monotonic()
        there.sendall(b"12345")
        assert here.recv(100) == b"12345"
        here.sendall(b"123")
        assert there.recv(100) == b"123"
        there.sendall(b"6")  # carries the acknowledgement
        assert here.recv(100) == b"6"
        first = traffic(here)
        assert first.received == 6
        assert first.acknowledged == 3 + 1  # for TCP the SYN is a byte, too
        gone_s = time.monotonic() - began + KERNELS_TICK_S
        assert 0 <= first.received_ago_s < gone_s
        assert 0 <= first.acknowledged_ago_s < gone_s
        here.close()
        assert traffic(here) == NO_TRAFFIC


def left_after_read(prompt: bool) -> list[int]:
    """The bytes without acknowledgement right after the peer has read them, on a connection with regular answers."""
    left = []
    for _ in range(10):
        with pair() as (here, there):
            for _ in range(5):
                here.send(b"question")
                there.recv(100)
                there.send(b"answer")
                here.recv(100)
            here.send(b"statement")
            there.recv(100)
            if prompt:
                acknowledge_now(there)
            left.append(unsent_bytes(here))
    return left


def test_a_prompt_acknowledgement_leaves_when_the_bytes_are_read() -> None:
    assert set(left_after_read(prompt=True)) == {0}
    assert max(left_after_read(prompt=False)) == len(b"statement")


def congestion_control(sock: socket.socket) -> bytes:
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


def test_a_node_sets_the_congestion_control_of_its_connection() -> None:
    with socket.socket() as sock:
        own = congestion_control(sock)
        use_congestion_control(sock, None)
        assert congestion_control(sock) == own
        use_congestion_control(sock, "reno")  # every kernel has it, for everybody
        assert congestion_control(sock) == b"reno"
        with pytest.raises(FileNotFoundError):
            use_congestion_control(sock, "never-heard-of")
    use_congestion_control(sock, "reno")  # closed meanwhile: no error
