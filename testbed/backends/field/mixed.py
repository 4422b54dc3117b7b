"""A lab in two places: some nodes on boards, the others on this machine, each with its own backend."""

import os
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.backends.common.base import Backend, Done, Ended
from testbed.backends.field.backend import BoardsBackend
from testbed.backends.field.boards import Uplink
from testbed.errors import InputError, MissingCapability, NodeFailure, TestbedError
from testbed.keeper.client import Keeper
from testbed.links.changes import LinkState
from testbed.links.namespaces import inside, privileged
from testbed.places import LabPlace
from testbed.plan import Actual
from testbed.topology.model import Node, Topology

# The uplink: an interface of the lab's core in the boards' network.
#
# It is a veth on a bridge, else a macvlan. The core is a neighbour of the boards, with an address of its own, and this
# machine forwards nothing. The interface vanishes with the core.


IN_CORE = "uplink"
_COMMAND_S = 10.0


def connect(lab: LabPlace, uplink: Uplink) -> None:
    """Make the uplink, by which boards reach the core, unless it exists."""
    if not privileged():
        raise MissingCapability(
            "nodes of this machine and boards in one lab need root: an interface is given to the lab",
            "sudo testbed deploy ..., or put all nodes on boards",
        )
    if not Path("/sys/class/net", uplink.interface).exists():
        raise InputError(
            f"this machine has no interface {uplink.interface!r}",
            "set `testbed_uplink_interface` in the inventory to the one in the boards' network",
        )
    core = Keeper(lab).status()["pid"]
    ns_fd = os.open(f"/proc/{core}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with inside(ns_fd):
            there = Path("/proc/thread-self/net/dev").read_text()
        if f"{IN_CORE}:" not in there:
            _make(uplink, f"tbu{core}", str(core), f"testbed {lab.folder} {IN_CORE}")
        with inside(ns_fd):
            _ip("address", "replace", uplink.address, "dev", IN_CORE)
            _ip("link", "set", IN_CORE, "up")
            Path(f"/proc/sys/net/ipv4/conf/{IN_CORE}/forwarding").write_text("1")
    finally:
        os.close(ns_fd)


def _make(uplink: Uplink, outside: str, core: str, alias: str) -> None:
    if Path("/sys/class/net", uplink.interface, "bridge").exists():
        _ip("link", "add", outside, "type", "veth", "peer", "name", IN_CORE, "netns", core)
        _ip("link", "set", outside, "alias", alias)
        _ip("link", "set", outside, "master", uplink.interface, "up")
        return
    macvlan = ("type", "macvlan", "mode", "bridge")
    _ip("link", "add", "link", uplink.interface, "name", outside, "alias", alias, *macvlan)
    _ip("link", "set", outside, "netns", core, "name", IN_CORE)


def _ip(*words: str) -> None:
    _run(("ip", *words))


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, check=False, timeout=_COMMAND_S)
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip()
        raise TestbedError(
            f"the uplink to the boards could not be made: {' '.join(argv)}: {errors}",
            "`ip -br address` shows this machine's interfaces; the address must be a free one",
        )


