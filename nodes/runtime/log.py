"""A node's log: one JSON object a line, in the file as soon as it happened (also if the node is killed next)."""

import json
import os
import time
from typing import Any


def hex_id(message_id: int) -> str:
    """A message id as logs and answers show it."""
    return f"{message_id:016x}"


class Log:
    """Appends events; each line is one write."""

    def __init__(self, path: str, node: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._node = node

    def write(self, event: str, /, t: int | None = None, **details: Any) -> None:
        """Note that `event` happened, at `t` (ns since 1970) or now."""
        line = {"t": time.time_ns() if t is None else t, "node": self._node, "event": event}
        try:
            os.write(self._file, json.dumps(line | details).encode() + b"\n")
        except OSError as error:  # a run without logs measures nothing
            raise SystemExit(f"{self._node}: cannot write its log: {error}") from error

    def close(self) -> None:
        os.close(self._file)


def last_counter(path: str) -> int:
    """The highest message counter this node has published before, 0 if none: a node that is started again goes on
    from there, so that an id stays unique in a run."""
    highest = 0
    try:
        with open(path, "rb") as lines:  # noqa: PTH123 - pathlib costs a node memory
            for line in lines:
                if b'"publish"' in line and line.endswith(b"\n"):
                    record = json.loads(line)
                    if record["event"] == "publish":
                        highest = max(highest, int(record["id"], 16) & 0xFFFFFFFF)
    except FileNotFoundError:
        return 0
    return highest
