"""The relay's work: frames in from taps, through the model, out at their time. One epoll loop for all links."""

import heapq
import os
import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from testbed.links.changes import DirectionState
from testbed.links.model import Drop, LinkModel, direction_random, queue_bytes
from testbed.links.tap import close_tap
from testbed.monitor.shared_counters import LATE_BUCKETS, SharedCounters, private_counters
from testbed.syscalls import Timer
from testbed.topology.model import Shape

# Counters of the relay: how much it forwarded, and how late. They show an overloaded machine.


@dataclass(slots=True)
class Tally:
    """What became of packets."""

    forwarded: int = 0
    dropped: dict[Drop, int] = field(default_factory=lambda: dict.fromkeys(Drop, 0))

    def report(self) -> dict[str, int]:
        """Plain JSON values."""
        drops = {f"dropped_{why}": count for why, count in self.dropped.items()}
        return {"forwarded": self.forwarded, **drops}


@dataclass(slots=True)
class Counters:
    """Sums over all links; a packet is late by the time between its due moment and its delivery."""

    shared: SharedCounters = field(
        default_factory=private_counters
    )  # where the monitor reads the lateness
    total: Tally = field(default_factory=Tally)
    undelivered: int = 0  # the interface was down or gone
    late_max_ns: int = 0
    _before_restart: list[int] = field(
        default_factory=lambda: [0] * LATE_BUCKETS
    )  # before the last restart

    def delivered(self, late_ns: int) -> None:
        """One packet handed over."""
        self.total.forwarded += 1
        self.late_max_ns = max(self.late_max_ns, late_ns)
        self.shared.relay_late[min((late_ns // 1000).bit_length(), LATE_BUCKETS - 1)] += 1
        self.shared.relay_peak_ns[0] = max(self.shared.relay_peak_ns[0], late_ns)

    def restart_lateness(self) -> None:
        """From now on, only packets to come count as late; the packets' own counts go on."""
        self.late_max_ns = 0
        self._before_restart = list(self.shared.relay_late)

    def late_ns(self, share: float) -> int:
        """This share of all packets was at most so late (an upper bound, to a power of two)."""
        counts = [
            now - before
            for now, before in zip(self.shared.relay_late, self._before_restart, strict=True)
        ]
        wanted = share * sum(counts)
        seen = 0
        for bucket, count in enumerate(counts):
            seen += count
            if seen >= wanted:
                return min(1000 << bucket, self.late_max_ns)
        return self.late_max_ns

    def report(self) -> dict[str, Any]:
        """Plain JSON values, times in seconds."""
        return {
            **self.total.report(),
            "undelivered": self.undelivered,
            "late_max_s": self.late_max_ns / 1e9,
            "late_p50_s": self.late_ns(0.50) / 1e9,
            "late_p99_s": self.late_ns(0.99) / 1e9,
        }


_FRAME_EXTRA = 18  # Ethernet header and a VLAN tag
_READS_AT_ONCE = 32  # frames taken from one tap before the others have their turn


@dataclass(slots=True)
class Direction:
    """From one tap to the other."""

    source: int
    target: int
    max_frame: int  # largest frame
    model: LinkModel
    tally: Tally = field(default_factory=Tally)
    cut: bool = False
    open: bool = True


@dataclass(frozen=True, slots=True)
class RelayedLink:
    """Both directions of one node's access link."""

    mtu: int
    up: Direction
    down: Direction


class Switch:
    """All links of a lab."""

    def __init__(self, counters: Counters | None = None) -> None:
        self.counters = counters or Counters()
        self._links: dict[str, RelayedLink] = {}
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

    def add(self, name: str, node: int, far: int, mtu: int) -> None:
        """A link between two taps, which are this switch's from now on; unlimited until shaped."""
        max_frame = mtu + _FRAME_EXTRA
        free = Shape()
        up = Direction(node, far, max_frame, LinkModel(free, queue_bytes(free, mtu), Random(0)))
        down = Direction(far, node, max_frame, LinkModel(free, queue_bytes(free, mtu), Random(0)))
        self._links[name] = RelayedLink(mtu, up, down)
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

    def shape(
        self, states: Mapping[str, tuple[DirectionState, DirectionState]], seed: int | None
    ) -> None:
        """Link -> up and down from now on; a seed starts their randomness anew. Nothing if one link is unknown."""
        cut: dict[int, Direction] = {}
        for name, link in {name: self._links[name] for name in states}.items():
            up, down = states[name]
            for label, direction, state in (("up", link.up, up), ("down", link.down, down)):
                direction.model.reshape(state.shape, queue_bytes(state.shape, link.mtu))
                if seed is not None:
                    direction.model.reseed(direction_random(seed, name, label))
                if state.cut and not direction.cut:
                    cut[id(direction)] = direction
                direction.cut = state.cut
        if cut:
            self._drop_in_flight(cut)

    def _drop_in_flight(self, cut: Mapping[int, Direction]) -> None:
        """Drop what is in flight in these directions (by their ids), in one pass over the queue."""
        staying = []
        for entry in self._due:
            if id(entry[2]) in cut:
                self._drop(entry[2], Drop.CUT)
            else:
                staying.append(entry)
        heapq.heapify(staying)
        self._due = staying
        for direction in cut.values():
            direction.model.clear()

    def tallies(self) -> dict[str, Any]:
        """What became of the packets of each link, by direction."""
        return {
            name: {"up": link.up.tally.report(), "down": link.down.tally.report()}
            for name, link in self._links.items()
        }

    def turn(self) -> None:
        """Wait for something to happen and deal with it."""
        for fd, _ in self._epoll.poll():
            direction = self._by_fd.get(fd)
            if direction is not None:
                self._read_frames(direction)
            elif fd == self._timer.fd:
                self._timer.clear()
                self._timer_at = None
            elif fd in self._others:
                self._others[fd]()
        self._deliver_due()

    def _read_frames(self, direction: Direction) -> None:
        for _ in range(_READS_AT_ONCE):
            try:
                frame = os.read(direction.source, direction.max_frame)
            except BlockingIOError:
                return
            except OSError:  # the interface was removed; epoll would report that for ever
                self._forget(direction)
                return
            if direction.cut:
                self._drop(direction, Drop.CUT)
                continue
            arrival = direction.model.on_packet(len(frame), time.monotonic_ns())
            if isinstance(arrival, Drop):
                self._drop(direction, arrival)
                continue
            self._sequence += 1
            heapq.heappush(self._due, (arrival, self._sequence, direction, frame))

    def _drop(self, direction: Direction, why: Drop) -> None:
        direction.tally.dropped[why] += 1
        self.counters.total.dropped[why] += 1

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
                direction.tally.forwarded += 1
                self.counters.delivered(now - at)
        next_at = due[0][0] if due else None
        if next_at != self._timer_at:
            self._timer.set(next_at)
            self._timer_at = next_at
