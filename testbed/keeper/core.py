"""What the keeper keeps: the nodes' namespaces and processes, their links, the relay and the capture.

One method a question of the protocol (docs/architecture.md); each returns the answer's fields.
"""

import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper import children
from testbed.keeper.capturing import Capturing, state_of
from testbed.keeper.kept import Kept, Refused
from testbed.keeper.workers import Worker, WorkerError
from testbed.links import wiring
from testbed.links.namespaces import make_network, silence
from testbed.links.probe import capabilities
from testbed.links.spec import LinkSpec
from testbed.links.wiring import NODE_IF, Access, ns_path
from testbed.places import LabPlace, marks
from testbed.topology.model import Emulator, Shape


class Core:
    """All of a lab that lives in the kernel."""

    def __init__(self, lab: LabPlace, run: str) -> None:
        self._lab = lab
        self._run = run
        self._nodes: dict[str, Kept] = {}
        self._emulator: Emulator | None = None
        self._relay: Worker | None = None
        self._capturing = Capturing(lambda: self._worker("capture", "testbed.capture.worker"))

    def status(self) -> dict[str, Any]:
        """What exists, asked from the machine."""
        here = wiring.interfaces()
        served = self._emulator is not Emulator.RELAY or self._alive(self._relay)
        linked = [
            kept
            for kept in self._nodes.values()
            if served and kept.held and kept.link is not None and kept.link.core_if in here
        ]
        workers = {"relay": state_of(self._relay), "capture": self._capturing.state}
        heard = workers["capture"] != "dead"
        return {
            "run": self._run,
            "pid": os.getpid(),
            "emulator": self._emulator if linked else None,
            "nodes": {
                kept.name: {
                    "pid": kept.pid,
                    "running": kept.running,
                    "exit_code": kept.process.poll() if kept.process else None,
                }
                for kept in self._nodes.values()
            },
            "wired": [kept.name for kept in linked],
            "shaped": [kept.name for kept in linked if kept.shaped],
            "captured": [kept.name for kept in linked if kept.raised and heard],
            "workers": workers,
        }

    def capabilities(self) -> dict[str, Any]:
        """With what links can be shaped here."""
        return {"capabilities": asdict(capabilities())}

    def spawn(self, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """A namespace and a process each; a node whose process has died gets a new one in its old namespace."""
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
        kept = self._nodes.get(name)
        if kept is not None and kept.running:
            raise Refused(f"{name} runs already (process {kept.pid})")
        ns_fd = make_network() if kept is None else kept.ns_fd
        try:
            process = children.start(
                node["argv"],
                {**node.get("env", {}), **marks(self._lab, self._run, f"node:{name}")},
                Path(node["stderr"]),
                ns_fd=ns_fd,
            )
        except BaseException:
            if kept is None:
                os.close(ns_fd)
            raise
        if kept is None:
            self._nodes[name] = Kept(name, ns_fd, process.pid, process)
        else:
            kept.pid, kept.process = process.pid, process

    def adopt(self, nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Take the namespace of a container's process as the node's."""
        failed: dict[str, str] = {}
        for node in nodes:
            name, pid = node["name"], int(node["pid"])
            try:
                ns_fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
                silence(ns_fd)
            except OSError as error:
                failed[name] = f"process {pid}: {error.strerror}"
                continue
            if name in self._nodes:
                self.unwire([name])
            self._nodes[name] = Kept(name, ns_fd, pid, None)
        return {"failed": failed}

    def wire(self, emulator: str, links: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Links exist and are configured, but down. All of them or none."""
        wanted = Emulator(emulator)
        if wanted is Emulator.AUTO:
            raise Refused("`wire` needs the emulator that was chosen, not auto")
        if self._emulator not in (None, wanted) and any(k.link for k in self._nodes.values()):
            raise Refused(f"this lab's links are served by {self._emulator}, not by {wanted}")
        self._emulator = wanted
        pairs = [(self._kept(link["node"]), LinkSpec(**link)) for link in links]
        served = self.status()["wired"]
        for kept, _ in pairs:
            if kept.name in served:
                raise Refused(f"{kept.name} has a link already")
            if kept.link is not None:  # its relay has died
                self._drop_link(kept)
        made = [Access(spec, kept.ns_fd) for kept, spec in pairs]
        try:
            if wanted is Emulator.RELAY:
                self._ask_relay(
                    {
                        "do": "add",
                        "links": [
                            {
                                "link": spec.node,
                                "ns": ns_path(kept.ns_fd),
                                "node_if": NODE_IF,
                                "core_if": spec.core_if,
                                "mtu": spec.mtu,
                            }
                            for kept, spec in pairs
                        ],
                    }
                )
            else:
                wiring.make_veths(made)
            wiring.configure(made)
        except BaseException:
            self._remove_links(made)
            raise
        for kept, spec in pairs:
            kept.link = spec
        return {}

    def shape(self, links: Sequence[dict[str, Any]], seed: int | None = None) -> dict[str, Any]:
        """Rates, delays, losses from now on."""
        for link in links:
            kept = self._kept(link["node"])
            up, down = Shape(**link["up"]), Shape(**link["down"])
            access = kept.access
            if self._emulator in (Emulator.NETEM, Emulator.TBF):
                wiring.shape(self._emulator, access, up, down, seed)
        if self._emulator is Emulator.RELAY:
            shapes = [{"link": li["node"], "up": li["up"], "down": li["down"]} for li in links]
            self._ask_relay({"do": "shape", "links": shapes, "seed": seed})
        for link in links:
            self._kept(link["node"]).shaped = True
        return {}

    def capture(
        self, links: Sequence[str], folder: str | None = None, snaplen: int = 65535
    ) -> dict[str, Any]:
        """Listen on these links, then raise them; without a folder they are only raised."""
        chosen = [self._kept(name).access for name in links]
        if folder is not None and chosen:
            core_ns = f"/proc/{os.getpid()}/ns/net"
            orders = [
                {
                    "link": access.spec.node,
                    "path": str(Path(folder) / f"{access.spec.node}.pcap"),
                    "snaplen": snaplen,
                    "up": {"ns": core_ns, "ifname": access.spec.core_if},
                    "down": {"ns": ns_path(access.ns_fd), "ifname": NODE_IF},
                }
                for access in chosen
            ]
            self._capturing.listen(orders)
        wiring.raise_links(chosen)
        for name in links:
            self._nodes[name].raised = True
        return {}

    def capture_stop(self) -> dict[str, Any]:
        """The files are complete; counts per link, and what went wrong."""
        if self._capturing.state is not None:
            for kept in self._nodes.values():
                kept.raised = False
        return self._capturing.stop()

    def signal(self, nodes: Iterable[str], signal: int) -> dict[str, Any]:
        """To processes that the keeper started."""
        for name in nodes:
            process = self._kept(name).process
            if process is None:
                raise Refused(f"{name} was not started by the keeper")
            children.send_signal(process, signal)
        return {}

    def unwire(self, nodes: Iterable[str]) -> dict[str, Any]:
        """Links, processes and namespaces of these nodes go; unknown ones are gone already."""
        going = [self._nodes.pop(name) for name in nodes if name in self._nodes]
        children.end([kept.process for kept in going if kept.process is not None])
        self._remove_links([kept.access for kept in going if kept.link is not None])
        for kept in going:
            os.close(kept.ns_fd)
        return {}

    def counters(self) -> dict[str, Any]:
        """How the relay fares; null if none serves, or none any more."""
        if self._relay is None or not self._relay.running:
            return {"relay": None}
        return {"relay": self._relay.ask({"do": "counters"})["counters"]}

    def close(self) -> None:
        """Complete the captures, end all children; the links go with the namespaces."""
        self.capture_stop()
        children.end([kept.process for kept in self._nodes.values() if kept.process is not None])
        if self._relay is not None:
            self._relay.end()
        self._capturing.close()
        for kept in self._nodes.values():
            os.close(kept.ns_fd)
        self._nodes.clear()
        self._relay = None

    def reap(self) -> None:
        """Collect children that have ended."""
        for kept in self._nodes.values():
            if kept.process is not None:
                kept.process.poll()
        self._capturing.reap()
        state_of(self._relay)

    def _kept(self, name: str) -> Kept:
        try:
            return self._nodes[name]
        except KeyError:
            raise Refused(f"no node {name!r} in this lab") from None

    def _drop_link(self, kept: Kept) -> None:
        self._remove_links([kept.access])
        kept.link, kept.shaped, kept.raised = None, False, False

    def _remove_links(self, links: Sequence[Access]) -> None:
        if links and self._emulator is Emulator.RELAY and self._alive(self._relay):
            with suppress(WorkerError):
                self._ask_relay({"do": "remove", "links": [link.spec.node for link in links]})
        wiring.remove(links)

    def _ask_relay(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._relay is not None and not self._relay.running:
            self._relay.end()
            self._relay = None
        if self._relay is None:
            self._relay = self._worker("relay", "testbed.links.relay.worker")
        return self._relay.ask(question)

    def _worker(self, role: str, module: str) -> Worker:
        log = self._lab.keeper_socket.parent / f"{role}.log"
        return Worker(role, module, marks(self._lab, self._run, role), log)

    @staticmethod
    def _alive(worker: Worker | None) -> bool:
        return worker is not None and worker.running