class MixedBackend:
    """`here` is the backend of this machine's nodes, `field` that of nodes on boards."""

    def __init__(
        self, here: Backend, field: BoardsBackend, lab: LabPlace, topology: Topology
    ) -> None:
        self._local, self._boards, self._lab, self._topology = here, field, lab, topology

    @property
    def name(self) -> str:
        """The names of both backends."""
        return f"{self._boards.name}+{self._local.name}"

    @property
    def emulator(self) -> str:
        """The emulator of the links here; boards shape their own links."""
        return self._local.emulator

    @property
    def emulator_reason(self) -> str:
        """The reasons of both backends."""
        return f"{self._local.emulator_reason}; {self._boards.emulator_reason}"

    def inspect(self, names: Collection[str] | None = None) -> Actual:
        """The union of both places."""
        here, there = self._local.inspect(names), self._boards.inspect(names)
        return Actual(
            prepared=here.prepared and there.prepared,
            created=here.created | there.created,
            wired=here.wired | there.wired,
            shaped=here.shaped | there.shaped,
            captured=here.captured | there.captured,
            started=here.started | there.started,
            fingerprints={**here.fingerprints, **there.fingerprints},
        )

    def prepare(self, topology: Topology) -> None:
        """Make the core and its uplink to the boards' network."""
        self._local.prepare(topology)
        self._boards.prepare(topology)
        uplink = self._boards.deployment.uplink
        assert uplink is not None
        connect(self._lab, uplink)

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.create(part, done), nodes)

    def wire(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.wire(part, done), nodes)

    def shape(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.shape(part, done), nodes)

    def capture(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.capture(part, done), nodes)

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.start(part, done), nodes)

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        self._both(lambda backend, part: backend.stop(part, done), nodes)

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """Signal the nodes of each place through its own backend."""
        there, here = self._split_by_place(nodes)
        if here:
            self._local.signal(here, number)
        if there:
            self._boards.signal(there, number)

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Remove the nodes of each place through its own backend."""
        on_boards = {board.node for board in self._boards.deployment.boards}
        self._boards.remove([name for name in names if name in on_boards], done)
        self._local.remove([name for name in names if name not in on_boards], done)

    def links(self) -> dict[str, LinkState]:
        return {**self._local.links(), **self._boards.links()}

    def change_links(self, links: Mapping[str, LinkState], before: Mapping[str, LinkState]) -> None:
        """Change the boards' links first: if a board refuses, no link here was changed."""
        there, here = self._split_by_place([*links])
        if there:
            self._boards.change_links({name: links[name] for name in there}, before)
        if here:
            try:
                self._local.change_links({name: links[name] for name in here}, before)
            except TestbedError:
                if there:
                    self._boards.change_links({name: before[name] for name in there}, links)
                raise

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Partition the core; boards cannot be partitioned."""
        backend = (
            self._boards
            if self._split_by_place([n for side in sides for n in side])[0]
            else self._local
        )
        backend.partition(number, sides)

    def heal(self, number: int) -> None:
        self._local.heal(number)

    def expect_starts(self) -> None:
        self._local.expect_starts()

    def expect_load(self) -> None:
        self._local.expect_load()

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """Send between nodes of this machine; boards cannot send loads."""
        backend = self._boards if self._split_by_place([*nodes, to])[0] else self._local
        backend.load(number, nodes, to, rate_bps, size)

    def unload(self, number: int) -> dict[str, int]:
        return self._local.unload(number)

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        return (self._boards if node.on_board else self._local).execute(node, command, output)

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        return {**self._local.link_counts(), **self._boards.link_counts()}

    def captured(self) -> tuple[dict[str, dict[str, int]], str]:
        """Collect from both places, also if one of them fails."""
        there, missing = self._boards.captured()
        here, trouble = self._local.captured()
        return {**here, **there}, "; ".join(filter(None, [trouble, missing]))

    def details(self) -> dict[str, Any]:
        return {**self._local.details(), **self._boards.details()}

    def destroy(self) -> list[str]:
        return self._boards.destroy() + self._local.destroy()

    def _both(self, do: Callable[[Backend, Sequence[Node]], None], nodes: Sequence[Node]) -> None:
        """Call the backend of this machine, then that of the boards; raise the failures of both as one."""
        failures = []
        for backend, on_board in ((self._local, False), (self._boards, True)):
            part = [node for node in nodes if node.on_board is on_board]
            if not part:
                continue
            try:
                do(backend, part)
            except NodeFailure as failure:
                failures.append(failure)
        if failures:
            raise NodeFailure.of(failures)

    def _split_by_place(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        there = [name for name in names if self._topology.node(name).on_board]
        return there, [name for name in names if name not in there]
