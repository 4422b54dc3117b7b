"""Nodes as real processes on the loopback, for tests that exchange messages with them."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection

from nodes.runtime.handshake import Caller, Identity, new_nonce
from support.lines import records
from support.ports import ReservedPorts
from testbed.control import ControlError, request

PATIENCE_S = 60
RESENT_S = 150  # for messages that may have to be sent again: a client waits RETRY_S (60 s) for an acknowledgement
SECRET = "of the slope"


def until(true: Callable[[], Any], seconds: float = PATIENCE_S) -> Any:
    """Wait until `true()` is true; return its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := true():
            return value
        time.sleep(0.01)
    raise AssertionError("the condition never became true")


class RunningNode:
    """A node's process, its control socket and its log."""

    def __init__(self, folder: Path, command: list[str], config: dict[str, Any]) -> None:
        self.name: str = config["name"]
        self.folder = folder / self.name
        self.folder.mkdir(exist_ok=True)
        self.log = folder / f"{self.name}.jsonl"
        self.complaints = folder / f"{self.name}.stderr"
        self.control = self.folder / "ctl"
        self.file = self.folder / "node.json"
        self.file.write_text(
            json.dumps({**config, "control": str(self.control), "log": str(self.log)})
        )
        self.command = [*command, str(self.file)]
        self.start()

    def start(self) -> None:
        with self.complaints.open("a") as stderr:
            self.process = subprocess.Popen(self.command, stderr=stderr)

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        return request(self.control, {"do": do, **more}, PATIENCE_S)

    def answers(self) -> bool:
        assert self.process.poll() is None, self.complaints.read_text()
        try:
            return bool(self.ask("status")["ok"])
        except ControlError:
            return False

    def go(self) -> "RunningNode":
        until(self.answers)
        self.ask("go")
        return self

    def ready(self) -> "RunningNode":
        until(lambda: self.ask("status")["ready"])
        return self

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [each for each in records(self.log) if not kinds or each["event"] in kinds]

    def publish(self, topic: str = "alert", priority: int = 5, size: int = 100) -> str:
        identity = self.ask("publish", topic=topic, priority=priority, size=size)["id"]
        assert isinstance(identity, str)
        return identity

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


class Lab:
    """Nodes that belong together; all of them end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = [sys.executable, "-m", "nodes"]
        self.nodes: list[RunningNode] = []
        self._ports = ReservedPorts()
        self.port = self.free_port()

    def free_port(self) -> int:
        """A port that nodes of this lab can listen on."""
        return self._ports.reserve()

    def node(self, kind: str, name: str, /, **more: Any) -> RunningNode:
        place = {"host": "127.0.0.1", "port": self.port}
        config = {
            "lab": "slope",
            "run": "r1",
            "name": name,
            "number": len(self.nodes) + 1,
            "kind": kind,
            "seed": 1,
            "overlay": {"method": "star", "parameters": {}},
            "delivery": {"method": "fifo", "parameters": {}},
            "deliveries": {},
            "listen": place if kind == "broker" else None,
            "brokers": [] if kind == "broker" else [{"name": "b1", "number": 1, **place}],
            "seeds": [],
            "topics": [],
            "dimensions": 0,
            "secret": SECRET,
            "journal": None,
            **more,
        }
        node = RunningNode(self.folder, self.command, config)
        self.nodes.append(node)
        return node

    def trio(
        self, others: Sequence[Mapping[str, Any]] = (), **config: Any
    ) -> tuple[RunningNode, RunningNode, RunningNode]:
        """A broker that knows others, a sensor and a subscriber, all ready; the configuration applies to all three."""
        broker = self.node("broker", "b1", brokers=others, **config)
        sensor = self.node("sensor", "s1", **config)
        subscriber = self.node("subscriber", "c1", topics=["alert"], **config)
        for node in self.nodes:
            node.go()
        for node in self.nodes:
            node.ready()
        return broker, sensor, subscriber

    def end(self) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                node.kill()
        self._ports.close()


def received(node: RunningNode) -> list[str]:
    return [record["id"] for record in node.events("receive")]


def card(name: str, secret: str = SECRET) -> Identity:
    """The HELLO of a client of the lab."""
    return Identity(name, 99, "slope", secret.encode())


def introduce(connection: ClientConnection, name: str, broker: str = "b1") -> None:
    """Send HELLO, receive HELLO, send the proof."""
    caller = Caller(card(name), broker, new_nonce())
    connection.send(caller.first())
    connection.send(caller.answer(connection.recv(timeout=PATIENCE_S)))
