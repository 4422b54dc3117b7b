"""A backend that only records calls: for tests of plan and apply, and to see what a lab would ask of a real one."""

import json
import selectors
import socket
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.backends.common.base import Done, Ended
from testbed.errors import NodeFailure
from testbed.links.changes import LinkState, configured_links
from testbed.places import LabPlace
from testbed.plan import Actual, Fingerprints
from testbed.topology.model import Node, Topology

# Control sockets of a whole lab in one thread, with the node protocol of docs/explanation/architecture.md: `status`,
# `overlay`, `go`, `publish`, `play`. A published message arrives at once.


class FakeNodes:
    """Serves the control sockets of the nodes that were added; no message arrives at `unreachable` nodes."""

    def __init__(
        self, lab: LabPlace, topology: Topology, unreachable: frozenset[str] = frozenset()
    ) -> None:
        self._lab = lab
        self._unreachable = unreachable
        self._topology = topology
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[str, socket.socket] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def add(self, node: Node) -> None:
        path = self._lab.node_control(node.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen()
        self._sockets[node.name] = listener
        self._counts[node.name] = {"published": 0, "received": 0}
        self._selector.register(listener, selectors.EVENT_READ, node)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True)
            self._thread.start()

    def discard(self, name: str) -> None:
        listener = self._sockets.pop(name, None)
        if listener is not None:
            self._selector.unregister(listener)
            listener.close()
            self._lab.node_control(name).unlink(missing_ok=True)

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        self._ended.clear()
        for name in list(self._sockets):
            self.discard(name)

    def _serve(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._selector.select(timeout=0.02):
                connection, _ = key.fileobj.accept()  # type: ignore[union-attr]
                with connection, connection.makefile("rwb") as stream:
                    answer = self._answer(key.data, json.loads(stream.readline()))
                    stream.write(json.dumps({"ok": True, **answer}).encode() + b"\n")

    def _answer(self, node: Node, question: dict[str, Any]) -> dict[str, Any]:
        match question["do"]:
            case "publish":
                self._publish(node, question)
                return {"id": f"{node.number << 32 | self._counts[node.name]['published']:016x}"}
            case "play":
                for action in question["actions"]:
                    self._publish(node, action)
                return {"accepted": len(question["actions"])}
            case "status":
                state = {"state": "running", "ready": True, "queued": 0, "playing": 0, "peers": []}
                return {**state, **self._counts[node.name]}
            case "overlay":
                return {"overlay": {}}
            case _:
                return {}

    def _publish(self, node: Node, what: dict[str, Any]) -> None:
        self._counts[node.name]["published"] += 1
        place = tuple(what.get("place", ()))
        for name in self._topology.receivers(what["topic"], what["priority"], place):
            if name in self._counts and name not in self._unreachable:
                self._counts[name]["received"] += 1


class FakeBackend:
    """Records in sets what a real backend would make.

    The creation of `failing` nodes fails; with `nodes`, started nodes answer on their control sockets.
    """

    name = "fake"
    emulator = "none"
    emulator_reason = "nothing is sent"

    def __init__(
        self,
        topology: Topology,
        failing: frozenset[str] = frozenset(),
        nodes: FakeNodes | None = None,
    ) -> None:
        self.topology = topology
        self._nodes = nodes
        self._failing = failing
        self._prepared = False
        self._stages: dict[str, set[str]] = {
            stage: set() for stage in ("created", "wired", "shaped", "captured", "started")
        }
        self._fingerprints: dict[str, str] = {}
        self._links: dict[str, LinkState] = {}
        self.going_on: dict[int, str] = {}  # partitions and loads
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    def inspect(self, names: Collection[str] | None = None) -> Actual:
        def meant(known: Iterable[str]) -> frozenset[str]:
            return frozenset(name for name in known if names is None or name in names)

        stages = {stage: meant(reached) for stage, reached in self._stages.items()}
        fingerprints = {name: self._fingerprints[name] for name in meant(self._fingerprints)}
        return Actual(self._prepared, fingerprints=fingerprints, **stages)

    def prepare(self, topology: Topology) -> None:
        self.topology = topology
        self._prepared = True
        self.calls.append(("prepare", (topology.name,)))

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        able = [node for node in nodes if node.name not in self._failing]
        made_from = Fingerprints(self.topology)
        self._fingerprints.update((node.name, made_from.of(node)) for node in able)
        self._reach("created", able, done)
        if refused := sorted({node.name for node in nodes} & self._failing):
            raise NodeFailure(
                f"could not create {', '.join(refused)}", "`testbed up` again", refused
            )

    def wire(self, nodes: Sequence[Node], done: Done) -> None:
        self._reach("wired", nodes, done)

    def shape(self, nodes: Sequence[Node], done: Done) -> None:
        configured = configured_links(self.topology)
        self._links.update((node.name, configured[node.name]) for node in nodes)
        self._reach("shaped", nodes, done)

    def capture(self, nodes: Sequence[Node], done: Done) -> None:
        self._reach("captured", nodes, done)

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        if self._nodes:
            for node in nodes:
                self._nodes.add(node)
        self._reach("started", nodes, done)

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        self._leave(("started", "created"), [node.name for node in nodes], done)

    def signal(self, nodes: Sequence[str], number: int) -> None:
        self.calls.append((f"signal {number}", tuple(nodes)))

    def remove(self, names: Sequence[str], done: Done) -> None:
        self._leave(tuple(self._stages), names, done)
        for name in names:
            self._fingerprints.pop(name, None)
            self._links.pop(name, None)

    def links(self) -> dict[str, LinkState]:
        return dict(self._links)

    def change_links(self, links: Mapping[str, LinkState], before: Mapping[str, LinkState]) -> None:
        self._links.update(links)

    def partition(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        self.going_on[number] = "partition"

    def heal(self, number: int) -> None:
        self.going_on.pop(number, None)

    def expect_starts(self) -> None:
        self.calls.append(("expect starts", ()))

    def expect_load(self) -> None:
        self.calls.append(("expect load", ()))

    def load(self, number: int, nodes: Sequence[str], to: str, rate_bps: float, size: int) -> None:
        self.going_on[number] = "load"

    def unload(self, number: int) -> dict[str, int]:
        self.going_on.pop(number, None)
        return {"sent": 3, "unsent": 1}

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        self.calls.append(("execute", (node.name, *command)))
        return lambda: 0

    def link_counts(self) -> dict[str, dict[str, dict[str, int]]]:
        return {}

    def captured(self) -> tuple[dict[str, dict[str, int]], str]:
        links = sorted(self._stages["captured"])
        return {link: {"packets": 0, "bytes": 0, "dropped": 0} for link in links}, ""

    def details(self) -> dict[str, Any]:
        return {}

    def destroy(self) -> list[str]:
        names = sorted(self._stages["created"])
        for stage in self._stages.values():
            stage.clear()
        self._fingerprints.clear()
        self._links.clear()
        self.going_on.clear()
        self._prepared = False
        if self._nodes:
            self._nodes.close()
        return [f"node {name}" for name in names]

    def _reach(self, stage: str, nodes: Sequence[Node], done: Done) -> None:
        self.calls.append((stage, tuple(node.name for node in nodes)))
        for node in nodes:
            self._stages[stage].add(node.name)
            done(node.name)

    def _leave(self, stages: tuple[str, ...], names: Sequence[str], done: Done) -> None:
        self.calls.append(("left " + " ".join(stages), tuple(names)))
        for name in names:
            for stage in stages:
                self._stages[stage].discard(name)
            if self._nodes:
                self._nodes.discard(name)
            done(name)
