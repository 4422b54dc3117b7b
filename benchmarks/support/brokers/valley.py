"""The valley on links of a lab: each contestant has a valley of its own, all in one core and at the same time."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.support.brokers.scene import Arrivals, Reception, Timelines, reception
from benchmarks.support.delivery.contestant import Stage
from benchmarks.support.delivery.links import stderr_tail
from benchmarks.support.labs import BareCore
from testbed.errors import TestbedError
from testbed.keeper.client import NodeProcess, Program
from testbed.links.emulator import choose
from testbed.links.spec import LinkSpec
from testbed.topology.model import Emulator, Shape
from testbed.topology.profiles import PROFILES

READY_S = 120.0
SETTLED_S = 5.0  # after all are ready: the overlay's upper levels
BEFORE_START_S = 5.0
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Post:
    """The place of a node: the link profile, None for none; behind which router; whether it is one itself."""

    role: str
    profile: str | None
    behind: str | None = None
    router: bool = False


class Contestant(Protocol):
    """A system that carries alerts to offices."""

    @property
    def name(self) -> str: ...

    def check(self) -> None:
        """MissingCapability if it cannot run here."""

    def posts(self) -> Sequence[Post]:
        """All nodes, routers before those behind them."""

    def prepare(self, stage: Stage, sent: Timelines) -> list[Program | NodeProcess]:
        """Write its files; return the programs to start, each in a namespace of its own."""

    def begin(self, stage: Stage) -> None:
        """Start work: the links are up."""

    def is_ready(self, stage: Stage) -> bool:
        """Whether all programs are connected."""

    def play(self, stage: Stage, start_ns: int, sent: Timelines) -> None:
        """Send the messages by the clock, from that moment on."""

    def arrivals(self, stage: Stage) -> Arrivals:
        """The messages that have arrived so far."""


@dataclass(frozen=True, slots=True)
class _Entry:
    title: str  # with or without a backlog
    contestant: Contestant
    sent: Timelines
    stage: Stage
    links: Mapping[str, LinkSpec]  # by role


class Valleys(BareCore):
    """A core with valleys; a context manager, which ends all of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "valley")
        self._entries: list[_Entry] = []
        self._number = 0

    def add(self, title: str, contestant: Contestant, sent: Timelines) -> None:
        """Add a valley with a contestant of its own."""
        prefix = f"v{len(self._entries)}"
        links = {post.role: self._link(prefix, post) for post in contestant.posts()}
        folder = self._folder / prefix
        folder.mkdir()
        addresses = {role: link.address for role, link in links.items()}
        stage = Stage(prefix, self._place, folder, addresses)
        self._entries.append(_Entry(title, contestant, sent, stage, links))

    def _link(self, prefix: str, post: Post) -> LinkSpec:
        self._number += 1
        high, low = divmod(self._number, 256)
        node = f"{prefix}-{post.role}"
        behind = None if post.behind is None else f"{prefix}-{post.behind}"
        alias = f"testbed {self._place.folder} benchmark {node}"
        mac = f"02:74:62:00:{high:02x}:{low:02x}"
        return LinkSpec(node, self._number, f"10.77.{high}.{low}", 16, mac, 1500, alias, behind)

    def up(self) -> None:
        """Start processes and links; return when all contestants are connected, and had time to settle."""
        wanted = [
            process
            for entry in self._entries
            for process in entry.contestant.prepare(entry.stage, entry.sent)
        ]
        _, unborn = self._keeper.fork([one for one in wanted if isinstance(one, NodeProcess)])
        _, failed = self._keeper.spawn([one for one in wanted if isinstance(one, Program)])
        if lost := {**unborn, **failed}:
            raise TestbedError(f"not started: {lost}")
        self._wire()
        for entry in self._entries:
            entry.contestant.begin(entry.stage)
        self._wait_until_ready()
        time.sleep(SETTLED_S)

    def _wire(self) -> None:
        posts = [(entry, post) for entry in self._entries for post in entry.contestant.posts()]
        routers = [entry.stage.node(post.role) for entry, post in posts if post.router]
        if routers:
            self._keeper.routers(routers)
        shapes = {entry.stage.node(post.role): _shapes(post) for entry, post in posts}
        lines = [shape for both in shapes.values() for shape in both]
        emulator, why = choose(Emulator.AUTO, lines, self._keeper.capabilities())
        print(f"{len(shapes)} links, {emulator}: {why}", file=sys.stderr)
        links = [link for entry in self._entries for link in entry.links.values()]
        self._keeper.wire(emulator, links)
        self._keeper.shape(shapes, seed=1)
        self._keeper.capture(list(shapes), None)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        waiting = list(self._entries)
        while waiting := [e for e in waiting if not e.contestant.is_ready(e.stage)]:
            if time.monotonic() > deadline:
                late = waiting[0]
                raise TestbedError(
                    f"{late.contestant.name} is not ready: {stderr_tail(late.stage)}"
                )
            time.sleep(LOOK_S)

    def played(self, longest_s: float) -> dict[str, list[Reception]]:
        """Play all timelines until everything has arrived, or for this long; return the receptions, by title."""
        start_ns = time.time_ns() + round(BEFORE_START_S * 1e9)
        for entry in self._entries:
            entry.contestant.play(entry.stage, start_ns, entry.sent)
        last_due_ns = max(
            due.at_ns for entry in self._entries for sent in entry.sent.values() for due in sent
        )
        time.sleep(max(0.0, start_ns + last_due_ns - time.time_ns()) / 1e9)
        print("all was sent; waiting for what is under way", file=sys.stderr)
        while time.time_ns() < start_ns + longest_s * 1e9:
            if all(self._reception(entry, start_ns).complete for entry in self._entries):
                break
            time.sleep(1.0)
        found: dict[str, list[Reception]] = {}
        for entry in self._entries:
            found.setdefault(entry.title, []).append(self._reception(entry, start_ns))
        return found

    def _reception(self, entry: _Entry, start_ns: int) -> Reception:
        contestant = entry.contestant
        return reception(contestant.name, entry.sent, start_ns, contestant.arrivals(entry.stage))


def _shapes(post: Post) -> tuple[Shape, Shape]:
    """Up and down."""
    if post.profile is None:
        return Shape(), Shape()
    profile = PROFILES[post.profile]
    return profile.up, profile.down
