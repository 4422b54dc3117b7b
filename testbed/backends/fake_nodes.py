"""Nodes that only answer: control sockets of a whole lab in one thread, for tests without a kernel's help.

They keep the node protocol of docs/architecture.md: `status`, `overlay`, `go`, `publish`, `play`.
What is published arrives at once.
"""

import json
import selectors
import socket
import threading
from typing import Any

from testbed.places import LabPlace
from testbed.topology.model import Node, Topology


class FakeNodes:
    """Serves the control sockets of the nodes that were added; nothing ever arrives at the `deaf` ones."""

    def __init__(
        self, lab: LabPlace, topology: Topology, deaf: frozenset[str] = frozenset()
    ) -> None:
        self._lab = lab
        self._deaf = deaf
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
                with connection, connection.makefile("rwb") as line:
                    answer = self._answer(key.data, json.loads(line.readline()))
                    line.write(json.dumps({"ok": True, **answer}).encode() + b"\n")

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
            if name in self._counts and name not in self._deaf:
                self._counts[name]["received"] += 1
