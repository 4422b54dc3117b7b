"""A time server for stand-in boards: this machine's clock over NTP (RFC 5905), ahead by as much as a test needs."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

NTP_PORT = 123
_SINCE_1900 = 2_208_988_800  # seconds of 1970
_PACKET = struct.Struct("!BBbb3I4Q")
_SERVER = 4 << 3 | 4  # version 4, mode 4
_PRECISION = -20  # about a microsecond


@contextmanager
def time_server(address: str, ahead_s: float = 0.0) -> Iterator[None]:
    """Answer on this address as long as the context is open."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.bind((address, NTP_PORT))
        connection.settimeout(0.2)
        ended = threading.Event()
        server = threading.Thread(target=_serve, args=(connection, ended, ahead_s))
        server.start()
        try:
            yield
        finally:
            ended.set()
            server.join()


def _serve(connection: socket.socket, ended: threading.Event, ahead_s: float) -> None:
    while not ended.is_set():
        try:
            request, peer = connection.recvfrom(1024)
        except TimeoutError:
            continue
        if len(request) >= _PACKET.size:
            connection.sendto(answer(request, time.time() + ahead_s), peer)


def answer(request: bytes, now: float) -> bytes:
    """The answer of a server of stratum 1."""
    asked_at = _PACKET.unpack_from(request)[-1]
    name = int.from_bytes(b"TEST")
    return _PACKET.pack(
        _SERVER, 1, 2, _PRECISION, 0, 1, name, _stamp(now), asked_at, _stamp(now), _stamp(now)
    )


def _stamp(now: float) -> int:
    return int((now + _SINCE_1900) * 2**32)
