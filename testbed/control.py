"""Asking a node or a keeper something: one JSON line there, one JSON line back, over a Unix socket.

Unix sockets are no part of any network namespace: what is asked never crosses, and never disturbs, a measured link.
"""

import json
import socket
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from testbed.errors import TestbedError

NO_ANSWER = "`testbed status` shows what is left of the lab; `testbed up` again completes it"
Item = TypeVar("Item")
Answer = TypeVar("Answer")
MAX_CONCURRENT = (
    64  # questions under way; asking hundreds of nodes is mostly waiting for them to wake up
)


class ControlError(TestbedError):
    """The other side is gone, or refused."""


def request(path: Path, question: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
    """Send one question, return the answer; ControlError if there is none or it is a refusal."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(json.dumps(question).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer = answers.readline()
    except OSError as error:
        raise ControlError(f"no answer from {path.parent.name}: {error}", NO_ANSWER) from error
    if not answer.endswith(b"\n"):
        raise ControlError(f"no answer from {path.parent.name}: the connection ended", NO_ANSWER)
    reply: dict[str, Any] = json.loads(answer)
    if not reply.get("ok"):
        raise ControlError(f"{path.parent.name}: {reply.get('error', 'refused without a reason')}")
    return reply


def request_all(
    paths: Mapping[str, Path], question: dict[str, Any], timeout_s: float = 5.0
) -> dict[str, dict[str, Any]]:
    """Ask many the same, side by side; the answers by name. Who is gone, or refuses, is missing."""

    def ask(path: Path) -> dict[str, Any] | None:
        try:
            return request(path, question, timeout_s)
        except ControlError:
            return None

    answers = zip(paths, _in_parallel(ask, paths.values()), strict=True)
    return {name: answer for name, answer in answers if answer is not None}


def request_each(requests: Mapping[Path, dict[str, Any]], timeout_s: float = 5.0) -> None:
    """Tell each something of its own, side by side; ControlError if one of them is gone, or refuses."""
    _in_parallel(lambda each: request(*each, timeout_s), requests.items())


def _in_parallel(ask: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    with ThreadPoolExecutor(MAX_CONCURRENT) as pool:
        try:
            return list(pool.map(ask, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
