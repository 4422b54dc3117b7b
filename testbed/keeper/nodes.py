"""The node table of a keeper: each node has a network namespace and, unless it is a router, a process in it.

This module makes no links.
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper import children
from testbed.keeper.children import HeldProcess
from testbed.keeper.prefork import DeferredAnswer, MakeWorker, Prefork
from testbed.links.namespaces import make_network, silence
from testbed.links.spec import Attachment, LinkSpec
from testbed.links.wiring import ns_path


class Refused(TestbedError):
    """A question that cannot be answered in the present state."""


@dataclass(slots=True)
class NodeEntry:
    """One node: its namespace, its process, its link. A router has no process.

    An adopted process belongs to a container: the keeper notices its end, but the engine reaps it.
    """

    name: str
    ns_fd: int
    pid: int | None
    process: "subprocess.Popen[bytes] | HeldProcess | None"
    adopted: bool = False
    link: LinkSpec | None = None
    router: "NodeEntry | None" = None  # at which this node's link ends
    shaped: bool = False
    link_settings: dict[str, Any] = field(default_factory=dict)  # up, down: the current shapes
    raised: bool = False

    def forget_link(self) -> None:
        """Remove the link from the entry."""
        self.link, self.router, self.shaped, self.raised = None, None, False, False
        self.link_settings = {}

    @property
    def routers(self) -> "list[NodeEntry]":
        """The routers between this node and the core, the nearest first."""
        return [] if self.router is None else [self.router, *self.router.routers]

    @property
    def is_router(self) -> bool:
        """Whether the node only forwards packets, without a process."""
        return self.pid is None

    @property
    def running(self) -> bool:
        """Whether the process still runs; always true for a router, which has none."""
        return self.process is None or self.process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, unless it is adopted."""
        return None if self.process is None or self.adopted else self.process.poll()

    @property
    def own_process(self) -> "subprocess.Popen[bytes] | HeldProcess | None":
        """The process, unless it is adopted."""
        return None if self.adopted else self.process

    @property
    def held(self) -> bool:
        """Whether the namespace is still usable: an adopted one vanishes with its process."""
        return not self.adopted or self.running

    def replace_process(self, process: "subprocess.Popen[bytes] | HeldProcess") -> None:
        """Set another process, which runs in the same namespace, on the same link."""
        if isinstance(self.process, HeldProcess):
            self.process.close()
        self.pid, self.process = process.pid, process

    def close(self) -> None:
        """Close the descriptors of namespace and process."""
        os.close(self.ns_fd)
        if isinstance(self.process, HeldProcess):
            self.process.close()

    @property
    def attachment(self) -> Attachment:
        """The link with the namespaces of its ends."""
        if self.link is None:
            raise Refused(f"{self.name} has no link yet")
        router = None if self.router is None else self.router.attachment
        return Attachment(self.link, self.ns_fd, router, self.is_router)


