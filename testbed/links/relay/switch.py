"""The relay's work: frames in from taps, through the model, out at their time. One epoll loop for all links."""

import heapq
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from testbed.links.namespaces import inside
from testbed.links.relay.counters import Counters
from testbed.links.relay.model import Drop, LinkModel
from testbed.links.seeds import direction_random
from testbed.links.sizes import queue_bytes
from testbed.links.system import Timer
from testbed.links.tap import close_tap, open_tap
from testbed.topology.model import Shape

_FRAME_EXTRA = 18  # Ethernet header and a VLAN tag
_READS_AT_ONCE = 32  # frames taken from one tap before the others have their turn


@dataclass(slots=True)
class Direction:
    """From one tap to the other."""

    source: int
    target: int
    room: int  # largest frame
    model: LinkModel
    open: bool = True


@dataclass(frozen=True, slots=True)
class Link:
    """Both directions of one node's access link."""

    mtu: int
    up: Direction
    down: Direction


class Switch:
    """All links of a lab."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._links: dict[str, Link] = {}
        self._by_fd: dict[int, Direction] = {}
        self._others: dict[int, Callable[[], None]] = {}
        self._due: list[tuple[int, int, Direction, bytes]] = []
        self._sequence = 0
        self._timer = Timer()
        self._timer_at: int | None = None
        self._epoll = select.epoll()
        self._epoll.register(self._timer.fd, select.EPOLLIN)

    def watch(self, fd: int, readable: Callable[[], None]) -> None:
        """Call back when something else can be read."""
        self._others[fd] = readable
        self._epoll.register(fd, select.EPOLLIN)

    def add(self, name: str, node_ns: int, node_if: str, core_if: str, mtu: int) -> None:
        """Make the two taps of a link, both down; unlimited until shaped."""
        with inside(node_ns):
            node = open_tap(node_if)
        try:
            core = open_tap(core_if)
        except BaseException:
            close_tap(node)
            raise
        room = mtu + _FRAME_EXTRA
        free = Shape()
        up = Direction(node, core, room, LinkModel(free, queue_bytes(free, mtu), Random(0)))
        down = Direction(core, node, room, LinkModel(free, queue_bytes(free, mtu), Random(0)))
        self._links[name] = Link(mtu, up, down)
        for direction in (up, down):
            self._by_fd[direction.source] = direction
            self._epoll.register(direction.source, select.EPOLLIN)

    def remove(self, name: str) -> None:
        """Both taps go; frames under way are lost with them."""
        link = self._links.pop(name, None)
        if link is None:
            return
        for direction in (link.up, link.down):
            self._forget(direction)
            close_tap(direction.source)

    def _forget(self, direction: Direction) -> None:
        direction.open = False
        if self._by_fd.pop(direction.source, None) is not None:
            self._epoll.unregister(direction.source)

    def shape(self, name: str, up: Shape, down: Shape, seed: int | None) -> None:
        """Both directions from now on; a seed starts their randomness anew."""
        link = self._links[name]
        for label, direction, shape in (("up", link.up, up), ("down", link.down, down)):
            direction.model.reshape(shape, queue_bytes(shape, link.mtu))
            if seed is not None:
                direction.model.reseed(direction_random(seed, name, label))

    def turn(self) -> None:
        """Wait for something to happen and deal with it."""
        for fd, _ in self._epoll.poll():
            direction = self._by_fd.get(fd)
            if direction is not None:
                self._take_in(direction)
            elif fd == self._timer.fd:
                self._timer.clear()
                self._timer_at = None
            elif fd in self._others:
                self._others[fd]()
        self._deliver_due()

    def _take_in(self, direction: Direction) -> None:
        for _ in range(_READS_AT_ONCE):
            try:
                frame = os.read(direction.source, direction.room)
            except BlockingIOError:
                return
            except OSError:  # somebody removed the interface; epoll would report that for ever
                self._forget(direction)
                return
            arrival = direction.model.on_packet(len(frame), time.monotonic_ns())
            if arrival is Drop.QUEUE:
                self.counters.dropped_queue += 1
            elif arrival is Drop.LOSS:
                self.counters.dropped_loss += 1
            else:
                self._sequence += 1
                heapq.heappush(self._due, (arrival, self._sequence, direction, frame))

    def _deliver_due(self) -> None:
        due = self._due
        while due and due[0][0] <= (now := time.monotonic_ns()):
            at, _, direction, frame = heapq.heappop(due)
            if not direction.open:
                continue
            try:
                os.write(direction.target, frame)
            except OSError:
                self.counters.undelivered += 1
            else:
                self.counters.delivered(now - at)
        next_at = due[0][0] if due else None
        if next_at != self._timer_at:
            self._timer.set(next_at)
            self._timer_at = next_at
