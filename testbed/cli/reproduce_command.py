"""`testbed reproduce PAPER`: a whole paper on real links, from captures, beside its own numbers."""

import shutil
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from testbed.cli.options import AsJson
from testbed.cli.stages import stages
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, NameTaken, TestbedError
from testbed.events import Emit, Note, Warned
from testbed.jsonfiles import read_json, write_json
from testbed.lab import bring_down, bring_up, play
from testbed.papers import lee2016
from testbed.records import lab_names, new_run, update_manifest
from testbed.topology import load

RUNS = "runs.json"  # in the folder of a reproduction: the folders of its runs


class Paper(StrEnum):
    """What can be reproduced."""

    LEE2016 = "lee2016"


PaperName = Annotated[Paper, typer.Argument(metavar="PAPER", help="lee2016.")]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="Fewer rates and messages, five times as fast: two minutes."),
]
Backend = Annotated[
    str,
    typer.Option("--backend", help="netns or docker; one lab holds up to 274 nodes."),
]
Again = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="FOLDER", help="Measure the captures of an earlier reproduction again."
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed reproduce lee2016 --quick")(reproduce)


def reproduce(
    paper: PaperName,
    quick: Quick = False,
    backend: Backend = "netns",
    again: Again = None,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments side by side and set its numbers beside ours."""
    with Terminal(as_json) as terminal:
        if again is None:
            folder = new_run(f"reproduced-{paper}").folder
            run_labs(lee2016.QUICK if quick else lee2016.FULL, folder, backend, terminal)
        else:
            folder = again.resolve()
        result = measure(folder, terminal)
        terminal.document({**result, "report": str(folder / "report.html")})
        terminal.show(*tables(result), f"report: {folder / 'report.html'}")
        _say_doubts(result, terminal.emit)


def run_labs(extent: lee2016.Extent, folder: Path, backend: str, terminal: Terminal) -> None:
    """One lab after the other; the folder knows of those whose captures are complete."""
    taken = sorted({lab.name for lab in extent.labs} & set(lab_names()))
    if taken:
        raise NameTaken(
            f"a lab named {taken[0]!r} is up already; `reproduce` starts a lab of its own",
            f"`testbed down {taken[0]}`",
        )
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
    """Its run folder, when all is captured and the lab is down."""
    source = folder / f"{lab.name}.yaml"
    source.write_text(lee2016.topology_text(lab))
    topology = load(source)
    emit(Note(f"{lab.name}: {len(lab.cells)} cells, time runs {lab.scale} times as fast"))
    try:
        record = bring_up(topology, source, backend, emit)
        update_manifest(record.run_place, paper=lee2016.sheet(lab))
        play(record, emit, overloaded=True)
    finally:
        if topology.name in lab_names():
            bring_down(topology.name, emit)
    return record.run_place.folder


def measure(folder: Path, terminal: Terminal) -> dict[str, Any]:
    """The figures of the runs that the folder names."""
    from analysis.errors import AnalysisError
    from analysis.papers.lee2016.reproduction import reproduce as measure_runs

    runs = read_json(folder / RUNS)
    if not isinstance(runs, list) or not runs:
        raise InputError(
            f"{folder} is no folder of a reproduction: it has no {RUNS}",
            "`testbed reproduce lee2016` makes one",
        )
    terminal.if_interrupted = (
        f"interrupted; the captures are complete: `testbed reproduce lee2016 --from {folder}`"
    )
    try:
        return measure_runs([Path(run) for run in runs], folder, emit=stages(terminal.emit))
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error


def tables(result: dict[str, Any]) -> Sequence[Table]:
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
    checks = Table(title="What must be true", title_justify="left")
    for name in ("", "check", "found"):
        checks.add_column(name)
    for check in result["checks"]:
        checks.add_row(_verdict(check["ok"]), check["check"], check["found"])
    return delays, checks


def _figure(result: dict[str, Any], number: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in result["figures"] if one["figure"] == number)
    return found


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f} s"


def _growing(cell: dict[str, Any]) -> str:
    """Of what had not come at the end there is no delay, but there is how fast it grew."""
    ours = cell["ours"]
    if not ours["censored"] or ours["growth"] is None:
        return ""
    return f", {ours['censored']} not yet there; +{ours['growth']:.2f} s each second"


def _verdict(ok: bool | None) -> Text:
    if ok is None:
        return Text("-")
    return Text("ok", style="green") if ok else Text("not ok", style="red")


def _say_doubts(result: dict[str, Any], emit: Emit) -> None:
    for run in result["runs"]:
        for reason in run["fidelity"]["reasons"]:
            emit(Warned(f"{run['run']}: {reason}"))
    for check in result["checks"]:
        if check["ok"] is False:
            emit(Warned(f"not so: {check['check']}; {check['found']}"))
