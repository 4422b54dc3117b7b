"""`testbed sweep FILE --set PATH=VALUES`: all combinations of some values, several trials each, and one report."""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from testbed.backends.choice import SIMULATED, choose_backend, known_backend
from testbed.cli.options import AsJson, NewName, ScenarioFile, TopologyFile
from testbed.cli.sweep_tables import cells_table, failed_table, points_table
from testbed.cli.sweeping import Sweeping
from testbed.cli.terminal import Terminal
from testbed.sweeps.axes import parse_axis
from testbed.sweeps.cells import Sweep, check_axes
from testbed.sweeps.folder import SweepFolder
from testbed.topology import load
from testbed.topology.files import text_of
from testbed.topology.model import Topology, to_json
from testbed.topology.units import DURATION

FAILED = 1  # exit code

Axes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUES",
        envvar="TESTBED_SET",
        help="Values that a path of the file takes: a list (delivery.method=fifo,dmpq-pc), a range of five values "
        "(links.profiles.mvno.up.rate=4..20kB/s) or with its step (4..20:4kB/s). Several times: all combinations.",
    ),
]
Trials = Annotated[
    int, typer.Option("--trials", min=1, max=1_000, help="Runs of each combination, by seed.")
]
FirstSeed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**62, help="Of the first trial, instead of the file's."),
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
        help="Cells at a time; simulated: one a core; real links: one, as labs share the machine.",
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FOLDER",
        help="Where everything goes; without it a folder in sweeps/. The same sweep in the same folder goes on.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the cells.")]


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
    as_json: AsJson = False,
) -> None:
    """Run a file with all combinations of some values, each several times with other seeds; one report on all.

    Cells that are done are not done again: after an interrupt, the same command goes on. A cell that fails is
    recorded, and the others go on; the exit code is 1 then.
    """
    with Terminal(as_json) as terminal:
        known_backend(None if backend == SIMULATED else backend)
        texts = text_of(file), None if scenario is None else text_of(scenario)
        wanted = _wanted(file, values or [], trials, seed, name, scenario, backend)
        topologies = _checked(wanted, file, name, scenario)
        asked = replace(wanted, digest=_digest(texts, topologies))
        folder = SweepFolder((to or Path("sweeps") / f"{asked.lab}-{asked.identity}").resolve())
        at_a_time = min(jobs or _usual_jobs(backend), len(asked.cells()))
        if dry_run:
            _show_cells(asked, topologies[0], folder, at_a_time, terminal)
            return
        if backend != SIMULATED:
            choose_backend(backend)  # what the machine lacks is told before a folder is made
        with folder.alone() as lock:
            folder.begin(asked, *texts)
            sweeping = Sweeping(asked, folder, file, scenario, terminal)
            sweeping.run(at_a_time, lock)
            document = sweeping.measure()
        terminal.document(document)
        terminal.show(
            points_table(document), *failed_table(document), f"report: {document['report']}"
        )
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
    """The topology of each combination; whatever is wrong with one is told before anything starts."""
    return [
        load(file, name=name, scenario=scenario, overrides=cell.overrides)
        for cell in replace(wanted, trials=1).cells()
    ]


def _digest(texts: Iterable[str | None], topologies: Iterable[Topology]) -> str:
    """Of the files; topologies have what stands in further files that these, or values, name."""
    digest = hashlib.sha256()
    for part in (*texts, *map(to_json, topologies)):
        digest.update(json.dumps(part).encode() + b"\0")
    return digest.hexdigest()[:16]


def _usual_jobs(backend: str) -> int:
    return len(os.sched_getaffinity(0)) if backend == SIMULATED else 1


def _show_cells(
    asked: Sweep, topology: Topology, folder: SweepFolder, jobs: int, terminal: Terminal
) -> None:
    cells = asked.cells()
    done = folder.done(cells)
    estimate = _estimate(asked, topology, done, len(cells) - len(done), jobs)
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
        }
    )
    left = (
        "how long a cell takes is known when the first one is done"
        if estimate is None
        else f"the others take at least {DURATION.write(round(estimate, 1))}, and then the analysis"
    )
    terminal.show(
        cells_table(cells, done),
        f"{len(cells)} cells, {len(done)} done, {jobs} at a time; {left}",
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
