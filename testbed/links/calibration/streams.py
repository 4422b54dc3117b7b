"""TCP streams that fill directions of scratch links."""

import os
import select
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from testbed.links.calibration import sockets
from testbed.links.calibration.exchange import UP, Exchange
from testbed.links.calibration.reading import Frame
from testbed.links.namespaces import inside, open_own

Line = tuple[str, str]  # lane and direction
_CHUNK = bytes(1 << 18)
_CONNECT_S = 15.0
_TURN_S = 0.05


class Stream:
    """One of them: from its end of the lane to the other, as fast as TCP goes."""

    def __init__(self, exchange: Exchange, line: Line, seconds: float) -> None:
        self.frames: list[Frame] = []
        self.missed = 0
        self._exchange = exchange
        self._seconds = seconds
        self._began = time.monotonic()
        self._ends_at: float | None = None  # known once its first data came
        lane = exchange.lanes[line[0]]
        self._ear = lane.ears[line[1]]
        own = open_own()
        try:
            ends = ((own, exchange.gateway), (lane.ns_fd, lane.address))
            receiving, sending = ends if line[1] == UP else ends[::-1]
            with inside(receiving[0]):
                self._listening = sockets.tcp(receiving[1])
                self._listening.listen()
            with inside(sending[0]):
                self._sender = sockets.tcp(sending[1])
        finally:
            os.close(own)
        self._receiver: socket.socket | None = None
        sockets.missed(self._ear.sock)  # what it missed before is not ours
        self._ear.frames = self.frames
        exchange.watch(self._listening, select.EPOLLIN, self._accept)
        exchange.watch(self._sender, select.EPOLLOUT, self._send)
        with suppress(BlockingIOError):
            self._sender.connect(self._listening.getsockname())

    def ended(self) -> bool:
        """Whether it has lasted long enough, or never began."""
        now = time.monotonic()
        if self._ends_at is None:
            if self.frames and self.frames[-1].carries:
                self._ends_at = now + self._seconds
            return now > self._began + _CONNECT_S + self._seconds
        return now > self._ends_at

    def close(self) -> None:
        """Cut it off."""
        if self._ear.frames is self.frames:
            self._ear.frames = None
            self.missed = sockets.missed(self._ear.sock)
        for sock in (self._sender, self._listening, self._receiver):
            if sock is not None and sock.fileno() >= 0:
                self._exchange.forget(sock)

    def _accept(self) -> None:
        self._receiver, _ = self._listening.accept()
        self._receiver.setblocking(False)
        self._exchange.watch(self._receiver, select.EPOLLIN, self._receive)

    def _send(self) -> None:
        try:
            self._sender.send(_CHUNK)
        except BlockingIOError:
            return
        except OSError:  # refused or timed out: what came so far counts
            self._exchange.forget(self._sender)

    def _receive(self) -> None:
        assert self._receiver is not None
        with suppress(BlockingIOError):
            self._receiver.recv(len(_CHUNK))


def run_streams(exchange: Exchange, wanted: Mapping[Line, float]) -> dict[Line, Stream]:
    """All at once, each for its seconds from its first data on."""
    streams: dict[Line, Stream] = {}
    try:
        for line, seconds in wanted.items():
            streams[line] = Stream(exchange, line, seconds)
        going: Sequence[Stream] = list(streams.values())
        while going:
            exchange.turn(_TURN_S)
            for stream in [stream for stream in going if stream.ended()]:
                stream.close()
            going = [stream for stream in going if not stream.ended()]
    finally:
        for stream in streams.values():
            stream.close()
    return streams
