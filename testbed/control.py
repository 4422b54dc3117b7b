"""Asking a node or a keeper something: one JSON line there, one JSON line back, over a Unix socket.

Unix sockets are no part of any network namespace: what is asked never crosses, and never disturbs, a measured link.
"""

import json
import socket
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError


class ControlError(TestbedError):
    """The other side is gone, or refused."""


def request(path: Path, question: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
    """Send one question, return the answer; ControlError if there is none or it is a refusal."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(timeout_s)
            line.connect(str(path))
            line.sendall(json.dumps(question).encode() + b"\n")
            with line.makefile("rb") as answers:
                answer = answers.readline()
    except OSError as error:
        raise ControlError(f"no answer from {path.parent.name}: {error}") from error
    if not answer.endswith(b"\n"):
        raise ControlError(f"no answer from {path.parent.name}: the connection ended")
    reply: dict[str, Any] = json.loads(answer)
    if not reply.get("ok"):
        raise ControlError(f"{path.parent.name}: {reply.get('error', 'refused without a reason')}")
    return reply
