"""Packets over scratch links: sent at their time, heard where captures listen. One thread, one loop.

An `up` packet is heard where it enters the core, a `down` packet where it enters the node, with the kernel's time of
its arrival; the sender writes its own time into each probe just before it hands it to the kernel.
"""

import select
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from testbed.links.calibration import sockets
from testbed.links.calibration.reading import Frame, Heard
from testbed.links.namespaces import inside
from testbed.links.wiring import NODE_IF

UP, DOWN = "up", "down"
HEADERS = 14 + 20 + 8  # Ethernet, IPv4, UDP
_PROBE = struct.Struct("=QII")  # sent at, stream, index
_TCP, _UDP = 6, 17
_AT_ONCE = 64  # frames taken from one ear before the others have their turn


@dataclass(frozen=True, slots=True)
class Send:
    """One probe: when (after the beginning), on which lane, which way; stream and index tell it from others."""

    at_s: float
    lane: str
    direction: str
    stream: int
    index: int
    size: int  # of its frame


@dataclass(slots=True)
class Ear:
    """Where one direction of a lane is heard; `frames` collects those of TCP while there is a stream."""

    sock: socket.socket
    frames: list[Frame] | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """A scratch link with its sockets."""

    address: str
    ns_fd: int
    sender: socket.socket
    ears: dict[str, Ear]


class Exchange:
    """The sockets of all lanes; made in the core's namespace."""

    def __init__(self, gateway: str) -> None:
        self.gateway = gateway
        self.lanes: dict[str, Lane] = {}
        self._core = sockets.udp(gateway)
        self._ears: dict[int, Ear] = {}
        self._others: dict[int, Callable[[], None]] = {}
        self._heard: dict[int, list[Heard]] = defaultdict(list)
        self._epoll = select.epoll()

    def open(self, lane: str, address: str, ns_fd: int, core_if: str) -> None:
        """Make a link known that exists and is up."""
        up = Ear(sockets.ear(core_if))
        with inside(ns_fd):
            down = Ear(sockets.ear(NODE_IF))
            sender = sockets.udp(address)
        self.lanes[lane] = Lane(address, ns_fd, sender, {UP: up, DOWN: down})
        for ear in (up, down):
            self._ears[ear.sock.fileno()] = ear
            self._epoll.register(ear.sock, select.EPOLLIN)

    def close(self) -> None:
        """All sockets."""
        for lane in self.lanes.values():
            lane.sender.close()
        for ear in self._ears.values():
            ear.sock.close()
        self._core.close()
        self._epoll.close()

    def probe(self, sends: Sequence[Send], settle_s: float) -> dict[int, list[Heard]]:
        """Send all at their times; what was heard, by stream, until all came or `settle_s` after the last."""
        waiting = deque(sorted(sends, key=lambda send: send.at_s))
        self._heard.clear()
        begin = time.monotonic()
        deadline = begin + (waiting[-1].at_s if waiting else 0.0) + settle_s
        while sum(map(len, self._heard.values())) < len(sends):
            now = time.monotonic()
            if now > deadline:
                break
            while waiting and waiting[0].at_s <= now - begin:
                self._send(waiting.popleft())
            next_at = begin + waiting[0].at_s if waiting else deadline
            self.turn(max(0.0, next_at - time.monotonic()))
        return dict(self._heard)

    def _send(self, send: Send) -> None:
        lane = self.lanes[send.lane]
        padding = bytes(max(0, send.size - HEADERS - _PROBE.size))
        up = send.direction == UP
        sender, to = (lane.sender, self.gateway) if up else (self._core, lane.address)
        with suppress(BlockingIOError):  # a full buffer: it counts as not arrived
            probe = _PROBE.pack(time.time_ns(), send.stream, send.index)
            sender.sendto(probe + padding, (to, sockets.DISCARD))

    def watch(self, sock: socket.socket, event: int, ready: Callable[[], None]) -> None:
        """Call back when something else can be read or written."""
        self._others[sock.fileno()] = ready
        self._epoll.register(sock, event)

    def forget(self, sock: socket.socket) -> None:
        """No longer, and close it."""
        self._others.pop(sock.fileno(), None)
        with suppress(OSError):  # it was never watched
            self._epoll.unregister(sock)
        sock.close()

    def turn(self, timeout_s: float) -> None:
        """Deal with what happens now, or soon."""
        for fd, _ in self._epoll.poll(timeout_s):
            if (ear := self._ears.get(fd)) is not None:
                self._hear(ear)
            elif (ready := self._others.get(fd)) is not None:
                ready()

    def _hear(self, ear: Ear) -> None:
        with suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                came_ns, frame = sockets.hear(ear.sock)
                size = 14 + int.from_bytes(frame[16:18])
                if frame[23] == _UDP and len(frame) >= HEADERS + _PROBE.size:
                    sent_ns, stream, index = _PROBE.unpack_from(frame, HEADERS)
                    self._heard[stream].append(Heard(index, size, sent_ns, came_ns))
                elif frame[23] == _TCP and ear.frames is not None:
                    ear.frames.append(Frame(came_ns, size, _carries(frame, size)))


def _carries(frame: bytes, size: int) -> bool:
    """Whether a TCP segment has data."""
    ip_header = (frame[14] & 15) * 4
    tcp_header = (frame[14 + ip_header + 12] >> 4) * 4
    return size > 14 + ip_header + tcp_header
