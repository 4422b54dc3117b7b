"""The keeper's protocol over a real socket, with a core that only records questions."""

import json
import os
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from testbed.control import ControlError, request
from testbed.errors import MissingCapability, TestbedError
from testbed.keeper.core import Core
from testbed.keeper.prefork import DeferredAnswer, Wait
from testbed.keeper.server import Server

PATIENCE_S = 60.0


class RememberingCore:
    """Answers like a core, does nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.closed = 0
        self.broken_off = 0
        self.worker, self.forked = os.pipe()
        self.patience_s = 60.0
        self.begun = threading.Event()  # a fork has

    def __getattr__(self, name: str) -> Any:
        return lambda: {"asked": name}

    def status(self) -> dict[str, Any]:
        return {"run": "r1", "nodes": {}}

    def wire(self, emulator: str, links: list[str]) -> dict[str, Any]:
        raise MissingCapability("no taps here", "load the module")

    def signal(self, nodes: list[str], signal: int) -> dict[str, Any]:
        self.asked.append(("signal", (nodes, signal)))
        return {}

    def fork(self, nodes: list[str]) -> DeferredAnswer:
        self.begun.set()
        try:
            yield Wait(self.worker, time.monotonic() + self.patience_s)
        except GeneratorExit:
            self.broken_off += 1
            raise
        os.set_blocking(self.worker, False)
        if os.read(self.worker, 1) == b"x":
            raise TestbedError("the nodes were not forked")
        self.asked.append(("fork", nodes))
        return {"pids": dict.fromkeys(nodes, 1)}

    def unwire(self, nodes: list[str]) -> dict[str, Any]:
        self.asked.append(("unwire", nodes))
        raise OSError(2, "No such file or directory")

    def close(self) -> None:
        self.closed += 1
        os.close(self.worker)
        os.close(self.forked)


def ask(path: Path, question: dict[str, Any]) -> dict[str, Any]:
    return request(path, question, PATIENCE_S)


class QuietServer(Server):
    """Without the signal handlers, which belong to a main thread."""

    def _listen_to_signals(self) -> None:
        readable, self._writable = os.pipe()
        self._selector.register(readable, selectors.EVENT_READ, self._on_end)

    def _on_end(self) -> None:
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
    thread.join(PATIENCE_S)
    listening.close()
    assert core.closed == 1


def test_a_question_is_answered(path: Path) -> None:
    assert ask(path, {"do": "status"}) == {"ok": True, "run": "r1", "nodes": {}}


def test_fields_of_a_question_reach_the_core(path: Path, core: RememberingCore) -> None:
    ask(path, {"do": "signal", "nodes": ["a"], "signal": 15})
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
def test_nonsense_is_refused_and_the_keeper_goes_on(path: Path, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(path))
        client.sendall(line)
        with client.makefile("rb") as answers:
            answer = json.loads(answers.readline())
    assert answer["ok"] is False
    assert "protocol" in answer["error"]
    assert ask(path, {"do": "status"})["ok"]


def test_a_failure_is_reported_with_its_next_step(path: Path) -> None:
    with pytest.raises(ControlError, match="no taps here; load the module"):
        ask(path, {"do": "wire", "emulator": "relay", "links": []})
    with pytest.raises(ControlError, match="No such file"):
        ask(path, {"do": "unwire", "nodes": []})


def test_a_client_that_disconnects_early_disturbs_no_other(path: Path) -> None:
    for line in (b'{"do": "sta', b'{"do": "status"}\n' * 3):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(line)
    assert ask(path, {"do": "status"})["ok"]


def test_several_questions_in_one_go_are_answered_in_order(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(path))
        client.sendall(b'{"do": "status"}\n{"do": "nothing"}\n{"do": "status"}\n')
        with client.makefile("rb") as answers:
            oks = [json.loads(answers.readline())["ok"] for _ in range(3)]
    assert oks == [True, False, True]


@pytest.fixture
def asking() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def begun(
    asking: ThreadPoolExecutor, path: Path, core: RememberingCore, nodes: list[str]
) -> Future[Any]:
    """A fork that has begun; other questions wait for its end."""
    answer = asking.submit(ask, path, {"do": "fork", "nodes": nodes})
    assert core.begun.wait(PATIENCE_S)
    return answer


def waiting(asking: ThreadPoolExecutor, path: Path, question: dict[str, Any]) -> Future[Any]:
    """A question that comes during a fork. If it comes later, it is answered after the fork all the same."""
    answer = asking.submit(ask, path, question)
    time.sleep(0.1)
    return answer


def test_a_fork_delays_only_questions_that_make_nodes(
    path: Path, core: RememberingCore, asking: ThreadPoolExecutor
) -> None:
    forked = begun(asking, path, core, ["a"])
    gone = waiting(asking, path, {"do": "unwire", "nodes": ["a"]})
    assert ask(path, {"do": "status"})["ok"]
    ask(path, {"do": "signal", "nodes": ["b"], "signal": 9})
    with pytest.raises(ControlError, match="protocol"):
        ask(path, {"do": "dance"})
    assert core.asked == [("signal", (["b"], 9))]
    os.write(core.forked, b".")
    assert forked.result()["pids"] == {"a": 1}
    with pytest.raises(ControlError, match="No such file"):
        gone.result()
    assert [what for what, _ in core.asked] == ["signal", "fork", "unwire"]


def test_forks_follow_one_another(
    path: Path, core: RememberingCore, asking: ThreadPoolExecutor
) -> None:
    first = begun(asking, path, core, ["a"])
    second = waiting(asking, path, {"do": "fork", "nodes": ["b"]})
    os.write(core.forked, b"..")
    assert [one.result()["ok"] for one in (first, second)] == [True, True]
    assert core.asked == [("fork", ["a"]), ("fork", ["b"])]


def test_a_fork_that_fails_or_takes_too_long_is_refused_and_the_keeper_goes_on(
    path: Path, core: RememberingCore, asking: ThreadPoolExecutor
) -> None:
    failing = begun(asking, path, core, ["a"])
    os.write(core.forked, b"x")
    with pytest.raises(ControlError, match="the nodes were not forked"):
        failing.result()
    core.patience_s = 0.2
    with pytest.raises(ControlError, match="BlockingIOError"):
        ask(path, {"do": "fork", "nodes": ["a"]})
    assert ask(path, {"do": "status"})["ok"]


def test_one_client_gets_the_answers_in_the_order_of_its_questions(
    path: Path, core: RememberingCore
) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        client.connect(str(path))
        client.sendall(b'{"do": "fork", "nodes": ["a"]}\n{"do": "status"}\n{"do": "links"}\n')
        time.sleep(0.1)
        os.write(core.forked, b".")
        with client.makefile("rb") as answers:
            replies = [json.loads(answers.readline()) for _ in range(3)]
    assert [list(one) for one in replies] == [
        ["ok", "pids"],
        ["ok", "run", "nodes"],
        ["ok", "asked"],
    ]


def test_a_client_that_disconnects_while_its_nodes_are_forked_disturbs_no_other(
    path: Path, core: RememberingCore, asking: ThreadPoolExecutor
) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b'{"do": "fork", "nodes": ["a"]}\n')
        assert core.begun.wait(PATIENCE_S)
    gone = waiting(asking, path, {"do": "unwire", "nodes": ["a"]})
    os.write(core.forked, b".")
    with pytest.raises(ControlError):
        gone.result()
    assert core.asked == [("fork", ["a"]), ("unwire", ["a"])]


def test_a_keeper_that_ends_interrupts_a_fork(tmp_path: Path) -> None:
    where, core = tmp_path / "ctl", RememberingCore()
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        listening.bind(str(where))
        listening.listen()
        server = QuietServer(listening, cast("Core", core))
        thread = threading.Thread(target=server.run)
        thread.start()
        client.connect(str(where))
        client.sendall(b'{"do": "fork", "nodes": ["a"]}\n')
        assert core.begun.wait(PATIENCE_S)
        server.end()
        thread.join(PATIENCE_S)
    assert (core.broken_off, core.closed, core.asked) == (1, 1, [])
