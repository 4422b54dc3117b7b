"""A sweep's folder records finished cells: it clears unfinished ones away and refuses another sweep."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.sweeps.cells import Axis, Cell, Sweep
from testbed.sweeps.folder import SweepFolder
from testbed.sweeps.pool import Task, run_tasks

SWEEP = Sweep("valley", (Axis("a", ("1", "2", "3")),), 2, 1, "simulated", "x")
CELLS = SWEEP.cells()


def begun(path: Path, sweep: Sweep = SWEEP) -> SweepFolder:
    folder = SweepFolder(path)
    folder.begin(sweep, "nodes: {}\n", None)
    return folder


def finish(folder: SweepFolder, cell: Cell) -> None:
    run = folder.runs / f"run-{cell.number}"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    folder.record(cell, {"run": run.name, "seconds": 1.0})


@given(st.sets(st.integers(1, len(CELLS))), st.sets(st.integers(1, len(CELLS))))
def test_only_finished_cells_count_as_done(
    tmp_path_factory: pytest.TempPathFactory, finished: set[int], half_done: set[int]
) -> None:
    folder = begun(tmp_path_factory.mktemp("sweep") / "s")
    for cell in CELLS:
        if cell.number in finished:
            finish(folder, cell)
        elif cell.number in half_done:
            (folder.runs / f"half-{cell.number}" / "logs").mkdir(parents=True)
    again = begun(folder.path)
    again.clear_unfinished(CELLS)
    assert {*again.done(CELLS)} == finished
    assert {run.name for run in again.runs.iterdir()} == {f"run-{number}" for number in finished}


def test_a_cell_that_failed_is_tried_again(tmp_path: Path) -> None:
    folder = begun(tmp_path / "s")
    folder.record(CELLS[0], {"run": None, "error": "no", "hint": ""})
    assert folder.done(CELLS) == {}
    outcome = folder.outcome(CELLS[0])
    assert outcome is not None
    assert outcome["error"] == "no"


def test_a_cell_whose_run_was_removed_is_not_done(tmp_path: Path) -> None:
    folder = begun(tmp_path / "s")
    finish(folder, CELLS[0])
    (folder.runs / "run-1" / "run.json").unlink()
    assert folder.done(CELLS) == {}


def test_another_sweep_is_refused(tmp_path: Path) -> None:
    begun(tmp_path / "s")
    with pytest.raises(InputError, match="another sweep"):
        begun(tmp_path / "s", Sweep("valley", (), 2, 1, "simulated", "x"))


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InputError, match="not empty"):
        begun(tmp_path)
    with pytest.raises(InputError, match="is a file"):
        begun(tmp_path / "mine")


def test_two_commands_do_not_sweep_in_one_folder(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "s")
    with folder.alone(), pytest.raises(InputError, match="another command"), folder.alone():
        pass


def test_a_file_in_the_folders_place_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(InputError, match="is a file"), SweepFolder(tmp_path / "mine").alone():
        pass


def test_errors_while_sweeping_are_not_blamed_on_another_command(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), SweepFolder(tmp_path / "s").alone():
        raise BlockingIOError


def test_a_folder_is_free_only_when_the_last_process_of_a_killed_sweep_has_ended(
    tmp_path: Path,
) -> None:
    folder = SweepFolder(tmp_path / "s")
    with folder.alone() as lock:
        worker = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock,))
    try:
        with pytest.raises(InputError, match="last cells are ending"), folder.alone():
            pass
    finally:
        worker.communicate()
    with folder.alone():
        pass


def test_processes_that_compute_cells_hold_the_lock_of_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of this test answers only if the descriptor is open in it."""
    program = (
        "import json, os, sys; task = json.loads(sys.stdin.readline()); os.fstat(task['lock']); "
        "print(json.dumps({'run': 'held'}), flush=True)"
    )
    start = subprocess.Popen
    monkeypatch.setattr(
        "testbed.sweeps.pool.subprocess.Popen",
        lambda _, **how: start([sys.executable, "-c", program], **how),
    )
    outcomes: dict[int, Any] = {}
    with SweepFolder(tmp_path / "s").alone() as lock:
        task = Task(1, {"lock": lock})
        run_tasks([task], 1, tmp_path, tmp_path / "log", outcomes.__setitem__, lock)
    assert outcomes == {1: {"run": "held"}}
