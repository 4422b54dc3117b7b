"""A node's log: one JSON object a line, in the file as soon as it happened (also if the node is killed next).

A full disk or a power cut can leave a torn line at the end. A node that continues the file begins a new line first.
"""

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from nodes.delivery.base import Dropped
from nodes.protocol.joined import split
from nodes.protocol.wire import Kind, Message, decode


def hex_id(message_id: int) -> str:
    """A message id as logs and answers show it."""
    return f"{message_id:016x}"


def about(message: Message) -> dict[str, Any]:
    """The fields of `receive` and `duplicate`."""
    return {
        "id": hex_id(message.message_id),
        "topic": message.topic,
        "priority": message.priority,
        "size": len(message.payload),
        "hops": message.hops,
        "published_ns": message.published_ns,
        "origin": message.origin,
    }


def about_published(message: Message, late_ns: int) -> dict[str, Any]:
    """The fields of `publish`."""
    return {
        "id": hex_id(message.message_id),
        "topic": message.topic,
        "priority": message.priority,
        "size": len(message.payload),
        "late_ns": late_ns,
        **({"place": list(message.place)} if message.place else {}),
    }


def about_dropped(peer: str, dropped: Dropped) -> Iterator[dict[str, Any]]:
    """The fields of `drop` for a message to this peer; one record for each publication of a JOINED."""
    message = decode(dropped.data)
    for one in split(message) if message.kind is Kind.JOINED else [message]:
        yield {
            "id": hex_id(one.message_id),
            "kind": one.kind.name,
            "topic": one.topic,
            "priority": one.priority,
            "peer": peer,
            "reason": dropped.reason,
        }


class Log:
    """Appends events; OSError if the file cannot be opened."""

    def __init__(self, path: str, node: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._node = node
        length = os.lseek(self._file, 0, os.SEEK_END)
        if length and os.pread(self._file, 1, length - 1) != b"\n":
            self._append(b"\n")

    def write(self, event: str, /, t: int | None = None, **details: Any) -> None:
        """Note that `event` happened, at `t` (ns since 1970) or now."""
        line = {"t": time.time_ns() if t is None else t, "node": self._node, "event": event}
        self._append(json.dumps(line | details).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        """Usually one write; the kernel may take less, most of all when the disk is almost full."""
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:  # a run without logs measures nothing
            raise SystemExit(f"{self._node}: cannot write its log: {error}") from error


def _records(path: str) -> Iterator[Any]:
    """The records of a log, line by line; None for a torn line. Empty if there is no log."""
    try:
        with open(path, "rb") as lines:  # noqa: PTH123 - pathlib costs a node memory
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    yield None
    except FileNotFoundError:
        return


class HandedOver(NamedTuple):
    """A publication that was delivered to the application."""

    message_id: int
    topic: str
    priority: int
    t: int  # ns since 1970


MAX_HANDED_OVER = 8192


def handed_over(path: str) -> list[HandedOver] | None:
    """The newest deliveries before a restart of the node, the oldest first; None: the node was never ready."""
    ready = False
    newest: deque[HandedOver] = deque(maxlen=MAX_HANDED_OVER)
    for record in _records(path):
        try:
            ready |= record["event"] == "ready"
            if record["event"] == "receive":
                identity = int(record["id"], 16)
                priority, t = int(record["priority"]), int(record["t"])
                newest.append(HandedOver(identity, str(record["topic"]), priority, t))
        except (ValueError, TypeError, KeyError):
            continue
    return list(newest) if ready else None


def last_counter(path: str) -> int:
    """The highest message counter that this node may have used before, 0 if none. A restarted node continues from
    there, so that an id stays unique in a run. A torn line counts as a publication, because it may have been one."""
    highest = 0
    for record in _records(path):
        try:
            if record["event"] == "publish":
                highest = max(highest, int(record["id"], 16) & 0xFFFFFFFF)
        except (ValueError, TypeError, KeyError):
            highest += 1
    return highest
