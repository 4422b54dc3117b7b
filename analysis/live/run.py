"""Follows a run folder that still grows: its captures and logs, from where they were read last."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from analysis.captures.growing import Place, advance
from analysis.captures.packets import parse
from analysis.captures.pcap import FILE_HEADER
from analysis.inputs.clocks import NONE, Clocks, read_clocks
from analysis.inputs.run_folder import Run, RunNode, read_run
from analysis.inputs.subscriptions import subscriptions_of
from analysis.live.link import Arrival, LiveLink
from analysis.live.table import Level, Live

STEP = 1 << 23  # bytes of a capture that are held at a time
PUBLISHED, RECEIVED = "publish", "receive"


class WatchedRun:
    """Delay and loss of one run, as of the last update."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifest = b""
        self._clocks, self._clocks_read = NONE, 0
        self._renew()

    @property
    def by_captures(self) -> bool:
        """Whether arrivals come from captures; else from the receivers' logs."""
        return self.run.captures_wanted

    def look(self, final: bool = False) -> None:
        """Read what is new. If the lab was changed meanwhile, counting restarts, as in the analysis.

        `final`: the run is over.
        """
        self._renew()
        self._clocks = self._measured()
        for capture in self._captures:
            for identity, published_ns, arrived_ns in capture.read(final):
                self._arrived(identity, capture.receiver, published_ns, arrived_ns)
        for path in self.run.log_files():
            log = self._logs.setdefault(path, _Log(path))
            for line in log.read():
                self._take(line)

    def levels(self, now_ns: int, overdue_s: float, over: bool = False) -> list[Level]:
        """The most urgent first. `over`: the run is over, and what has not come was observed until its end."""
        until_ns = self.run.played[1] if self.run.played else self._live.last_ns
        return self._live.levels(now_ns, overdue_s, until_ns if over else None)

    def _renew(self) -> None:
        manifest = (self.folder / "run.json").read_bytes()
        if manifest == self._manifest:
            return
        before = None if not self._manifest else (self.run.nodes, self.run.measured_from_ns)
        self.run: Run = read_run(self.folder)
        self._manifest = manifest
        if before == (self.run.nodes, self.run.measured_from_ns):
            return
        self._names = {node.number: node.name for node in self.run.nodes}
        subscriptions = subscriptions_of({node.name: node.topics for node in self.run.nodes})
        self._live = Live(subscriptions, self.run.measured_from_ns)
        self._captures = [_Capture(self.run, node) for node in self.run.nodes if node.topics]
        self._logs: dict[Path, _Log] = {}

    def _take(self, line: dict[str, Any]) -> None:
        if line["event"] == PUBLISHED:
            self._live.published(
                line["id"],
                line["node"],
                line["topic"],
                line["priority"],
                self._to_lab_ns(line["node"], line["t"]),
                line.get("place"),
            )
        elif not self.by_captures:
            self._arrived(line["id"], line["node"], line["published_ns"], line["t"])

    def _arrived(self, identity: str, receiver: str, published_ns: int, at_ns: int) -> None:
        """Record an arrival; times of nodes with their own clocks are corrected by the measurements so far."""
        if self._clocks.by_node:
            published_ns = self._to_lab_ns(self._origin(identity), published_ns)
            at_ns = self._to_lab_ns(receiver, at_ns)
        self._live.arrived(identity, receiver, published_ns, at_ns)

    def _measured(self) -> Clocks:
        """The clocks, read again when the file has grown."""
        size = self.run.clocks.stat().st_size if self.run.clocks.exists() else 0
        if size != self._clocks_read:
            self._clocks_read = size
            return read_clocks(self.run.clocks)
        return self._clocks

    def _to_lab_ns(self, node: str, own_ns: int) -> int:
        clock = self._clocks.get(node)
        return own_ns if clock is None else int(clock.to_lab_ns(np.array([own_ns]))[0])

    def _origin(self, identity: str) -> str:
        """The publisher: ids begin with its number (`nodes.protocol.wire.message_id`)."""
        return self._names.get(int(identity, 16) >> 32, "")


class _Capture:
    """The capture of a receiver's link."""

    def __init__(self, run: Run, receiver: RunNode) -> None:
        self.receiver = receiver.name
        self._path = run.pcap(receiver)
        self._link = LiveLink(receiver.address)
        self._place = Place()

    def read(self, final: bool) -> list[Arrival]:
        """The arrivals since the last call."""
        found: list[Arrival] = []
        while self._path.exists() and self._path.stat().st_size > self._place.at:
            now = advance(str(self._path), self._place, self._place.at + STEP)
            if now.at == self._place.at:
                break
            with self._path.open("rb") as file:
                head = file.read(FILE_HEADER)
                file.seek(max(FILE_HEADER, self._place.at))
                records = file.read(now.at - file.tell())
            found += self._link.add(parse(head + records, self._path))
            self._place = now
        return found + self._link.finish() if final else found


class _Log:
    """A node's log; an incomplete last line is read later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def read(self) -> list[dict[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self._at += len(text)
        found = []
        for line in text.splitlines():
            if PUBLISHED.encode() in line or RECEIVED.encode() in line:
                with suppress(ValueError):  # truncated by a crash
                    found.append(json.loads(line))
        return [line for line in found if line.get("event") in (PUBLISHED, RECEIVED)]
