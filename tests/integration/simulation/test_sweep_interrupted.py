"""A sweep that is interrupted, or whose command is killed, leaves no process behind, and continues where it was."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from testbed.cli.commands.sweep import Sweeping
from testbed.cli.terminal import Terminal
from testbed.progress import Event, StageAdvanced
from testbed.sweeps.cells import Axis, Sweep
from testbed.sweeps.folder import SweepFolder, digest_of
from testbed.sweeps.pool import Task, run_tasks

PATIENCE_S = 60.0
VALLEY = """\
name: valley
links:
  profiles:
    narrow: {both: {rate: 8kB/s, delay: 60ms, jitter: 20ms, loss: 1%}}
groups:
  sensors: {kind: sensor, count: 3, link: narrow}
nodes:
  broker: {kind: broker}
  siren: {kind: subscriber, link: narrow, topics: [alerts]}
scenario:
  duration: 4s
  events:
    - {at: 0s, publish: {from: "sensors[*]", topic: alerts, priority: 5, size: 1kB, period: 1s, spread: 1s}}
"""
SWEEP = Sweep("valley", (Axis("delivery.method", ("fifo", "preemptive")),), 3, 1, "simulated", "x")


class Listener:
    """A stand-in for a terminal that interrupts the sweep after this many cells."""

    def __init__(self, cells: int | None = None) -> None:
        self.if_interrupted = ""
        self._left = cells

    def emit(self, event: Event) -> None:
        if isinstance(event, StageAdvanced) and self._left is not None:
            self._left -= 1
            if self._left <= 0:
                raise KeyboardInterrupt


def run_cells(folder: Path, file: Path, interrupted_after: int | None = None) -> SweepFolder:
    there = SweepFolder(folder)
    there.begin(SWEEP, VALLEY, None)
    listener = cast(Terminal, Listener(interrupted_after))
    Sweeping(SWEEP, there, file, None, listener).run(2)
    return there


def traces(folder: SweepFolder) -> dict[int, str]:
    """Cell -> a digest of all records of messages and packets in its run, without the run's own id."""
    found = {}
    for cell in SWEEP.cells():
        outcome = folder.outcome(cell)
        assert outcome is not None
        run = folder.runs / outcome["run"]
        files = sorted([*run.glob("trace/*"), *run.glob("logs/*"), run / "planned.jsonl"])
        digest = hashlib.sha256()
        for file in files:
            digest.update(file.name.encode() + file.read_bytes().replace(run.name.encode(), b""))
        found[cell.number] = digest.hexdigest()
    return found


def processes_of(folder: Path) -> list[int]:
    """The processes that write their runs into this folder."""
    mark = f"TESTBED_CAPTURES={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it has just ended
    return found


def wait_for(reached: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "valley.yaml"
    path.write_text(VALLEY)
    return path


def test_a_continued_sweep_equals_one_that_was_never_interrupted(
    tmp_path: Path, file: Path, places: Path
) -> None:
    whole = run_cells(tmp_path / "whole", file)
    for cells in (1, 4):
        folder = tmp_path / f"interrupted-{cells}"
        with pytest.raises(KeyboardInterrupt):
            run_cells(folder, file, interrupted_after=cells)
        there = SweepFolder(folder)
        assert processes_of(there.runs) == []
        assert len(there.done(SWEEP.cells())) == cells
        before = {run.name for run in there.runs.iterdir()}
        again = run_cells(folder, file)
        finished = {one["run"] for one in again.done(SWEEP.cells()).values()}
        assert len(finished & before) >= cells  # finished cells are not repeated
        # The folders of unfinished cells are removed.
        assert {run.name for run in again.runs.iterdir()} == finished
        assert traces(again) == traces(whole)


def test_the_cell_of_a_dead_process_fails_and_the_others_are_run(
    tmp_path: Path, file: Path, places: Path
) -> None:
    runs, log = tmp_path / "runs", tmp_path / "log"
    outcomes: dict[int, dict[str, Any]] = {}
    runs.mkdir()

    def task_request(number: int) -> dict[str, Any]:
        return {
            "name": f"valley-{number}",
            "overrides": [],
            "file": str(file),
            "scenario": None,
            "texts": digest_of([file]),
            "backend": "simulated",
        }

    def done(number: int, outcome: dict[str, Any]) -> None:
        outcomes[number] = outcome
        if number == 1:  # the next task goes to the same process, which is dead by then
            (worker,) = processes_of(runs)
            os.kill(worker, signal.SIGKILL)

    run_tasks((Task(number, task_request(number)) for number in (1, 2, 3)), 1, runs, log, done)
    assert outcomes[1]["run"]
    assert outcomes[2]["run"] is None
    assert "ended with exit code -9" in outcomes[2]["error"]
    assert outcomes[3]["run"]
    assert processes_of(runs) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_remains_however_the_command_ends(
    tmp_path: Path, file: Path, places: Path, how: signal.Signals
) -> None:
    folder = tmp_path / "sweep"
    command = [sys.executable, "-m", "testbed", "sweep", str(file), "--trials", "500"]
    command += ["--to", str(folder), "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        wait_for(lambda: len([*folder.glob("cells/*.json")]) >= 2)
        os.kill(process.pid, how)
        out, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == (-how if how is signal.SIGKILL else 130)
    if how is not signal.SIGKILL:
        assert "the same command continues the sweep" in json.loads(out)["error"]["message"]
    wait_for(lambda: processes_of(folder / "runs") == [])
    asked = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=True)
    done = [cell for cell in json.loads(asked.stdout)["cells"] if cell["done"]]
    assert 2 <= len(done) < 500
