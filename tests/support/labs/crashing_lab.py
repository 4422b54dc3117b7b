"""A small lab whose parts tests kill, driven by commands as a user would type them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from support.lines import records
from testbed.keeper.processes import marked
from testbed.lab.status import lab_status
from testbed.places import LabPlace

PATIENCE_S = 60.0
FILE = """
name: victim
links: {emulator: relay}
defaults: {link: wifi}
nodes:
  broker: {kind: broker}
  sensor: {kind: sensor}
  siren: {kind: subscriber, topics: [alerts]}
  horn: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 1s
  settle: 3s
  events:
    - at: 100ms
      publish: {from: sensor, topic: alerts, priority: 5, size: 200B, period: 200ms, count: 3}
"""
DELIVERIES = 6


class Victim:
    """The lab `victim` of a test; `command` is the fixture `testbed`."""

    def __init__(self, command: Callable[..., Any], places: Path, backend: str) -> None:
        self._command = command
        self._places = places
        self.backend = backend
        self.file = places / "victim.yaml"
        self.file.write_text(FILE)
        self.place = LabPlace(places / "s" / "victim")

    def __call__(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        done: subprocess.CompletedProcess[str] = self._command(*arguments)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def up(self) -> "subprocess.CompletedProcess[str]":
        return self("up", self.file, "--backend", self.backend)

    def play(self) -> "subprocess.CompletedProcess[str]":
        return self("play", "victim")

    def down(self) -> "subprocess.CompletedProcess[str]":
        return self("down", "victim")

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command and return without waiting for its end."""
        return subprocess.Popen(
            [sys.executable, "-m", "testbed", *arguments],
            env=dict(os.environ),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def begin_up(self) -> "subprocess.Popen[str]":
        return self.begin("up", str(self.file), "--backend", self.backend)

    def status(self) -> dict[str, Any]:
        return asdict(lab_status("victim"))

    def nodes(self) -> dict[str, str]:
        return {node["name"]: node["state"] for node in self.status()["nodes"]}

    def publishes(self) -> bool:
        """Whether a scenario has begun to publish."""
        return any(node["published"] for node in self.status()["nodes"])

    def pids(self) -> dict[str, int]:
        """Process ids by role: keeper, relay, capture, monitor, and on netns node:<name>."""
        return {process.role: process.pid for process in marked(self.place)}

    def kill(self, role: str) -> None:
        pid = self.pids()[role]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: pid not in self.pids().values())

    def runs(self) -> list[Path]:
        """Run folders, oldest first."""
        made = (self._places / "c").glob("*/run.json")
        return [manifest.parent for manifest in sorted(made, key=lambda m: _created(m.parent))]

    def manifest(self, number: int = -1) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.runs()[number] / "run.json").read_text())
        return document

    def wait_for_step(self, step: str) -> None:
        """Wait until the journal says that an `up` or `down` has begun this step."""
        wait_for(lambda: step in self._steps())

    def _steps(self) -> list[str]:
        journals = (self._places / "c").glob("*/journal.jsonl")
        return [record["step"] for journal in journals for record in records(journal)]

    def assert_whole(self) -> None:
        """Check that all nodes are ready, that `status` finds no fault, and that all messages of a scenario arrive."""
        status = self.status()
        assert (status["state"], status["problems"]) == ("up", ())
        played = self.play()
        assert played.returncode == 0, played.stderr
        assert f"{DELIVERIES} of {DELIVERIES} deliveries" in played.stdout


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)


def _created(run: Path) -> int:
    return int(json.loads((run / "run.json").read_text())["created_ns"])
