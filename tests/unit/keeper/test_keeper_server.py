"""The keeper's protocol over a real socket, with a core that only remembers."""

import json
import os
import selectors
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from testbed.control import ControlError, request
from testbed.errors import MissingCapability
from testbed.keeper.core import Core
from testbed.keeper.server import Server


class RememberingCore:
    """Answers like a core, does nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.closed = 0

    def __getattr__(self, name: str) -> Any:
        return lambda: {"asked": name}

    def status(self) -> dict[str, Any]:
        return {"run": "r1", "nodes": {}}

    def wire(self, emulator: str, links: list[str]) -> dict[str, Any]:
        raise MissingCapability("no taps here", "load the module")

    def signal(self, nodes: list[str], signal: int) -> dict[str, Any]:
        self.asked.append(("signal", (nodes, signal)))
        return {}

    def unwire(self, nodes: list[str]) -> dict[str, Any]:
        raise OSError(2, "No such file or directory")

    def close(self) -> None:
        self.closed += 1


class QuietServer(Server):
    """Without the signal handlers, which belong to a main thread."""

    def _listen_to_signals(self) -> None:
        readable, self._writable = os.pipe()
        self._selector.register(readable, selectors.EVENT_READ, self._told)

    def _told(self) -> None:
        self._ended = True

    def end(self) -> None:
        """As SIGTERM does."""
        os.write(self._writable, b".")


@pytest.fixture
def core() -> RememberingCore:
    return RememberingCore()


@pytest.fixture
def path(tmp_path: Path, core: RememberingCore) -> Iterator[Path]:
    where = tmp_path / "ctl"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(where))
    listening.listen()
    server = QuietServer(listening, cast("Core", core))
    thread = threading.Thread(target=server.run)
    thread.start()
    yield where
    server.end()
    thread.join(10)
    listening.close()
    assert core.closed == 1


def test_a_question_is_answered(path: Path) -> None:
    assert request(path, {"do": "status"}) == {"ok": True, "run": "r1", "nodes": {}}


def test_fields_of_a_question_reach_the_core(path: Path, core: RememberingCore) -> None:
    request(path, {"do": "signal", "nodes": ["a"], "signal": 15})
    assert core.asked == [("signal", (["a"], 15))]


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"[1]\n",
        b"{}\n",
        b'{"do": "close"}\n',
        b'{"do": "signal"}\n',
        b'{"do": "status", "more": 1}\n',
    ],
)
def test_nonsense_is_refused_and_the_keeper_lives_on(path: Path, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(line)
        with client.makefile("rb") as answers:
            answer = json.loads(answers.readline())
    assert answer["ok"] is False
    assert "protocol" in answer["error"]
    assert request(path, {"do": "status"})["ok"]


def test_a_failure_is_told_with_its_next_step(path: Path) -> None:
    with pytest.raises(ControlError, match="no taps here; load the module"):
        request(path, {"do": "wire", "emulator": "relay", "links": []})
    with pytest.raises(ControlError, match="No such file"):
        request(path, {"do": "unwire", "nodes": []})


def test_a_client_that_leaves_early_disturbs_nobody(path: Path) -> None:
    for line in (b'{"do": "sta', b'{"do": "status"}\n' * 3):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(line)
    assert request(path, {"do": "status"})["ok"]


def test_several_questions_in_one_go_are_answered_in_order(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(path))
        client.sendall(b'{"do": "status"}\n{"do": "nothing"}\n{"do": "status"}\n')
        with client.makefile("rb") as answers:
            oks = [json.loads(answers.readline())["ok"] for _ in range(3)]
    assert oks == [True, False, True]
