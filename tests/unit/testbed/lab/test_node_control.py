"""Asking many nodes the same question in parallel; silent nodes do not delay the others."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.control import ControlError, request_all, request_each

Answer = Callable[[], dict[str, object] | None]


def serve(listening: socket.socket, answer: Answer) -> None:
    client, _ = listening.accept()
    with client, client.makefile("rb") as questions:
        questions.readline()
        reply = answer()
        if reply is not None:
            client.sendall(json.dumps(reply).encode() + b"\n")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Callable[[str, Answer], Path]]:
    """node(name, answer): a control socket that answers one question."""
    with ExitStack() as stack:

        def make(name: str, answer: Answer) -> Path:
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(str(tmp_path / name))
            listening.listen()
            thread = threading.Thread(target=serve, args=(listening, answer))
            thread.start()
            stack.callback(thread.join)
            return tmp_path / name

        yield make


def test_nodes_are_asked_side_by_side(node: Callable[[str, Answer], Path]) -> None:
    everybody = threading.Barrier(5, timeout=60)

    def answer_when_all_were_asked() -> dict[str, object]:
        everybody.wait()
        return {"ok": True}

    paths = {name: node(name, answer_when_all_were_asked) for name in "abcde"}
    assert request_all(paths, {"do": "status"}, 60.0).keys() == set("abcde")


def test_a_node_that_is_gone_refuses_or_hangs_up_is_missing(
    node: Callable[[str, Answer], Path], tmp_path: Path
) -> None:
    paths = {
        "well": node("well", lambda: {"ok": True, "state": "running"}),
        "refusing": node("refusing", lambda: {"ok": False, "error": "not now"}),
        "breaking": node("breaking", lambda: None),
        "gone": tmp_path / "gone",
    }
    assert request_all(paths, {"do": "status"}, 60.0) == {"well": {"ok": True, "state": "running"}}


def test_each_node_gets_its_own_order_and_a_refusal_is_an_error(
    node: Callable[[str, Answer], Path], tmp_path: Path
) -> None:
    everybody = threading.Barrier(2, timeout=60)

    def answer() -> dict[str, object]:
        everybody.wait()
        return {"ok": True}

    request_each({node("a", answer): {"do": "play"}, node("b", answer): {"do": "play"}}, 60.0)
    with pytest.raises(ControlError, match="not now"):
        request_each({node("c", lambda: {"ok": False, "error": "not now"}): {"do": "play"}})
    with pytest.raises(ControlError, match="no answer"):
        request_each({tmp_path / "gone": {"do": "play"}})


def test_no_node_is_asked_if_there_is_none() -> None:
    assert request_all({}, {"do": "status"}) == {}
