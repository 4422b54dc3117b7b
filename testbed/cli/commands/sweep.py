"""`testbed sweep FILE --set PATH=VALUES`: all combinations of some values, several trials each, and one report."""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from testbed.backends.common.names import SIMULATED
from testbed.backends.registry import choose_backend, known_backend
from testbed.cli.masters import default_master
from testbed.cli.measurement import missing_deliveries, stages
from testbed.cli.options import AsJson, NewName, ScenarioFile, Strict, TopologyFile
from testbed.cli.tables.comparison import short
from testbed.cli.tables.summary import interval, seconds, value_or_bound
from testbed.cli.terminal import Terminal
from testbed.errors import TestbedError
from testbed.jsonfiles import read_json
from testbed.lab.start.disk import free_bytes, shortage, size_text
from testbed.progress import Emit, Note, StageAdvanced, StageEnded, StageStarted, Warned
from testbed.recording.disk_estimate import DiskEstimate, estimate_disk, mean_of
from testbed.sweeps.cells import Axis, Cell, Sweep, check_axes, numbers_of, parse_axis
from testbed.sweeps.folder import SweepFolder, digest_of
from testbed.sweeps.pool import Task, run_tasks
from testbed.topology import load
from testbed.topology.model import Topology, to_json
from testbed.topology.parse.files import text_of
from testbed.topology.units import DURATION

if TYPE_CHECKING:
    from analysis.report.sweep import Swept

# The run of a sweep: the cells that are left are run, all are measured in one Spark session, and shown.


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
        """Run the cells that are not done. Finished cells stay after an interrupt, and are not run again.

        `lock`: the folder's, which the processes keep until they have ended, also if this one is killed.
        """
        folder, emit = self._folder, self._terminal.emit
        self._terminal.if_interrupted = (
            "interrupted; the same command continues the sweep, and finished cells are kept"
        )
        folder.clear_unfinished(self._cells)
        done = folder.done(self._cells)
        left = {cell.number: cell for cell in self._cells if cell.number not in done}
        before = f"; {len(done)} were finished before" if done else ""
        emit(Note(f"{len(self._cells)} cells, {jobs} at a time, in {folder.path}{before}"))
        if not left:
            return
        emit(StageStarted(RUNNING, len(left)))

        def ended(number: int, outcome: dict[str, Any]) -> None:
            folder.record(left[number], outcome)
            if outcome["run"] is None:
                emit(Note(f"cell {number} failed: {outcome['error']}"))
            emit(StageAdvanced(RUNNING, 1))

        texts = digest_of([folder.topology, folder.scenario if self._scenario else None])
        tasks = (Task(cell.number, self._task_request(cell, texts)) for cell in left.values())
        run_tasks(tasks, min(jobs, len(left)), folder.runs, folder.log, ended, lock)
        emit(StageEnded(RUNNING))

    def _task_request(self, cell: Cell, texts: str) -> dict[str, Any]:
        """The request for a cell, with the user's own files, which must be unchanged: paths in them are relative."""
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
        from analysis.batch import write_dataset
        from analysis.report.sweep import (
            DATASET,
            CellRun,
            dataset_columns,
            result_of,
            write_result,
        )
        from analysis.stats.trials import Trial, setup_of

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
        swept = _swept(self._sweep.axes)
        write_dataset(
            self._folder.path / DATASET,
            [Trial(cell.run, setup_of(cell.run), cell.trial) for cell in cells],
            {cell.run.name: dataset_columns(swept, cell.settings) for cell in cells},
        )
        sheet = {**self._sweep.as_json(), "cells": len(self._cells)}
        result = result_of(sheet, cells, failed)
        path = write_result(self._folder.path, result, cells, swept)
        emit(StageEnded(REPORTING))
        return {**result, "folder": str(self._folder.path), "report": str(path)}

    def _measured(self, runs: list[str], emit: Emit) -> tuple[dict[str, Any], dict[str, str]]:
        """Run -> its results, and run -> why there are none; one Spark session for all new runs."""
        from analysis.batch import analyze_runs
        from analysis.inputs.run_folder import read_run

        folder = self._folder.runs
        known = [name for name in runs if read_json(folder / name / "summary.json")]
        new = [folder / name for name in runs if name not in known]
        found = {name: read_run(folder / name) for name in known}
        wrong: dict[str, str] = {}
        if not new:
            return found, wrong
        self._terminal.if_interrupted = (
            "interrupted; all cells have run, and the same command analyzes the remaining ones"
        )
        emit(StageStarted(MEASURING, len(new)))
        whole = stages(emit)
        jobs = min(len(new), len(os.sched_getaffinity(0)))
        measuring = analyze_runs(
            new, lambda name: _quiet if name else whole, default_master(), at_a_time=jobs
        )
        with closing(measuring):  # when interrupted, too: Spark must end before the command does
            for one in measuring:
                if one.error is None and one.run is not None:
                    found[one.folder.name] = one.run
                elif one.error is not None:
                    wrong[one.folder.name] = one.error.message
                emit(StageAdvanced(MEASURING, 1))
        emit(StageEnded(MEASURING))
        return found, wrong