class NodeTable:
    """The entries of all nodes. `marks_of` returns the marks of a role; `worker` starts a prefork worker."""

    def __init__(self, marks_of: Callable[[str], dict[str, str]], worker: MakeWorker) -> None:
        self._nodes: dict[str, NodeEntry] = {}
        self._marks_of = marks_of
        self.prefork = Prefork(worker)

    def __iter__(self) -> Iterator[NodeEntry]:
        return iter(self._nodes.values())

    def get(self, name: str) -> NodeEntry | None:
        """The node of this name, if there is one."""
        return self._nodes.get(name)

    def entry(self, name: str) -> NodeEntry:
        """The node of this name; Refused if there is none."""
        try:
            return self._nodes[name]
        except KeyError:
            raise Refused(f"no node {name!r} in this lab") from None

    def report(self) -> dict[str, Any]:
        """The state of each process."""
        return {
            entry.name: {"pid": entry.pid, "running": entry.running, "exit_code": entry.exit_code}
            for entry in self
        }

    def spawn(self, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Make a namespace and a process for each; a node with a dead process gets a new one in its old namespace."""
        failed: dict[str, str] = {}
        for node in nodes:
            try:
                self._spawn(node)
            except (OSError, TestbedError, subprocess.SubprocessError) as error:
                failed[node["name"]] = str(error)
        started = [node["name"] for node in nodes if node["name"] not in failed]
        return {"pids": {name: self._nodes[name].pid for name in started}, "failed": failed}

    def _spawn(self, node: dict[str, Any]) -> None:
        name = node["name"]
        ns_fd = self._free_namespace(name)
        try:
            process = children.start(
                node["argv"],
                {**node.get("env", {}), **self._marks_of(f"node:{name}")},
                Path(node["stderr"]),
                ns_fd=ns_fd,
            )
        except BaseException:
            self._discard_namespace(name, ns_fd)
            raise
        self._add_process(name, ns_fd, process)

    def fork(self, nodes: Sequence[dict[str, Any]]) -> DeferredAnswer:
        """Like `spawn`, but fork all nodes from one process that has loaded their program once.

        No other question may make or end nodes meanwhile.
        """
        worker = self.prefork.worker_for([node["config"] for node in nodes])
        failed: dict[str, str] = {}
        free: dict[str, int] = {}
        for node in nodes:
            try:
                free[node["name"]] = self._free_namespace(node["name"])
            except (OSError, TestbedError) as error:
                failed[node["name"]] = str(error)
        forked: dict[str, HeldProcess] = {}
        try:
            orders = [n | {"ns": ns_path(free[n["name"]])} for n in nodes if n["name"] in free]
            forked, not_forked = yield from self.prefork.fork(orders, worker)
        finally:
            for name, ns_fd in free.items():
                if name in forked:
                    self._add_process(name, ns_fd, forked[name])
                else:
                    self._discard_namespace(name, ns_fd)
        return {"pids": {name: forked[name].pid for name in forked}, "failed": failed | not_forked}

    def _free_namespace(self, name: str) -> int:
        """A namespace for a process of this node: its old one if its process has died, else a new one."""
        entry = self._nodes.get(name)
        if entry is None:
            return make_network()
        if entry.is_router:
            raise Refused(f"{name} is a router, which has no process")
        if entry.running:
            raise Refused(f"{name} runs already (process {entry.pid})")
        return entry.ns_fd

    def _add_process(self, name: str, ns_fd: int, process: children.Child) -> None:
        entry = self._nodes.get(name)
        if entry is None:
            self._nodes[name] = NodeEntry(name, ns_fd, process.pid, process)
        else:
            entry.replace_process(process)

    def _discard_namespace(self, name: str, ns_fd: int) -> None:
        """Close a namespace in which no process was started, unless the node had it before."""
        if name not in self._nodes:
            os.close(ns_fd)

    def add(self, entry: NodeEntry) -> None:
        """Add a node that was made elsewhere."""
        self._nodes[entry.name] = entry

    def add_routers(self, names: Iterable[str]) -> None:
        """Make a namespace for each router, unless it exists."""
        for name in names:
            entry = self._nodes.get(name)
            if entry is None:
                self.add(NodeEntry(name, make_network(), None, None))
            elif not entry.is_router:
                raise Refused(f"{name} is a node with a process, not a router")

    def signal(self, names: Iterable[str], number: int) -> None:
        """Signal the processes of these nodes, also those of containers."""
        for name in names:
            process = self.entry(name).process
            if process is None:
                raise Refused(f"{name} is a router and has no process")
            children.send_signal(process, number)

    def end(self, going: Iterable[NodeEntry]) -> None:
        """Kill the processes of these nodes; leave those of containers to the engine."""
        children.end([entry.own_process for entry in going])

    def forget(self, gone: Iterable[NodeEntry]) -> None:
        """Remove these entries; a namespace vanishes when no process is in it any more."""
        for entry in list(gone):
            del self._nodes[entry.name]
            entry.close()

    def reap(self) -> None:
        """Reap processes that have ended."""
        self.prefork.reap()
        for entry in self:
            if entry.process is not None:
                entry.process.poll()


def adopted_entry(name: str, pid: int) -> NodeEntry:
    """The entry of a container's process and its namespace."""
    process = HeldProcess(pid, ours=False)
    try:
        ns_fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except BaseException:
        process.close()
        raise
    entry = NodeEntry(name, ns_fd, pid, process, adopted=True)
    try:
        silence(ns_fd)
    except BaseException:
        entry.close()
        raise
    return entry
