"""Packets over scratch links: sent at their time, received where captures listen, and the rate and delay they show.

One thread, one loop; times in nanoseconds, sizes of Ethernet frames.
"""

import select
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import linear_regression, median

from testbed.links.namespaces import inside
from testbed.links.wiring import NODE_IF

# The sockets of a measurement: senders, streams, and listeners where captures listen.


DISCARD = 9  # the port that probes go to
_ETH_P_IP = 0x0800
_SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_SOL_PACKET = 263
_PACKET_IGNORE_OUTGOING = 23
_PACKET_STATISTICS = 6
_BUFFER_BYTES = 16 << 20
_SNAP = 96  # bytes read of a frame
_TIME = struct.Struct("qq")


def udp(address: str) -> socket.socket:
    """For probes. It need not be read: it is there so that no probe is answered with `port unreachable`."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    _enlarge_buffer(sock, socket.SO_SNDBUF, _SO_SNDBUFFORCE)
    sock.setblocking(False)
    sock.bind((address, DISCARD))
    return sock


def tcp(address: str) -> socket.socket:
    """For streams. It is cut off when closed, so that nothing drains over the next measurement.

    With Cubic, whatever this machine's own choice is: BBR empties the link on purpose every ten seconds, which on a
    slow one with long round trips costs a twentieth of the rate.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with suppress(OSError):  # missing or not permitted: use the default
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.bind((address, 0))
    return sock


def listening_socket(ifname: str) -> socket.socket:
    """For what arrives at an interface of the current namespace, with the kernel's time of it."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    _enlarge_buffer(sock, socket.SO_RCVBUF, _SO_RCVBUFFORCE)
    sock.bind((ifname, _ETH_P_IP))
    return sock


def receive_frame(sock: socket.socket) -> tuple[int, bytes]:
    """When the next frame came, and its beginning; BlockingIOError if there is none."""
    frame, ancillary, _, _ = sock.recvmsg(_SNAP, 64)
    seconds, nanoseconds = _TIME.unpack(ancillary[0][2])
    return seconds * 10**9 + nanoseconds, frame


def missed(sock: socket.socket) -> int:
    """Frames that a listener's full buffer dropped since the last call."""
    statistics = sock.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
    dropped: int = struct.unpack("=II", statistics)[1]
    return dropped


def _enlarge_buffer(sock: socket.socket, option: int, as_root: int) -> None:
    """A large buffer; in a user namespace as large as the system allows without privileges."""
    sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    with suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, as_root, _BUFFER_BYTES)


# From packets sent and received to rate and delay. Pure.