def _swept(axes: Sequence[Axis]) -> "list[Swept]":
    """The columns of the swept values."""
    from analysis.report.sweep import Swept

    paths = {axis.path for axis in axes}
    numeric = {axis.path: numbers_of(axis) for axis in axes}
    return [
        Swept(axis.path, *known)
        if (known := numeric[axis.path]) and known[0] not in paths
        else Swept(axis.path)
        for axis in axes
    ]


def _quiet(_stage: str, _done: int, _total: int) -> None:
    """Ignore stages of single runs: there are too many of them."""


# A sweep's cells and results as tables.


MOST_SHOWN = 40


def cells_table(cells: Sequence[Cell], done: Collection[int]) -> Table:
    """The cells to be run, in their order."""
    table = Table(title="cells")
    paths = [path for path, _ in cells[0].settings]
    for column in ("cell", *paths, "seed", "done"):
        table.add_column(column, justify="right" if column in ("cell", "seed") else "left")
    for cell in cells[:MOST_SHOWN]:
        values = [value for _, value in cell.settings]
        finished = "yes" if cell.number in done else ""
        table.add_row(str(cell.number), *values, str(cell.seed), finished)
    if len(cells) > MOST_SHOWN:
        table.caption = f"and {len(cells) - MOST_SHOWN:,} more"
    return table


def points_table(document: Mapping[str, Any]) -> Table:
    """The most urgent level of each combination."""
    points = document["points"]
    urgent = max((level for point in points for level in point["levels"]), default="")
    paths = [axis["path"] for axis in document["axes"] if len(axis["values"]) > 1]
    table = Table(
        title=f"level {urgent} over {document['trials']} "
        f"{'trial' if document['trials'] == 1 else 'trials'} of each combination",
        caption="in brackets: its 95 % interval",
    )
    for column in short(paths):
        table.add_column(column)
    for column in ("runs", "lost", "p50", "p95", "as expected"):
        table.add_column(column, justify="right", no_wrap=True)
    for point in points[:MOST_SHOWN]:
        level = point["levels"].get(urgent)
        numbers = (
            [_share(level["lost_share"]), _time(level["p50"]), _with_interval(level["p95"])]
            if level
            else ["", "", ""]
        )
        runs = len(point["runs"])
        met = "" if point["met"] is None else f"{point['met']} of {runs}"
        table.add_row(*(point["settings"][path] for path in paths), str(runs), *numbers, met)
    if len(points) > MOST_SHOWN:
        table.caption = f"{len(points) - MOST_SHOWN:,} more combinations in the report"
    return table


def missing_sentence(document: Mapping[str, Any]) -> str:
    """Of which levels many deliveries had not arrived, over all combinations in which they had not; or empty."""
    lost: dict[str, int] = {}
    expected: dict[str, int] = {}
    incomplete = 0
    for point in document["points"]:
        counts = {
            level: (
                round((values["lost_share"]["value"] or 0.0) * values["expected"]),
                values["expected"],
            )
            for level, values in point["levels"].items()
        }
        many = {level: count for level, count in counts.items() if missing_deliveries(*count)}
        incomplete += bool(many)
        for level, (missing, of) in many.items():
            lost[level] = lost.get(level, 0) + missing
            expected[level] = expected.get(level, 0) + of
    levels = [
        f"level {level}: {missing_deliveries(lost[level], expected[level])}"
        for level in sorted(lost, reverse=True)
    ]
    where = f"in {incomplete} of {len(document['points'])} combinations"
    return f"{', '.join(levels)} had not arrived when the runs ended, {where}" if levels else ""


