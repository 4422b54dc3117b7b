"""A sweep that is carried out: the cells that are left are run, all are measured in one Spark session, and told."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from testbed.cli.stages import stages
from testbed.cli.terminal import Terminal
from testbed.errors import TestbedError
from testbed.events import Emit, Note, StageAdvanced, StageEnded, StageStarted
from testbed.jsonfiles import read_json
from testbed.sweeps.cells import Cell, Sweep
from testbed.sweeps.folder import SweepFolder
from testbed.sweeps.running import Task, run_tasks
from testbed.sweeps.texts import digest_of

RUNNING, MEASURING, REPORTING = "running the cells", "measuring the cells", "writing the report"


class Sweeping:
    """One command's work on a sweep."""

    def __init__(
        self,
        sweep: Sweep,
        folder: SweepFolder,
        file: Path,
        scenario: Path | None,
        terminal: Terminal,
    ) -> None:
        self._sweep, self._folder = sweep, folder
        self._file, self._scenario = file.resolve(), scenario and scenario.resolve()
        self._terminal = terminal
        self._cells = sweep.cells()

    def run(self, jobs: int, lock: int | None = None) -> None:
        """Those cells that are not done. What is done stays when it is interrupted, and is not done again.

        `lock`: the folder's, which the processes keep until they have ended, also if this one is killed.
        """
        folder, emit = self._folder, self._terminal.emit
        self._terminal.if_interrupted = (
            "interrupted; the same command goes on where it was: what is done stays"
        )
        folder.clear_unfinished(self._cells)
        done = folder.done(self._cells)
        left = {cell.number: cell for cell in self._cells if cell.number not in done}
        told = f"; {len(done)} were done before" if done else ""
        emit(Note(f"{len(self._cells)} cells, {jobs} at a time, in {folder.path}{told}"))
        if not left:
            return
        emit(StageStarted(RUNNING, len(left)))

        def ended(number: int, outcome: dict[str, Any]) -> None:
            folder.record(left[number], outcome)
            if outcome["run"] is None:
                emit(Note(f"cell {number} failed: {outcome['error']}"))
            emit(StageAdvanced(RUNNING, 1))

        texts = digest_of([folder.topology, folder.scenario if self._scenario else None])
        tasks = (Task(cell.number, self._told(cell, texts)) for cell in left.values())
        run_tasks(tasks, min(jobs, len(left)), folder.runs, folder.log, ended, lock)
        emit(StageEnded(RUNNING))

    def _told(self, cell: Cell, texts: str) -> dict[str, Any]:
        """The user's own files are used: paths inside them begin where they are. They must be as they were."""
        return {
            "name": self._sweep.name_of(cell),
            "overrides": cell.overrides,
            "file": str(self._file),
            "scenario": str(self._scenario) if self._scenario else None,
            "texts": texts,
            "backend": self._sweep.backend,
        }

    def measure(self) -> dict[str, Any]:
        """The sweep's document, when its tables and its page are written."""
        from analysis.dataset import write_dataset
        from analysis.sweeps import CellRun, result_of, write_result
        from analysis.trials import trials_of

        emit = self._terminal.emit
        outcomes = {cell: self._folder.outcome(cell) or {} for cell in self._cells}
        runs = {cell: one["run"] for cell, one in outcomes.items() if one.get("run")}
        if not runs:
            errors = {one["error"] for one in outcomes.values() if one.get("error")}
            raise TestbedError(f"every cell failed: {'; '.join(sorted(errors))}", "see its reason")
        measured, wrong = self._measured([*runs.values()], emit)
        cells = [
            CellRun(dict(cell.settings), cell.trial, cell.seed, measured[run])
            for cell, run in runs.items()
            if run in measured
        ]
        failed = [
            {
                "number": cell.number,
                "settings": [list(pair) for pair in cell.settings],
                "seed": cell.seed,
                "error": one.get("error") or wrong[one["run"]],
            }
            for cell, one in outcomes.items()
            if runs.get(cell) not in measured
        ]
        emit(StageStarted(REPORTING, 1))
        write_dataset(self._folder.path / "dataset", trials_of([cell.run for cell in cells]))
        sheet = {**self._sweep.as_json(), "cells": len(self._cells)}
        result = result_of(sheet, cells, failed)
        path = write_result(self._folder.path, result, cells)
        emit(StageEnded(REPORTING))
        return {**result, "folder": str(self._folder.path), "report": str(path)}

    def _measured(self, runs: list[str], emit: Emit) -> tuple[dict[str, Any], dict[str, str]]:
        """Run -> what can be read of it, and run -> why nothing can; one Spark session for all that are new."""
        from analysis.many import analyze_runs
        from analysis.runfolder import read_run

        folder = self._folder.runs
        known = [name for name in runs if read_json(folder / name / "summary.json")]
        new = [folder / name for name in runs if name not in known]
        found = {name: read_run(folder / name) for name in known}
        wrong: dict[str, str] = {}
        if not new:
            return found, wrong
        self._terminal.if_interrupted = (
            "interrupted; all cells are run, and the same command measures those that are left"
        )
        emit(StageStarted(MEASURING, len(new)))
        whole = stages(emit)
        jobs = min(len(new), len(os.sched_getaffinity(0)))
        measuring = analyze_runs(new, lambda name: _quiet if name else whole, at_a_time=jobs)
        with closing(measuring):  # when interrupted, too: Spark must end before the command does
            for one in measuring:
                if one.error is None and one.run is not None:
                    found[one.folder.name] = one.run
                elif one.error is not None:
                    wrong[one.folder.name] = one.error.message
                emit(StageAdvanced(MEASURING, 1))
        emit(StageEnded(MEASURING))
        return found, wrong


def _quiet(_stage: str, _done: int, _total: int) -> None:
    """Stages of single runs: there are too many of them."""
