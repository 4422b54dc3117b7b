"""The sockets of a measurement: senders, streams, and ears that hear frames where captures listen."""

import socket
import struct
from contextlib import suppress

DISCARD = 9  # the port that probes go to
_ETH_P_IP = 0x0800
_SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_SOL_PACKET = 263
_PACKET_IGNORE_OUTGOING = 23
_PACKET_STATISTICS = 6
_ROOM = 16 << 20
_SNAP = 96  # bytes read of a frame
_TIME = struct.Struct("qq")


def udp(address: str) -> socket.socket:
    """For probes. It need not be read: it is there so that no probe is answered with `port unreachable`."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    _make_room(sock, socket.SO_SNDBUF, _SO_SNDBUFFORCE)
    sock.setblocking(False)
    sock.bind((address, DISCARD))
    return sock


def tcp(address: str) -> socket.socket:
    """For streams. It is cut off when closed, so that nothing drains over the next measurement.

    With Cubic, whatever this machine's own choice is: BBR empties the line on purpose every ten seconds, which on a
    slow one with long round trips costs a twentieth of the rate.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with suppress(OSError):  # not there, or not for everybody: then as it is
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.bind((address, 0))
    return sock


def ear(ifname: str) -> socket.socket:
    """For what arrives at an interface of the current namespace, with the kernel's time of it."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    _make_room(sock, socket.SO_RCVBUF, _SO_RCVBUFFORCE)
    sock.bind((ifname, _ETH_P_IP))
    return sock


def hear(sock: socket.socket) -> tuple[int, bytes]:
    """When the next frame came, and its beginning; BlockingIOError if there is none."""
    frame, ancillary, _, _ = sock.recvmsg(_SNAP, 64)
    seconds, nanoseconds = _TIME.unpack(ancillary[0][2])
    return seconds * 10**9 + nanoseconds, frame


def missed(sock: socket.socket) -> int:
    """Frames that found no room in an ear's buffer since this was last asked."""
    told = sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
    dropped: int = struct.unpack("=II", told)[1]
    return dropped


def _make_room(sock: socket.socket, option: int, as_root: int) -> None:
    """A large buffer; in a user namespace as large as the system lets everybody have it."""
    sock.setsockopt(socket.SOL_SOCKET, option, _ROOM)
    with suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, as_root, _ROOM)