def failed_table(document: Mapping[str, Any]) -> list[Table]:
    """Cells that have no result; nothing if all have."""
    if not document["failed"]:
        return []
    table = Table("cell", "settings", "why", title=f"{len(document['failed'])} cells failed")
    for one in document["failed"][:MOST_SHOWN]:
        settings = ", ".join("=".join(pair) for pair in one["settings"])
        table.add_row(str(one["number"]), f"{settings} seed={one['seed']}".strip(), one["error"])
    return [table]


def _time(found: Mapping[str, Any]) -> str:
    return value_or_bound(found, seconds)


def _with_interval(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return _time(found)
    return f"{_time(found)} ({interval(found, seconds)})"


def _share(found: Mapping[str, Any]) -> str:
    return "" if found["value"] is None else f"{found['value']:.2%}"


FAILED = 1  # exit code

Axes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUES",
        envvar="TESTBED_SET",
        help="Values for a path in the file: a list (delivery.method=fifo,dmpq-pc, "
        "scenario.settle=5,10,20s), a range of five values "
        "(links.profiles.mvno.up.rate=4..20kB/s) or with its step (4..20:4kB/s). "
        "Repeatable; the sweep runs all combinations.",
    ),
]
Trials = Annotated[
    int,
    typer.Option(
        "--trials", min=1, max=1_000, help="Runs of each combination, each with its own seed."
    ),
]
FirstSeed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=2**62, help="Seed of the first trial. Default: the seed of the file."
    ),
]
Backend = Annotated[
    str,
    typer.Option("--backend", help="simulated (virtual time), docker or netns."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        max=256,
        help="Number of cells that run at a time. Default: one per core if simulated; one with real links, "
        "because labs share the machine.",
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FOLDER",
        help="Folder of the sweep. Default: a new folder in sweeps/. The same sweep in the same folder continues.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the cells; run nothing.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Example: testbed sweep topologies/demo.yaml --set delivery.method=fifo,preemptive --trials 5"
    )(sweep)


def sweep(
    file: TopologyFile,
    values: Axes = None,
    trials: Trials = 1,
    seed: FirstSeed = None,
    name: NewName = None,
    scenario: ScenarioFile = None,
    backend: Backend = SIMULATED,
    jobs: Jobs = None,
    to: Target = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Run a topology file with all combinations of some values, several trials each, and write one report.

    Cells that are done are not done again: after an interrupt, the same command goes on. A cell that fails is
    recorded, and the others go on; the exit code is 1 then.
    """
    with Terminal(as_json, strict) as terminal:
        known_backend(None if backend == SIMULATED else backend)
        texts = text_of(file), None if scenario is None else text_of(scenario)
        wanted = _wanted(file, values or [], trials, seed, name, scenario, backend)
        topologies = _checked(wanted, file, name, scenario)
        asked = replace(wanted, digest=_digest(texts, topologies))
        folder = SweepFolder((to or Path("sweeps") / f"{asked.lab}-{asked.identity}").resolve())
        at_a_time = min(jobs or _usual_jobs(backend), len(asked.cells()))
        if dry_run:
            _show_cells(asked, topologies, folder, at_a_time, terminal)
            return
        if backend != SIMULATED:
            choose_backend(backend)  # report what the machine lacks before a folder is made
        with folder.alone() as lock:
            folder.begin(asked, *texts)
            _warn_of_a_full_disk(asked, topologies, folder, terminal.emit)
            sweeping = Sweeping(asked, folder, file, scenario, terminal)
            sweeping.run(at_a_time, lock)
            document = sweeping.measure()
        terminal.document(document)
        terminal.show(
            points_table(document), *failed_table(document), f"report: {document['report']}"
        )
        if missing := missing_sentence(document):
            terminal.emit(Warned(missing))
        if document["failed"]:
            raise typer.Exit(FAILED)


def _wanted(
    file: Path,
    values: list[str],
    trials: int,
    seed: int | None,
    name: str | None,
    scenario: Path | None,
    backend: str,
) -> Sweep:
    """What is asked for, without the digest of the files."""
    axes = tuple(parse_axis(text) for text in values)
    check_axes(axes, trials)
    first = [f"{axis.path}={axis.values[0]}" for axis in axes]
    topology = load(file, name=name, scenario=scenario, overrides=first)
    chosen = topology.seed if seed is None else seed
    return Sweep(topology.name, axes, trials, chosen, backend, digest="")


def _checked(wanted: Sweep, file: Path, name: str | None, scenario: Path | None) -> list[Topology]:
    """The topology of each combination; errors in any of them are raised before anything starts."""
    return [
        load(file, name=name, scenario=scenario, overrides=cell.overrides)
        for cell in replace(wanted, trials=1).cells()
    ]


def _digest(texts: Iterable[str | None], topologies: Iterable[Topology]) -> str:
    """The digest of the files; topologies include the contents of further files that these, or values, name."""
    digest = hashlib.sha256()
    for part in (*texts, *map(to_json, topologies)):
        digest.update(json.dumps(part).encode() + b"\0")
    return digest.hexdigest()[:16]


def _usual_jobs(backend: str) -> int:
    return len(os.sched_getaffinity(0)) if backend == SIMULATED else 1


def _disk_of(asked: Sweep, topologies: Sequence[Topology], left: int) -> DiskEstimate:
    """What so many cells take: as much as the combinations do in the mean."""
    simulated = asked.backend == SIMULATED
    return mean_of([estimate_disk(each, simulated=simulated) for each in topologies]).times(left)


def _warn_of_a_full_disk(
    asked: Sweep, topologies: Sequence[Topology], folder: SweepFolder, emit: Emit
) -> None:
    cells = asked.cells()
    left = len(cells) - len(folder.done(cells))
    disk = _disk_of(asked, topologies, left)
    if sentence := shortage(disk, free_bytes(folder.path), folder.path, left):
        emit(Warned(sentence))


def _show_cells(
    asked: Sweep,
    topologies: Sequence[Topology],
    folder: SweepFolder,
    jobs: int,
    terminal: Terminal,
) -> None:
    cells = asked.cells()
    done = folder.done(cells)
    estimate = _estimate(asked, topologies[0], done, len(cells) - len(done), jobs)
    disk = _disk_of(asked, topologies, len(cells) - len(done))
    terminal.document(
        {
            "folder": str(folder.path),
            "jobs": jobs,
            "cells": [
                {
                    "number": cell.number,
                    "settings": dict(cell.settings),
                    "trial": cell.trial,
                    "seed": cell.seed,
                    "done": cell.number in done,
                }
                for cell in cells
            ],
            "estimate_s": estimate,
            "disk": disk.to_json(),
        }
    )
    left = (
        "the duration is estimated after the first cell"
        if estimate is None
        else f"the others take at least {DURATION.write(round(estimate, 1))}, and then the analysis"
    )
    terminal.show(
        cells_table(cells, done),
        f"{len(cells)} cells, {len(done)} done, {jobs} at a time; {left}",
        shortage(disk, free := free_bytes(folder.path), folder.path, len(cells) - len(done))
        or f"they take about {size_text(disk.total)}; {size_text(free)} are free",
        f"folder: {folder.path}",
    )


def _estimate(
    asked: Sweep, topology: Topology, done: dict[int, dict[str, Any]], left: int, jobs: int
) -> float | None:
    """Seconds for what is left: like the cells before, else as long as their scenario; None for a first simulation."""
    rounds = -(-left // jobs)
    took = [float(one["seconds"]) for one in done.values()]
    if took:
        return rounds * median(took)
    return None if asked.backend == SIMULATED else rounds * topology.scenario.lasts_s
