"""State and options of a TCP connection in the kernel."""

import fcntl
import socket
import struct
import termios
from typing import NamedTuple

_UNKNOWN = 0xFFFF_FFFF
# In struct tcp_info (linux/tcp.h), all of 32 bits but the counts of bytes:
_LAST_RECEIVED_AT = 52  # tcpi_last_data_recv and tcpi_last_ack_recv: milliseconds ago
_BYTES_AT = 120  # tcpi_bytes_acked and tcpi_bytes_received: 64 bits
_MIN_RTT_AT = 148  # tcpi_min_rtt: microseconds
MASK_BYTES = 4  # toward the server (RFC 6455, 5.3)
_LEAST_SEGMENT = 536  # RFC 9293, 3.7.1


def unsent_bytes(sock: socket.socket) -> int:
    """Bytes that the kernel holds and the peer has not acknowledged (SIOCOUTQ)."""
    if sock.fileno() < 0:
        return 0
    answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0" * 4)
    return int(struct.unpack("i", answer)[0])


def shortest_round_trip_s(sock: socket.socket) -> float | None:
    """The shortest round trip that TCP has measured lately; None if there is none, or the kernel does not report it."""
    if sock.fileno() < 0:
        return None
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MIN_RTT_AT + 4)
    if len(info) < _MIN_RTT_AT + 4:
        return None
    (microseconds,) = struct.unpack_from("I", info, _MIN_RTT_AT)
    return None if microseconds == _UNKNOWN else microseconds / 1e6


class Traffic(NamedTuple):
    """What has gone over a connection."""

    received: int  # bytes from the peer
    received_ago_s: float  # the last of them
    acknowledged: int  # bytes that the peer has
    acknowledged_ago_s: float


NO_TRAFFIC = Traffic(0, 0.0, 0, 0.0)


def traffic(sock: socket.socket) -> Traffic:
    """What TCP has sent and received; zero if the connection is closed, or the kernel does not report it."""
    if sock.fileno() < 0:
        return NO_TRAFFIC
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _MIN_RTT_AT)
    if len(info) < _MIN_RTT_AT:
        return NO_TRAFFIC
    received_ms, acknowledged_ms = struct.unpack_from("II", info, _LAST_RECEIVED_AT)
    acknowledged, received = struct.unpack_from("QQ", info, _BYTES_AT)
    return Traffic(received, received_ms / 1e3, acknowledged, acknowledged_ms / 1e3)


def packet_payload(sock: socket.socket, *, masked: bool) -> int:
    """How many bytes of one WebSocket message fill exactly one packet.

    TCP_MAXSEG of a connection has the time stamps taken off already: 1448 at an MTU of 1500.
    """
    closed = sock.fileno() < 0  # the peer has disconnected already
    segment = _LEAST_SEGMENT if closed else sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
    return segment_payload(segment, masked=masked)


def segment_payload(segment: int, *, masked: bool) -> int:
    """What is left of a segment behind the frame's head (RFC 6455, 5.2), whose length field grows with the message."""
    left = segment - (MASK_BYTES if masked else 0)
    for head, longest in ((2, 125), (4, 0xFFFF)):
        if left - head <= longest:
            return left - head
    return left - 10


def masked_frame(size: int) -> int:
    """How long the frame of a WebSocket message of so many bytes is, toward the server."""
    return size + MASK_BYTES + (2 if size <= 125 else 4 if size <= 0xFFFF else 10)


def use_congestion_control(sock: socket.socket, name: str | None) -> None:
    """Set the congestion control of a connection; None leaves the one that the kernel or the route chose.

    OSError if the kernel does not have it, or does not allow it to programs without CAP_NET_ADMIN.
    """
    if name is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def acknowledge_now(sock: socket.socket) -> None:
    """Send the acknowledgement that TCP delays by up to 40 ms. Call it at each read: the kernel resets the option."""
    if sock.fileno() >= 0:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
