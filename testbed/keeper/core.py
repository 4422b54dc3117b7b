"""The core of a lab in its keeper: the node table (`keeper.nodes`), the links, the relay and the capture.

Each public method answers a question of the protocol (docs/explanation/architecture.md) and returns the fields of
the answer.
"""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.keeper.actions import ScenarioActions
from testbed.keeper.nodes import NodeEntry, NodeTable, Refused, adopted_entry
from testbed.keeper.prefork import DeferredAnswer, PreforkWorker
from testbed.keeper.process_title import PADDING, PADDING_VARIABLE
from testbed.keeper.workers import CaptureProcess, MonitorProcess, RelayProcess, Worker
from testbed.links import wiring
from testbed.links.changes import DirectionState
from testbed.links.probe import capabilities
from testbed.links.spec import LinkSpec
from testbed.links.wiring import NODE_IF, ns_path
from testbed.places import LabPlace, RunPlace, marks
from testbed.topology.model import Emulator


class Core:
    """All kernel objects and processes of a lab."""

    def __init__(self, lab: LabPlace, run: str) -> None:
        self._lab = lab
        self._run = run
        self._nodes = NodeTable(
            lambda role: marks(lab, run, role),
            self._prefork_worker,
        )
        self._emulator: Emulator | None = None
        self._relay = RelayProcess(lambda: self._worker("relay", "testbed.links.relay.worker"))
        self._capture = CaptureProcess(
            lambda: self._worker("capture", "testbed.capture.worker", own_network=True)
        )
        self._monitor = MonitorProcess(
            lambda file: self._worker("monitor", "testbed.monitor.worker", str(file))
        )

        self._actions = ScenarioActions(
            self._nodes.entry,
            lambda: self._worker("load", "testbed.keeper.background_traffic"),
            lambda role: marks(lab, run, role),
        )

    def status(self) -> dict[str, Any]:
        """The state of nodes, links and workers, as the kernel reports it."""
        linked = self._linked()
        workers = {"relay": self._relay.state, "capture": self._capture.state}
        capturing = workers["capture"] != "dead"
        return {
            "run": self._run,
            "pid": os.getpid(),
            "emulator": self._emulator if linked else None,
            "nodes": self._nodes.report(),
            "wired": [entry.name for entry in linked],
            "shaped": [entry.name for entry in linked if entry.shaped],
            "captured": [entry.name for entry in linked if entry.raised and capturing],
            "workers": workers,
        }

    def _linked(self) -> list[NodeEntry]:
        """The nodes whose link exists at both ends; behind a router, only if the router's own link exists."""
        if self._emulator is Emulator.RELAY and not self._relay.serves:
            return []
        seen: dict[int | None, frozenset[str]] = {}

        def stands(entry: NodeEntry) -> bool:
            if entry.link is None or not entry.held:
                return False
            if entry.router is not None and not stands(entry.router):
                return False
            far_fd = None if entry.router is None else entry.router.ns_fd
            if far_fd not in seen:
                seen[far_fd] = wiring.interfaces(far_fd)
            return entry.link.far_if in seen[far_fd]

        return [entry for entry in self._nodes if stands(entry)]

    def capabilities(self) -> dict[str, Any]:
        """The emulators that this machine supports."""
        return {"capabilities": asdict(capabilities())}

    def spawn(self, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Make a namespace and a process for each; a node with a dead process gets a new one in its old namespace."""
        return self._nodes.spawn(nodes)

    def forks_expected(self, config: str) -> dict[str, Any]:
        """Prepare for `fork` questions, whose node.json has no longer path than this one."""
        self._nodes.prefork.expect(config)
        return {}

    def fork(self, nodes: Sequence[dict[str, Any]]) -> DeferredAnswer:
        """Like `spawn`, for nodes that are forked by a prefork worker."""
        return self._nodes.fork(nodes)

    def adopt(self, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Take the namespace of a container's process as the namespace of the node."""
        failed: dict[str, str] = {}
        for node in nodes:
            name, pid = node["name"], int(node["pid"])
            try:
                entry = adopted_entry(name, pid)
            except OSError as error:
                failed[name] = f"process {pid}: {error.strerror}"
                continue
            if self._nodes.get(name) is not None:
                self.unwire([name])
            self._nodes.add(entry)
        return {"failed": failed}

    def routers(self, names: Iterable[str]) -> dict[str, Any]:
        """Make a namespace for each router, unless it exists."""
        self._nodes.add_routers(names)
        return {}

    def wire(self, emulator: str, links: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Make and configure links, but leave them down. Make all of them or none."""
        wanted = Emulator(emulator)
        if wanted is Emulator.AUTO:
            raise Refused("`wire` needs the emulator that was chosen, not auto")
        if self._emulator not in (None, wanted) and any(k.link for k in self._nodes):
            raise Refused(f"this lab's links are served by {self._emulator}, not by {wanted}")
        self._emulator = wanted
        pairs = [(self._nodes.entry(link["node"]), LinkSpec(**link)) for link in links]
        coming = {entry.name for entry, _ in pairs}
        served = {entry.name for entry in self._linked()}
        for entry, spec in pairs:
            if entry.name in served:
                raise Refused(f"{entry.name} has a link already")
            if spec.address == spec.gateway:
                raise Refused(f"{spec.node} cannot have {spec.address}: that is the gateway's")
            if spec.behind is not None:
                self._check_router(entry, spec.behind, coming | served)
                self._check_path(entry, {one.name: new.behind for one, new in pairs})
        left_over = {entry.name for entry in self._nodes if entry.link is not None} - served
        self._drop_links(left_over)  # their relay, their router or their node has ended
        for entry, spec in pairs:
            entry.link = spec
            entry.router = None if spec.behind is None else self._nodes.entry(spec.behind)
        made = [entry.attachment for entry, _ in pairs]
        try:
            if wanted is Emulator.RELAY:
                self._relay.add(made)
            else:
                wiring.make_veths(made)
            wiring.configure(made)
        except BaseException:
            self._drop_links(coming)
            raise
        return {}

    def _check_router(self, entry: NodeEntry, behind: str, linked: Container[str]) -> None:
        router = self._nodes.get(behind)
        if router is None or not router.is_router:
            raise Refused(f"{entry.name} is behind {behind!r}, but there is no such router")
        if behind not in linked:
            raise Refused(f"{entry.name} is behind {behind}, which has no link yet")

    def _check_path(self, entry: NodeEntry, coming: Mapping[str, str | None]) -> None:
        """Refuse routers that would be behind themselves; `coming`: node -> the router of its new link."""
        passed = [entry.name]
        while (behind := self._behind(passed[-1], coming)) is not None:
            passed.append(behind)
            if behind in passed[:-1]:
                raise Refused(f"{behind} would be behind itself: {' -> '.join(passed)}")

    def _behind(self, name: str, coming: Mapping[str, str | None]) -> str | None:
        if name in coming:
            return coming[name]
        entry = self._nodes.get(name)
        return None if entry is None or entry.link is None else entry.link.behind

    def shape(self, links: Sequence[dict[str, Any]], seed: int | None = None) -> dict[str, Any]:
        """Set rates, delays, losses and cuts of links."""
        wanted = [
            (
                self._nodes.entry(link["node"]).attachment,
                DirectionState.from_json(link["up"]),
                DirectionState.from_json(link["down"]),
            )
            for link in links
        ]
        if self._emulator in (Emulator.NETEM, Emulator.TBF):
            wiring.shape(self._emulator, wanted, seed)
        if self._emulator is Emulator.RELAY:
            self._relay.shape(links, seed)
        for link in links:
            entry = self._nodes.entry(link["node"])
            entry.shaped, entry.link_settings = True, {"up": link["up"], "down": link["down"]}
        return {}

    def links(self) -> dict[str, Any]:
        """The current shapes of the links."""
        return {
            "links": {
                name: self._nodes.entry(name).link_settings for name in self.status()["shaped"]
            }
        }

    def capture(
        self, links: Sequence[str], folder: str | None = None, snaplen: int = 65535
    ) -> dict[str, Any]:
        """Start the capture of these links, then set them up; without a folder, only set them up."""
        chosen = [self._nodes.entry(name).attachment for name in links]
        if folder is not None and chosen:
            orders = [
                {
                    "link": attachment.spec.node,
                    "path": str(Path(folder) / f"{attachment.spec.node}.pcap"),
                    "snaplen": snaplen,
                    "up": {"ns": ns_path(attachment.far_fd), "ifname": attachment.spec.far_if},
                    "down": {"ns": ns_path(attachment.ns_fd), "ifname": NODE_IF},
                }
                for attachment in chosen
            ]
            self._monitor.begin(RunPlace(Path(folder).parent))
            self._capture.listen(orders)
        wiring.raise_links(self._emulator, chosen)
        for name in links:
            self._nodes.entry(name).raised = True
        return {}

    def capture_expected(self) -> dict[str, Any]:
        """Prepare for `capture`."""
        self._capture.expect()
        return {}

    def capture_stop(self) -> dict[str, Any]:
        """Complete the capture files; return counts per link, and errors."""
        if self._capture.state is not None:
            for entry in self._nodes:
                entry.raised = False
        counts = self._capture.stop()
        self._monitor.stop()
        return counts

    def signal(self, nodes: Iterable[str], signal: int) -> dict[str, Any]:
        """Signal the processes of these nodes, also those of containers."""
        self._nodes.signal(nodes, signal)
        return {}

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Partition the network into these sides."""
        self._actions.partition(number, sides)
        return {}

    def heal(self, number: int) -> dict[str, Any]:
        """End the partition."""
        self._actions.heal(number)
        return {}

    def end_scenario(self) -> dict[str, Any]:
        """End the partitions and loads that are left, and the prefork worker."""
        self._actions.end_scenario()
        self._nodes.prefork.expect_none()
        return {}

    def load_expected(self) -> dict[str, Any]:
        """Prepare for `load`."""
        self._actions.expect_load()
        return {}

    def load(
        self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int
    ) -> dict[str, Any]:
        """Send datagrams from each of these nodes to another."""
        self._actions.load(number, nodes, to, rate_bps, size)
        return {}

    def unload(self, number: int) -> dict[str, Any]:
        """End the load; return its counts."""
        return self._actions.unload(number)

    def execute(self, node: str, argv: Sequence[str], output: str) -> dict[str, Any]:
        """Run a command in the node's network."""
        return {"number": self._actions.execute(node, argv, output)}

    def executed(self) -> dict[str, Any]:
        """The exit codes of commands."""
        return {"codes": self._actions.executed()}

    def unwire(self, nodes: Iterable[str]) -> dict[str, Any]:
        """Remove links, processes and namespaces of these nodes; ignore unknown nodes.

        The nodes behind a router lose their links with it, but stay.
        """
        known = (self._nodes.get(name) for name in nodes)
        going = [entry for entry in known if entry is not None]
        self._nodes.end(going)
        self._drop_links({entry.name for entry in going})
        self._nodes.forget(going)
        return {}

    def counters(self, links: bool = True, restart: bool = False) -> dict[str, Any]:
        """Counters of the relay and its links; null without a live relay. With `restart`, lateness is counted anew."""
        return self._relay.counters(links, restart)

    def close(self) -> None:
        """Complete the captures, end all children; the links vanish with the namespaces."""
        self._actions.close()
        self._nodes.prefork.expect_none()
        self.capture_stop()
        self._nodes.end(self._nodes)
        self._relay.close()
        self._capture.close()
        self._monitor.close()
        self._nodes.forget(self._nodes)

    def reap(self) -> None:
        """Reap children that have ended."""
        self._nodes.reap()
        self._capture.reap()
        self._monitor.reap()
        self._relay.reap()
        self._actions.reap()

    def _drop_links(self, names: Container[str]) -> None:
        """Remove the links of these nodes, and of the nodes behind them."""
        lost = [
            entry
            for entry in self._nodes
            if entry.link is not None and any(one.name in names for one in (entry, *entry.routers))
        ]
        links = [entry.attachment for entry in lost]
        self._relay.remove(links)
        wiring.remove(links)
        for entry in lost:
            entry.forget_link()

    def _worker(self, role: str, module: str, *arguments: str, own_network: bool = False) -> Worker:
        """Start a worker. `own_network`: not in the core, but in a network namespace without links."""
        marked, log = self._marked(role)
        return Worker(role, module, marked, log, *arguments, own_network=own_network)

    def _prefork_worker(self, padding: str) -> PreforkWorker:
        marked, log = self._marked("prefork")
        return PreforkWorker("prefork", "testbed.keeper.prefork_worker", marked, log, padding)

    def _marked(self, role: str) -> tuple[dict[str, str], Path]:
        """The environment variables of a worker, and its log."""
        marked = {**marks(self._lab, self._run, role), PADDING_VARIABLE: PADDING}
        log = self._lab.keeper_socket.parent / f"{role}.log"
        return {**marked, **self._monitor.environment}, log
