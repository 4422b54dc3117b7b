"""Requests to a node or a keeper: one JSON line there, one JSON line back, over a Unix socket.

Unix sockets belong to no network namespace, so requests never cross, and never disturb, a measured link.
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
MAX_CONCURRENT = 64  # requests at a time; with hundreds of nodes, most of the time is spent waiting


class ControlError(TestbedError):
    """The other process has ended, or refused the request."""


def request(path: Path, question: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
    """Send one request and return the answer; ControlError if there is none, or if it is a refusal."""
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
    """Send the same request to many, in parallel; the answers by name, without those that ended or refused."""

    def ask(path: Path) -> dict[str, Any] | None:
        try:
            return request(path, question, timeout_s)
        except ControlError:
            return None

    answers = zip(paths, _in_parallel(ask, paths.values()), strict=True)
    return {name: answer for name, answer in answers if answer is not None}


def request_each(requests: Mapping[Path, dict[str, Any]], timeout_s: float = 5.0) -> None:
    """Send each its own request, in parallel; ControlError if one of them has ended, or refuses."""
    _in_parallel(lambda each: request(*each, timeout_s), requests.items())


def _in_parallel(ask: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    with ThreadPoolExecutor(MAX_CONCURRENT) as pool:
        try:
            return list(pool.map(ask, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
