"""`testbed report [RUN]`: write report.html of a run, and its figures."""

from pathlib import Path
from typing import Annotated

import typer

from testbed.cli.measurement import (
    analyze_run,
    expectation_tables,
    fail_if_unmet,
    judge_again,
    warn_of_fidelity,
    warn_of_missing,
    write_run_report,
)
from testbed.cli.options import AsJson, RunName, Strict
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.jsonfiles import read_json
from testbed.places import RunPlace
from testbed.progress import Emit, StageEnded, StageStarted
from testbed.records import find_run


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed report")(report)


def report(
    name: RunName = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also write each chart as SVG and PDF.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Folder for --figures. Default: `figures` in the run's folder."),
    ] = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Write report.html of a run. Analyze the run first if it has not been analyzed."""
    with Terminal(as_json, strict) as terminal:
        if to is not None and not figures:
            raise InputError(
                "--to needs --figures, because it names the folder of the figures", "add --figures"
            )
        place = find_run(name)
        if not read_json(place.folder / "summary.json"):
            analyze_run(place, terminal.emit)
        summary = judge_again(place)
        path = write_run_report(place, terminal.emit)
        drawn = _write_figures(place, to, terminal.emit) if figures else []
        figure_paths = {"figures": drawn} if figures else {}
        verdicts = summary["expectations"]
        terminal.document(
            {"run": place.run, "report": str(path), **figure_paths, "expectations": verdicts}
        )
        terminal.show(
            *expectation_tables(summary),
            f"report: {path}",
            *(f"figure: {figure}" for figure in drawn),
        )
        warn_of_fidelity(summary, terminal)
        warn_of_missing(summary, terminal)
        fail_if_unmet([summary], terminal)


def _write_figures(place: RunPlace, folder: Path | None, emit: Emit) -> list[str]:
    from analysis.report.figures import write_figures

    stage = "drawing the figures"
    emit(StageStarted(stage, 1))
    written = write_figures(place.folder, folder)
    emit(StageEnded(stage))
    return [str(path) for path in written]
