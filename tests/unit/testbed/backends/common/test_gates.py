"""Opening gates: every node is opened, and dead nodes are not waited for."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.backends.common.gates import nodes_past_gate, open_gates


class Gate:
    """A node's control socket: answers `running` after it got `go`."""

    def __init__(self, path: Path) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._state = "waiting"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            client, _ = self._listening.accept()
            with client, client.makefile("rb") as questions:
                question = json.loads(questions.readline())
                if question["do"] == "go":
                    self._state = "running"
                client.sendall(json.dumps({"ok": True, "state": self._state}).encode() + b"\n")
            if question["do"] == "end":
                return

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self._listening.getsockname())
            client.sendall(b'{"do": "end"}\n')
            client.recv(100)
        self._thread.join()
        self._listening.close()


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[dict[str, Path]]:
    paths = {name: tmp_path / name for name in ("a", "b")}
    opened = [Gate(path) for path in paths.values()]
    yield paths
    for gate in opened:
        gate.close()


def test_every_gate_is_opened(gates: dict[str, Path]) -> None:
    assert nodes_past_gate(gates) == frozenset()
    done: list[str] = []
    assert open_gates(gates, lambda: frozenset(gates), 60.0, done.append) == {}
    assert sorted(done) == ["a", "b"]
    assert nodes_past_gate(gates) == {"a", "b"}


def test_dead_nodes_are_named_and_the_other_nodes_start(
    gates: dict[str, Path], tmp_path: Path
) -> None:
    done: list[str] = []
    controls = {**gates, "dead": tmp_path / "dead"}
    failed = open_gates(controls, lambda: frozenset(gates), 60.0, done.append)
    assert failed == {"dead": "it has ended"}
    assert sorted(done) == ["a", "b"]


def test_a_node_that_never_listens_is_given_up(tmp_path: Path) -> None:
    controls = {"mute": tmp_path / "mute"}
    failed = open_gates(controls, lambda: frozenset({"mute"}), 0.1, lambda _: None)
    assert failed == {"mute": "no answer after 0 s"}
