"""Narrow links as labs have them, each with a contestant at its ends, all in one core and at the same time.

The nodes behind a link are behind a router whose link it is, so several may share it. Captures listen where
packets reach the receivers, and leave again.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.support.delivery.contestant import Contestant, Stage, program
from benchmarks.support.delivery.traffic import Due, Row, row
from benchmarks.support.labs import BareCore
from benchmarks.support.process_usage import processor_s
from testbed.errors import TestbedError
from testbed.keeper.client import NodeProcess, Program
from testbed.links.emulator import choose
from testbed.links.spec import LinkSpec
from testbed.topology.model import Emulator, Shape

READY_S = 60.0
BEFORE_START_S = 2.0
LOOK_S = 0.2
SNAPLEN = 96
LINE, NOISE, SINK = "line", "noise", "sink"


@dataclass(frozen=True, slots=True)
class LinkKind:
    """A kind of link: `down` is toward the receiver."""

    name: str
    down: Shape
    up: Shape = field(default_factory=Shape)
    mtu: int = 1500
    noise: float = 0.0  # other traffic, as a share of the rate


@dataclass(slots=True)
class Entry:
    """A contestant on a link."""

    link: LinkKind
    contestant: Contestant
    timeline: Sequence[Due]
    stage: Stage
    links: list[LinkSpec]
    pids: dict[str, int] = field(default_factory=dict)  # of all nodes, by name

    @property
    def sender_pid(self) -> int:
        """The process that feeds the link."""
        return self.pids[self.stage.node(self.contestant.sender)]

    @property
    def receivers(self) -> list[str]:
        """Names of the nodes behind the link."""
        return [self.stage.node(role) for role in self.contestant.far]


class LinksUnderTest(BareCore):
    """A core with links; a context manager, which ends all of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "delivery")
        self._entries: list[Entry] = []
        self._number = 0

    def add(self, link: LinkKind, contestant: Contestant, timeline: Sequence[Due]) -> None:
        """Add a link with a contestant of its own."""
        prefix = f"c{len(self._entries)}"
        near, far = list(contestant.near), list(contestant.far)
        if link.noise:
            near.append(NOISE)
            far.append(SINK)
        router = self._link(f"{prefix}-{LINE}", link.mtu)
        specs = {role: self._link(f"{prefix}-{role}", link.mtu) for role in near}
        specs |= {role: self._link(f"{prefix}-{role}", link.mtu, router.node) for role in far}
        folder = self._folder / prefix
        folder.mkdir()
        addresses = {role: spec.address for role, spec in specs.items()}
        stage = Stage(prefix, self._place, folder, addresses)
        self._entries.append(Entry(link, contestant, timeline, stage, [router, *specs.values()]))

    def _link(self, node: str, mtu: int, behind: str | None = None) -> LinkSpec:
        self._number += 1
        high, low = divmod(self._number, 256)
        alias = f"testbed {self._place.folder} benchmark {node}"
        mac = f"02:74:62:00:{high:02x}:{low:02x}"
        return LinkSpec(node, self._number, f"10.77.{high}.{low}", 16, mac, mtu, alias, behind)

    def up(self) -> None:
        """Start processes, links and captures; return when all contestants are connected."""
        wanted: list[Program | NodeProcess] = []
        for entry in self._entries:
            wanted += entry.contestant.prepare(entry.stage, entry.timeline)
            wanted += _noise(entry)
        nodes = [process for process in wanted if isinstance(process, NodeProcess)]
        programs = [process for process in wanted if isinstance(process, Program)]
        born, unborn = self._keeper.fork(nodes)
        started, failed = self._keeper.spawn(programs)
        if lost := {**unborn, **failed}:
            raise TestbedError(f"not started: {lost}")
        self._keeper.routers([entry.stage.node(LINE) for entry in self._entries])
        self._wire()
        for entry in self._entries:
            entry.pids = born | started
            entry.contestant.begin(entry.stage)
        self._wait_until_ready()

    @property
    def sender_pids(self) -> list[int]:
        """The processes that feed the links."""
        return [entry.sender_pid for entry in self._entries]

    def _wire(self) -> None:
        shapes = {link.node: (Shape(), Shape()) for entry in self._entries for link in entry.links}
        for entry in self._entries:
            shapes[entry.stage.node(LINE)] = (entry.link.up, entry.link.down)
        lines = [shape for both in shapes.values() for shape in both]
        emulator, why = choose(Emulator.AUTO, lines, self._keeper.capabilities())
        print(f"{len(self._entries)} links, {emulator}: {why}", file=sys.stderr)
        self._keeper.wire(emulator, [link for entry in self._entries for link in entry.links])
        self._keeper.shape(shapes, seed=1)
        listened = [name for entry in self._entries for name in entry.receivers]
        self._keeper.capture([name for name in shapes if name not in listened], None)
        self._keeper.capture(listened, self._folder / "pcap", SNAPLEN)

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

    def played(self, longest_s: float, quiet_s: float) -> dict[str, list[Row]]:
        """Play all timelines until everything has arrived, or nothing for `quiet_s`; return the rows by link."""
        start_ns = time.time_ns() + round(BEFORE_START_S * 1e9)
        for entry in self._entries:
            entry.contestant.play(entry.stage, start_ns, entry.timeline)
        time.sleep(max(0.0, start_ns - time.time_ns()) / 1e9)
        before = [_processor_s(entry) for entry in self._entries]
        self._wait_for_the_end(start_ns, longest_s, quiet_s)
        after = [_processor_s(entry) for entry in self._entries]
        counts, problem = self._keeper.capture_stop()
        if problem:
            raise TestbedError(problem)
        rows: dict[str, list[Row]] = {}
        for entry, began, ended in zip(self._entries, before, after, strict=True):
            found = row(
                entry.contestant.name,
                entry.timeline,
                start_ns,
                entry.contestant.arrivals(entry.stage),
                sum(counts[name]["bytes"] for name in entry.receivers),
                ended - began,
            )
            rows.setdefault(entry.link.name, []).append(found)
        return rows

    def _wait_for_the_end(self, start_ns: int, longest_s: float, quiet_s: float) -> None:
        last_due_ns = start_ns + max(entry.timeline[-1].at_ns for entry in self._entries)
        time.sleep(max(0.0, last_due_ns - time.time_ns()) / 1e9)
        print("all was sent; waiting for what is under way", file=sys.stderr)
        while time.time_ns() < start_ns + longest_s * 1e9:
            if all(self._is_done(entry, last_due_ns, quiet_s) for entry in self._entries):
                return
            time.sleep(1.0)

    @staticmethod
    def _is_done(entry: Entry, last_due_ns: int, quiet_s: float) -> bool:
        arrivals = entry.contestant.arrivals(entry.stage)
        if len(arrivals) == len(entry.timeline):
            return True
        latest = max([last_due_ns, *arrivals.values()])
        return time.time_ns() - latest > quiet_s * 1e9


def _processor_s(entry: Entry) -> float:
    """Processor time of the process that feeds the link; TestbedError if it has ended."""
    try:
        return processor_s(entry.sender_pid)
    except OSError as gone:
        words = stderr_tail(entry.stage)
        raise TestbedError(f"{entry.contestant.name} has ended before its time: {words}") from gone


def _noise(entry: Entry) -> list[Program]:
    rate = (entry.link.down.rate_bps or 0) / 8 * entry.link.noise
    if not rate:
        return []
    stage, module = entry.stage, "benchmarks.support.delivery.noise"
    to = stage.addresses[SINK]
    return [
        program(stage, role, sys.executable, "-m", module, what, to, str(rate))
        for role, what in ((NOISE, "send"), (SINK, "take"))
    ]


def stderr_tail(stage: Stage) -> str:
    """The last lines that the programs of a contestant wrote on stderr."""
    tails = [
        path.read_text().strip().splitlines()[-1:] for path in sorted(stage.folder.glob("*.stderr"))
    ]
    return "; ".join(tail[0] for tail in tails if tail) or "its stderr is empty"