@dataclass(frozen=True, slots=True)
class Arrival:
    """A probe that arrived: its place in its stream, its size, when it was sent and when it came."""

    index: int
    size: int
    sent_ns: int
    came_ns: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a TCP stream as it arrived; `carries`: it has data, not only an acknowledgement."""

    came_ns: int
    size: int
    carries: bool = True


def delay_s(arrivals: Sequence[Arrival], serialisation_s: float) -> float | None:
    """The median time under way, less the transmission time."""
    if not arrivals:
        return None
    return median(one.came_ns - one.sent_ns for one in arrivals) / 1e9 - serialisation_s


def train_rate_bps(
    arrivals: Sequence[Arrival], credit_bytes: int = 0, *, lost_on_link: bool = True
) -> float | None:
    """The rate of a link, from how it spread out a train of equal packets that were sent at once.

    A straight line through arrival against bytes; single packets that jitter moved weigh little. What a token bucket
    let pass on stored credit does not depend on the rate and is left out. `lost_on_link`: a lost packet counts with its
    bytes, as the link transmitted it before it was lost.
    """
    in_order = sorted(arrivals, key=lambda one: one.index)
    placed = [(one.index if lost_on_link else rank, one) for rank, one in enumerate(in_order)]
    paced = [(place, one) for place, one in placed if (place + 1) * one.size > credit_bytes]
    if len(paced) < 2:
        return None
    begin = paced[0][1].came_ns
    bits = [place * one.size * 8.0 for place, one in paced]
    slope = linear_regression(bits, [(one.came_ns - begin) / 1e9 for _, one in paced]).slope
    return 1 / slope if slope > 0 else None


def stream_rate_bps(frames: Sequence[Frame], skip_s: float = 0.0, missed: int = 0) -> float | None:
    """Bits a second from the first arrival to the last; headers and retransmissions count.

    The window opens with the first frame that carries data (the handshake is no load), or `skip_s` after it. `missed`:
    frames that arrived, too, but were not read; they are taken to be like the others.
    """
    first = next((frame.came_ns for frame in frames if frame.carries), None)
    if first is None:
        return None
    window = [frame for frame in frames if frame.came_ns >= first + skip_s * 1e9]
    if len(window) < 2 or window[-1].came_ns == window[0].came_ns:
        return None
    carried = sum(frame.size for frame in window[1:]) * (1 + missed / len(frames))
    return carried * 8e9 / (window[-1].came_ns - window[0].came_ns)


UP, DOWN = "up", "down"
HEADERS = 14 + 20 + 8  # Ethernet, IPv4, UDP
_PROBE = struct.Struct("=QII")  # sent at, stream, index
_TCP, _UDP = 6, 17
_AT_ONCE = 64  # frames taken from one listener before the others have their turn


@dataclass(frozen=True, slots=True)
class Send:
    """One probe: when (after the beginning), on which lane, which way; stream and index identify it."""

    at_s: float
    lane: str
    direction: str
    stream: int
    index: int
    size: int  # of its frame


@dataclass(slots=True)
class Listener:
    """Receives one direction of a lane; `frames` collects those of TCP while there is a stream."""

    sock: socket.socket
    frames: list[Frame] | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """A scratch link with its sockets."""

    address: str
    ns_fd: int
    sender: socket.socket
    listeners: dict[str, Listener]


class Exchange:
    """The sockets of all lanes; made in the core's namespace."""

    def __init__(self, gateway: str) -> None:
        self.gateway = gateway
        self.lanes: dict[str, Lane] = {}
        self._core = udp(gateway)
        self._listeners: dict[int, Listener] = {}
        self._others: dict[int, Callable[[], None]] = {}
        self._arrivals: dict[int, list[Arrival]] = defaultdict(list)
        self._epoll = select.epoll()

    def open(self, lane: str, address: str, ns_fd: int, core_if: str) -> None:
        """Make a link known that exists and is up."""
        up = Listener(listening_socket(core_if))
        with inside(ns_fd):
            down = Listener(listening_socket(NODE_IF))
            sender = udp(address)
        self.lanes[lane] = Lane(address, ns_fd, sender, {UP: up, DOWN: down})
        for listener in (up, down):
            self._listeners[listener.sock.fileno()] = listener
            self._epoll.register(listener.sock, select.EPOLLIN)

    def close(self) -> None:
        """All sockets."""
        for lane in self.lanes.values():
            lane.sender.close()
        for listener in self._listeners.values():
            listener.sock.close()
        self._core.close()
        self._epoll.close()

    def probe(self, sends: Sequence[Send], settle_s: float) -> dict[int, list[Arrival]]:
        """Send all at their times; the arrivals, by stream, until all came or `settle_s` after the last."""
        waiting = deque(sorted(sends, key=lambda send: send.at_s))
        self._arrivals.clear()
        begin = time.monotonic()
        deadline = begin + (waiting[-1].at_s if waiting else 0.0) + settle_s
        while sum(map(len, self._arrivals.values())) < len(sends):
            now = time.monotonic()
            if now > deadline:
                break
            while waiting and waiting[0].at_s <= now - begin:
                self._send(waiting.popleft())
            next_at = begin + waiting[0].at_s if waiting else deadline
            self.turn(max(0.0, next_at - time.monotonic()))
        return dict(self._arrivals)

    def _send(self, send: Send) -> None:
        lane = self.lanes[send.lane]
        padding = bytes(max(0, send.size - HEADERS - _PROBE.size))
        up = send.direction == UP
        sender, to = (lane.sender, self.gateway) if up else (self._core, lane.address)
        with suppress(BlockingIOError):  # a full buffer: it counts as not arrived
            probe = _PROBE.pack(time.time_ns(), send.stream, send.index)
            sender.sendto(probe + padding, (to, DISCARD))

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
            if (listener := self._listeners.get(fd)) is not None:
                self._receive_frames(listener)
            elif (ready := self._others.get(fd)) is not None:
                ready()

    def _receive_frames(self, listener: Listener) -> None:
        with suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                came_ns, frame = receive_frame(listener.sock)
                size = 14 + int.from_bytes(frame[16:18])
                if frame[23] == _UDP and len(frame) >= HEADERS + _PROBE.size:
                    sent_ns, stream, index = _PROBE.unpack_from(frame, HEADERS)
                    self._arrivals[stream].append(Arrival(index, size, sent_ns, came_ns))
                elif frame[23] == _TCP and listener.frames is not None:
                    listener.frames.append(Frame(came_ns, size, _carries(frame, size)))


def _carries(frame: bytes, size: int) -> bool:
    """Whether a TCP segment has data."""
    ip_header = (frame[14] & 15) * 4
    tcp_header = (frame[14 + ip_header + 12] >> 4) * 4
    return size > 14 + ip_header + tcp_header
