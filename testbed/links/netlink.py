"""Netlink requests in batches, over a raw socket inside the namespace they are about.

Many requests go out in one datagram and their acknowledgements are read afterwards; one by one, hundreds of
links would take many times as long. No `ip` process is started anywhere.
"""

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from testbed.errors import TestbedError
from testbed.links.namespaces import inside

NLM_F_REQUEST = 0x01
NLM_F_ACK = 0x04
_NLM_F_DUMP = 0x300
_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ERROR = struct.Struct("=i")
_SOL_NETLINK = 270
_NETLINK_CAP_ACK = 10  # errors do not repeat the whole request
_AT_ONCE = 64  # requests in flight: their acknowledgements fit the socket's buffer
_TIMEOUT_S = 30.0
_DUMP_BYTES = 1 << 17


class NetlinkError(TestbedError):
    """The kernel refused a request."""

    def __init__(self, number: int, what: str) -> None:
        super().__init__(f"cannot {what}: {os.strerror(number)}")
        self.number = number


@dataclass(frozen=True, slots=True)
class Request:
    """One message for the kernel, with a description for error messages. An errno in `may_fail` counts as success."""

    what: str
    kind: int
    flags: int
    body: bytes  # behind the header, a multiple of four bytes
    may_fail: frozenset[int] = frozenset()

    def encoded(self, sequence: int) -> bytes:
        """The bytes on the socket."""
        flags = self.flags | NLM_F_REQUEST | NLM_F_ACK
        return (
            _HEADER.pack(_HEADER.size + len(self.body), self.kind, flags, sequence, 0) + self.body
        )


class Netlink:
    """A netlink socket of one network namespace."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sequence = 0

    def do(self, requests: Sequence[Request]) -> None:
        """Send all; NetlinkError for the first refusal, after the batch that holds it was done."""
        waiting = iter(requests)
        while batch := list(islice(waiting, _AT_ONCE)):
            self._do_batch(batch)

    def _do_batch(self, batch: Sequence[Request]) -> None:
        first = self._sequence + 1
        self._sequence += len(batch)
        self._socket.send(b"".join(r.encoded(first + i) for i, r in enumerate(batch)))
        open_ends = dict(enumerate(batch, first))
        refused: NetlinkError | None = None
        while open_ends:
            for sequence, number in _acknowledgements(self._socket.recv(65536)):
                request = open_ends.pop(sequence, None)
                if request is None or number == 0 or number in request.may_fail:
                    continue
                refused = refused or NetlinkError(number, request.what)
        if refused is not None:
            raise refused

    def ask_all(self, kind: int, body: bytes) -> Iterator[bytes]:
        """Dump all objects of a kind: the answers' bodies."""
        self._sequence += 1
        flags = NLM_F_REQUEST | _NLM_F_DUMP
        length = _HEADER.size + len(body)
        self._socket.send(_HEADER.pack(length, kind, flags, self._sequence, 0) + body)
        while True:
            for what, sequence, answer in _parts(self._socket.recv(_DUMP_BYTES)):
                if sequence != self._sequence:
                    continue
                if what == _NLMSG_DONE:
                    return
                if what == _NLMSG_ERROR:
                    raise NetlinkError(-_ERROR.unpack_from(answer)[0], "ask the kernel")
                yield answer


def _parts(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, sequence number and body of each message in a datagram."""
    place = 0
    while place + _HEADER.size <= len(data):
        length, kind, _, sequence, _ = _HEADER.unpack_from(data, place)
        yield kind, sequence, data[place + _HEADER.size : place + length]
        place += max((length + 3) & ~3, _HEADER.size)


def _acknowledgements(data: bytes) -> Iterator[tuple[int, int]]:
    """Sequence number and errno (0: done) of each answer in a datagram."""
    for kind, sequence, body in _parts(data):
        if kind == _NLMSG_ERROR:
            yield sequence, -_ERROR.unpack_from(body)[0]


@contextmanager
def netlink(ns_fd: int | None = None) -> Iterator[Netlink]:
    """A netlink socket of the namespace behind the descriptor; None: this process's own."""
    if ns_fd is None:
        sock = _open()
    else:
        with inside(ns_fd):
            sock = _open()
    with sock:
        yield Netlink(sock)


def _open() -> socket.socket:
    sock = socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    )
    sock.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
    sock.settimeout(_TIMEOUT_S)
    sock.bind((0, 0))
    return sock
