"""Lee 2016: labs with shaped links, captured; the figures come from the captures."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from testbed.cli.measurement import stages
from testbed.cli.papers.base import Asked, Reproduction, Result, checks_table, warnings_of_runs
from testbed.cli.papers.labs import PaperLab, refuse_those_that_are_up, run_lab
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError
from testbed.jsonfiles import read_json, write_json
from testbed.papers import lee2016
from testbed.progress import Emit, Note

RUNS = "runs.json"  # in the folder of a reproduction: the folders of its runs
BACKEND = "netns"


def anew(asked: Asked, folder: Path, terminal: Terminal) -> Result:
    """All labs, then their figures."""
    extent = lee2016.QUICK if asked.quick else lee2016.FULL
    run_labs(extent, folder, asked.backend or BACKEND, terminal)
    return measure(folder, terminal)


def run_labs(extent: lee2016.Extent, folder: Path, backend: str, terminal: Terminal) -> None:
    """One lab after the other; the folder knows of those whose captures are complete."""
    refuse_those_that_are_up([lab.name for lab in extent.labs])
    folder.mkdir(parents=True)
    done: list[str] = []
    terminal.if_interrupted = "interrupted; the lab was taken down"
    try:
        for lab in extent.labs:
            done.append(str(_run_lab(lab, folder, backend, terminal.emit)))
            write_json(folder / RUNS, done)
    except BaseException:
        if not done:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _run_lab(lab: lee2016.Lab, folder: Path, backend: str, emit: Emit) -> Path:
    emit(Note(f"{lab.name}: {len(lab.cells)} cells, time runs {lab.scale} times as fast"))
    wanted = PaperLab(lab.name, lee2016.topology_text(lab), lee2016.sheet(lab), overloaded=True)
    return run_lab(wanted, folder, backend, emit)


def measure(folder: Path, terminal: Terminal) -> Result:
    """The figures of the runs that the folder names."""
    from analysis.errors import AnalysisError
    from analysis.papers.lee2016.reproduction import reproduce as measure_runs

    runs = read_json(folder / RUNS)
    if not isinstance(runs, list) or not runs:
        raise InputError(
            f"{folder} is not the folder of a reproduction: it has no {RUNS}",
            "`testbed reproduce lee2016` makes one",
        )
    terminal.if_interrupted = (
        f"interrupted; the captures are complete: `testbed reproduce lee2016 --from {folder}`"
    )
    try:
        return measure_runs([Path(run) for run in runs], folder, emit=stages(terminal.emit))
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error


def tables(result: Result) -> Sequence[Table]:
    """For people: the largest delays beside the thesis', and whether what must be true is."""
    delays = Table(title=_figure(result, "table 7.1")["title"], title_justify="left")
    for name, justify in (("", "left"), ("thesis", "right"), ("ours", "right"), ("bound", "right")):
        delays.add_column(name, justify="right" if justify == "right" else "left")
    for cell in _figure(result, "table 7.1")["cells"]:
        delays.add_row(
            cell["series"],
            _seconds((cell["paper"] or {}).get("largest_s")),
            _seconds(cell["ours"]["largest_s"]) + _growing(cell),
            _seconds((cell["bound"] or {}).get("largest_s")),
        )
    return delays, checks_table(result)


def _figure(result: Result, number: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in result["figures"] if one["figure"] == number)
    return found


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"


def _growing(cell: dict[str, Any]) -> str:
    """Of what had not arrived at the end there is no delay, but there is how fast it grew."""
    ours = cell["ours"]
    if not ours["censored"] or ours["growth"] is None:
        return ""
    return f", {ours['censored']} not yet there; +{ours['growth']:.2f} s each second"


LEE2016 = Reproduction(
    name="lee2016",
    about="urgent messages first on a narrow link (labs on shaped links)",
    options=("backend",),
    anew=anew,
    again=measure,
    tables=tables,
    warnings=warnings_of_runs,
)
