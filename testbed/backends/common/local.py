"""The common part of the backends on this machine: the keeper with its links, and the gates of the nodes."""

import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from testbed.backends.common.base import Done, Ended
from testbed.backends.common.gates import nodes_past_gate, open_brokers_first
from testbed.backends.common.node_config import link_spec, stored_fingerprint, write_node_files
from testbed.control import ControlError
from testbed.errors import InputError, NodeFailure, few
from testbed.keeper.client import MAX_SOCKET_PATH, Keeper
from testbed.keeper.processes import STOP_GRACE_S, end_marked
from testbed.links.changes import LinkState
from testbed.links.emulator import choose
from testbed.places import LabPlace, RunPlace
from testbed.plan import Actual, Fingerprints
from testbed.topology.model import Emulator, Node, NodeKind, Topology

_START_S = 30.0
_START_EACH_S = 0.5  # a Python start on a busy core
_KILL_S = 5.0
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.002, 0.05  # short at first: a killed process ends soon
_QUOTED = 300  # characters of a node's last log line


class LocalBackend(ABC):
    """A lab of processes or containers on this machine; subclasses make and end nodes."""

    name = "local"

    def __init__(self, lab: LabPlace, run: RunPlace, topology: Topology) -> None:
        self._lab = lab
        self._run = run
        self._topology = topology
        self._fingerprints = Fingerprints(topology)
        self._chosen: tuple[Emulator, str] | None = None

    @property
    def emulator(self) -> str:
        """The emulator of this lab's links."""
        return self._emulator()[0].value

    @property
    def emulator_reason(self) -> str:
        """Why this emulator."""
        return self._emulator()[1]

    def inspect(self, names: Collection[str] | None = None) -> Actual:
        """Ask the keeper, the machine and the nodes; without a keeper nothing is prepared."""
        keeper = Keeper.connect(self._lab)
        if keeper is None:
            return Actual()
        status = keeper.status()
        if names is not None:
            status["nodes"] = {
                name: status["nodes"][name] for name in names if name in status["nodes"]
            }
        created = self._created(status)
        linkable = self._linkable(status, created)
        known = created | status["nodes"].keys()
        prints = {name: stored_fingerprint(self._lab, name) for name in known}
        return Actual(
            prepared=True,
            created=created,
            wired=linkable.intersection(status["wired"]),
            shaped=linkable.intersection(status["shaped"]),
            captured=linkable.intersection(status["captured"]),
            started=self._started(created),
            fingerprints={name: value for name, value in prints.items() if value is not None},
        )

    def prepare(self, topology: Topology) -> None:
        """Launch a keeper, and choose the emulator."""
        check_socket_paths(self._lab, topology)
        self._topology = topology
        self._fingerprints = Fingerprints(topology)
        self._lab.folder.mkdir(parents=True, exist_ok=True)
        keeper = Keeper.launch(self._lab, self._run.run)
        if topology.capture.enabled:
            keeper.expect_capture()
        self._chosen = self._choose(keeper)

    def wire(self, nodes: Sequence[Node], done: Done) -> None:
        """Make one access link a node, down."""
        specs = [link_spec(self._topology, node, self._lab, self._run) for node in nodes]
        self._keeper().wire(self._emulator()[0], specs)
        _all_done(nodes, done)

    def shape(self, nodes: Sequence[Node], done: Done) -> None:
        """Shape links by their profiles; losses and jitter follow the topology's seed."""
        profiles = {node.name: self._topology.profile(node.profile) for node in nodes}
        shapes = {name: (profile.up, profile.down) for name, profile in profiles.items()}
        self._keeper().shape(shapes, self._topology.seed)
        _all_done(nodes, done)

    def capture(self, nodes: Sequence[Node], done: Done) -> None:
        """Start the capture, if the topology asks for it, and set the links up."""
        capture = self._topology.capture
        folder = self._run.pcaps if capture.enabled else None
        self._keeper().capture([node.name for node in nodes], folder, capture.snaplen)
        _all_done(nodes, done)

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        """Open the gates."""
        self._raise_failures("did not start", self._open_gates(nodes, done))

    def _open_gates(self, nodes: Sequence[Node], done: Done) -> dict[str, str]:
        patience_s = _START_S + _START_EACH_S * len(nodes)
        return open_brokers_first(self._lab, nodes, self._living, patience_s, done)

    def signal(self, nodes: Sequence[str], number: int) -> None:
        """Through the keeper, without a check whether it lives; check only if it does not answer."""
        try:
            Keeper(self._lab).signal(nodes, number)
        except ControlError:
            self._keeper()
            raise

    def links(self) -> dict[str, LinkState]:
        """The current settings, from the keeper."""
        return self._keeper().links()

    def change_links(self, links: Mapping[str, LinkState], before: Mapping[str, LinkState]) -> None:
        """Change links; if the kernel refuses one of them, restore all."""
        keeper = Keeper(self._lab)  # without a check whether it lives: time is short
        try:
            keeper.change_links(links)
        except BaseException:
            with suppress(ControlError):
                keeper.change_links({name: before[name] for name in links})
            raise

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """Partition the core, where links meet."""
        Keeper(self._lab).partition(number, sides)

    def heal(self, number: int) -> None:
        """End the partition."""
        Keeper(self._lab).heal(number)

    def expect_starts(self) -> None:  # noqa: B027 - a container's program is loaded inside it
        """Do nothing: only nodes that the keeper forks need preparation."""

    def expect_load(self) -> None:
        """Let the keeper start its sending process."""
        Keeper(self._lab).expect_load()

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        """A process of the keeper sends, with sockets in the nodes' namespaces."""
        Keeper(self._lab).load(number, nodes, to, rate_bps, size)

    def unload(self, number: int) -> dict[str, int]:
        """End the load; return its counts."""
        return Keeper(self._lab).unload(number)

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        """Run a command in the node's network, with this machine's files."""
        keeper = Keeper(self._lab)
        number = keeper.execute(node.name, command, output)
        return lambda: keeper.executed(number)

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """The emulator's packet counts."""
        return self._keeper().link_counts()

    def captured(self) -> tuple[dict[str, dict[str, int]], str]:
        """End the capture."""
        keeper = self._keeper()
        relay = keeper.status()["workers"]["relay"]
        links, trouble = keeper.capture_stop()
        died = "the relay had died, and its links with it" if relay == "dead" else ""
        return links, "; ".join(filter(None, [died, trouble]))

    def details(self) -> dict[str, Any]:
        """The relay's counters: a late relay means an overloaded machine."""
        keeper = Keeper.connect(self._lab)
        if keeper is None:
            return {}
        relay = keeper.counters()
        return {} if relay is None else {"relay": relay}

    def destroy(self) -> list[str]:
        """End every process that carries the lab's mark."""
        return end_marked(self._lab)

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        """Make namespaces for routers, and processes or containers, which wait at their gates, for other nodes."""
        self._check_before_creating()
        routers = [node for node in nodes if node.kind is NodeKind.ROUTER]
        if routers:
            self._keeper().routers([node.name for node in routers])
        for node in routers:
            self._write(node, {})
            done(node.name)
        if others := [node for node in nodes if node.kind is not NodeKind.ROUTER]:
            self._create(others, done)

    def _write(self, node: Node, config: dict[str, Any]) -> Path:
        """Write the node's files, with its fingerprint."""
        return write_node_files(self._lab, node, config, self._fingerprints.of(node))

    @abstractmethod
    def _create(self, nodes: Sequence[Node], done: Done) -> None:
        """Make processes or containers, which wait at their gates."""

    @abstractmethod
    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """End the nodes: SIGTERM, then SIGKILL."""

    @abstractmethod
    def remove(self, names: Sequence[str], done: Done) -> None:
        """Remove nodes and links."""

    @abstractmethod
    def _created(self, status: Mapping[str, Any]) -> frozenset[str]:
        """The nodes that run, given the keeper's status."""

    def _started(self, created: frozenset[str]) -> frozenset[str]:
        """The nodes whose gate is open."""
        return nodes_past_gate({name: self._lab.node_control(name) for name in created})

    def _linkable(self, status: Mapping[str, Any], created: frozenset[str]) -> frozenset[str]:
        """The nodes whose links are usable: also dead nodes, if the keeper made their namespaces."""
        return created.union(status["nodes"])

    def _check_before_creating(self) -> None:
        """Check again: the topology may have got more nodes since `prepare`."""
        check_socket_paths(self._lab, self._topology)
        self._run.logs.mkdir(parents=True, exist_ok=True)

    def _end(self, names: Iterable[str], done: Done) -> dict[str, str]:
        """End the nodes' processes by SIGTERM, then SIGKILL; return the reasons of those that still run."""
        ending = set(names)
        for number, patience_s in ((signal.SIGTERM, STOP_GRACE_S), (signal.SIGKILL, _KILL_S)):
            ending = self._end_by(number, ending, patience_s, done)
        return dict.fromkeys(sorted(ending), "it survived SIGKILL")

    def _end_by(self, number: int, ending: set[str], patience_s: float, done: Done) -> set[str]:
        """Send the signal and wait; return the nodes that still run."""
        keeper = self._keeper()
        known = keeper.status()["nodes"].keys()
        keeper.signal(sorted(ending & known), number)
        deadline, pause_s = time.monotonic() + patience_s, _FIRST_PAUSE_S
        while ending:
            entries = keeper.status()["nodes"]
            gone = {name for name in ending if name not in entries or not entries[name]["running"]}
            for name in sorted(gone):
                done(name)
            ending = ending - gone
            if time.monotonic() > deadline:
                break
            if ending:
                time.sleep(pause_s)
                pause_s = min(1.5 * pause_s, _LAST_PAUSE_S)
        return ending

    def _living(self) -> frozenset[str]:
        return self._created(self._keeper().status())

    def _keeper(self) -> Keeper:
        keeper = Keeper.connect(self._lab)
        if keeper is None:
            raise ControlError(
                f"the keeper of lab {self._lab.name} has ended",
                f"`testbed up FILE` recreates the lab, `testbed down {self._lab.name}` removes the rest",
            )
        return keeper

    def _emulator(self) -> tuple[Emulator, str]:
        if self._chosen is None:
            keeper = self._keeper()
            serving = keeper.status()["emulator"]
            if serving is None:
                self._chosen = self._choose(keeper)
            else:
                self._chosen = Emulator(serving), "serves this lab's links already"
        return self._chosen

    def _choose(self, keeper: Keeper) -> tuple[Emulator, str]:
        used = {node.profile for node in self._topology.here}
        profiles = [profile for profile in self._topology.profiles if profile.name in used]
        shapes = [shape for profile in profiles for shape in (profile.up, profile.down)]
        return choose(self._topology.emulator, shapes, keeper.capabilities())

    def _raise_failures(self, what: str, failed: Mapping[str, str]) -> None:
        """Raise one error that names all failed nodes, with the last log line of the first."""
        if not failed:
            return
        first, reason = next(iter(failed.items()))
        last_line = last_log_line(self._run.logs / f"{first}.stderr")
        raise NodeFailure(
            f"{few(list(failed))} {what} ({first}: {reason}{'; ' + last_line if last_line else ''})",
            f"see `testbed logs {self._lab.name} {first}`; `testbed up` again retries",
            failed,
        )


def check_socket_paths(lab: LabPlace, topology: Topology) -> None:
    """InputError if the path of a control socket would be longer than the kernel allows."""
    paths = [lab.keeper_socket, *(lab.node_control(node.name) for node in topology.nodes)]
    longest = max(paths, key=lambda path: len(str(path)))
    if len(str(longest)) > MAX_SOCKET_PATH:
        raise InputError(
            f"the path of a control socket would be too long: {longest}",
            "choose a shorter state folder with TESTBED_STATE, or shorter names for lab and nodes",
        )


def last_log_line(log: Path) -> str:
    """The last line of a node's log."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][-_QUOTED:] if lines else ""


def _all_done(nodes: Sequence[Node], done: Done) -> None:
    for node in nodes:
        done(node.name)
