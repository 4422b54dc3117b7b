"""Commands that make runs, and their report: run, simulate, report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from testbed.backends.choice import SIMULATED
from testbed.cli.expectations import expectation_tables, fail_if_unmet, judge_again
from testbed.cli.master import HERE
from testbed.cli.options import (
    CALIBRATE_SECONDS,
    AsJson,
    Calibrate,
    CalibrateSeconds,
    NewName,
    Overrides,
    RunBackendName,
    RunName,
    ScenarioFile,
    Speed,
    TopologyFile,
)
from testbed.cli.stages import stages
from testbed.cli.summary import summary_tables
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, NameTaken, TestbedError
from testbed.events import Emit, StageEnded, StageStarted, Warned
from testbed.jsonfiles import read_json
from testbed.lab import bring_down, bring_up, play, simulate
from testbed.lab.simulate import SERVICE_S
from testbed.places import RunPlace
from testbed.records import UNFINISHED, lab_names, the_run
from testbed.topology import load
from testbed.topology.model import Topology
from testbed.topology.units import DURATION, parse_duration

Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=2**63 - 1, help="Instead of the file's: another trial of the same lab."
    ),
]


@dataclass(frozen=True, slots=True)
class Measuring:
    """How a run is measured: where Spark computes, level -> seconds that go before the run's own deadlines, and
    what is expected besides what the run's scenario says."""

    master: str = HERE
    deadlines: Mapping[int, float] = field(default_factory=dict)
    expected: Sequence[dict[str, Any]] = ()


AS_RUN = Measuring()


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed run topologies/demo.yaml")(run)
    app.command("simulate", epilog="Example: testbed simulate topologies/demo.yaml")(simulate_file)
    app.command(epilog="Example: testbed report")(report)


def run(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    speed: Speed = None,
    seed: Seed = None,
    backend: RunBackendName = None,
    calibrate: Calibrate = False,
    calibrate_seconds: CalibrateSeconds = CALIBRATE_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Do it all: up, play, down, analyze, report."""
    with Terminal(as_json) as terminal:
        terminal.if_interrupted = "interrupted; what this command had made was taken back"
        topology = _loaded(file, name, seed, scenario, with_speed(overrides, speed))
        if backend == SIMULATED:
            if calibrate:
                raise InputError("simulated lines need no calibration", "leave --calibrate out")
            _simulate_and_show(topology, file, terminal, scenario=scenario)
            return
        thorough_s = calibrate_seconds if calibrate else None
        if topology.name in lab_names():
            raise NameTaken(
                f"a lab named {topology.name!r} is up already; `run` starts a lab of its own",
                f"`testbed play {topology.name}`, or `testbed down {topology.name}`, or --name",
            )
        try:
            record = bring_up(
                topology,
                file,
                backend,
                terminal.emit,
                thorough_s=thorough_s,
                scenario=scenario,
            )
            terminal.if_interrupted = (
                f"interrupted; the lab was taken down; what it captured is in {record.run_folder}"
            )
            play(record, terminal.emit)
        finally:
            if topology.name in lab_names():
                bring_down(topology.name, terminal.emit)
        analyze_and_show(record.run_place, terminal)


def simulate_file(
    file: TopologyFile,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    speed: Speed = None,
    seed: Seed = None,
    service_time: Annotated[
        str, typer.Option(help="What a node's processor takes for one message.")
    ] = DURATION.write(SERVICE_S),
    as_json: AsJson = False,
) -> None:
    """Run the whole scenario in virtual time: the nodes' own algorithms on computed lines, the same each time."""
    with Terminal(as_json) as terminal:
        terminal.if_interrupted = "interrupted; what this command had made was taken back"
        try:
            service_s = parse_duration(service_time)
        except ValueError as error:
            raise InputError(
                f"--service-time: {error}", "write it with its unit, e.g. 1ms"
            ) from error
        topology = _loaded(file, name, seed, scenario, with_speed(overrides, speed))
        _simulate_and_show(topology, file, terminal, service_s, scenario)


def with_speed(overrides: Sequence[str] | None, speed: float | None) -> list[str]:
    """`--speed` is short for setting the file's `scenario.speed`."""
    return [*(overrides or ()), *([] if speed is None else [f"scenario.speed={speed!r}"])]


def _loaded(
    file: Path,
    name: str | None,
    seed: int | None,
    scenario: Path | None,
    overrides: Sequence[str],
) -> Topology:
    """The file's topology, with another seed if one is wanted: a further trial of the same experiment."""
    topology = load(file, name=name, scenario=scenario, overrides=overrides)
    return topology if seed is None else replace(topology, seed=seed)


def _simulate_and_show(
    topology: Topology,
    file: Path,
    terminal: Terminal,
    service_s: float = SERVICE_S,
    scenario: Path | None = None,
) -> None:
    terminal.if_interrupted = "interrupted; what this command had made was taken back"
    analyze_and_show(simulate(topology, file, terminal.emit, service_s, scenario), terminal)


def report(
    name: RunName = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also write each chart as SVG and PDF, for papers.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Folder for --figures; else `figures` in the run's folder."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write report.html of a run; analyses it first if that was not done yet."""
    with Terminal(as_json) as terminal:
        if to is not None and not figures:
            raise InputError("--to names the folder for figures", "add --figures")
        place = the_run(name)
        if not read_json(place.folder / "summary.json"):
            analyze_run(place, terminal.emit)
        summary = judge_again(place)
        path = write_run_report(place, terminal.emit)
        drawn = _write_figures(place, to, terminal.emit) if figures else []
        told = {"figures": drawn} if figures else {}
        verdicts = summary["expectations"]
        terminal.document({"run": place.run, "report": str(path), **told, "expectations": verdicts})
        terminal.show(
            *expectation_tables(summary),
            f"report: {path}",
            *(f"figure: {figure}" for figure in drawn),
        )
        say_doubts(summary, terminal)
        fail_if_unmet([summary], terminal)


def analyze_and_show(
    place: RunPlace,
    terminal: Terminal,
    measuring: Measuring = AS_RUN,
    more: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Measure a run, report on it, and tell; `more` gives further keys of the document when all is measured."""
    terminal.if_interrupted = (
        f"interrupted; the captures in {place.folder} are complete: `testbed analyze {place.run}`"
    )
    summary = analyze_run(place, terminal.emit, measuring)
    path = write_run_report(place, terminal.emit)
    terminal.document({**summary, "report": str(path), **more()})
    terminal.show(*summary_tables(summary), *expectation_tables(summary), f"report: {path}")
    say_doubts(summary, terminal)
    fail_if_unmet([summary], terminal)


def say_doubts(summary: dict[str, Any], terminal: Terminal, run: str = "") -> None:
    """Why the numbers deserve doubt; `run`: of which of several."""
    for reason in summary["fidelity"]["reasons"]:
        terminal.emit(Warned(f"{run}: {reason}" if run else reason))


def analyze_run(place: RunPlace, emit: Emit, measuring: Measuring = AS_RUN) -> dict[str, Any]:
    """Measure a run; TestbedError if it cannot be."""
    from analysis.errors import AnalysisError
    from analysis.pipeline import analyze as measure_run

    warn_if_up(place, emit)
    try:
        summary = measure_run(
            place.folder,
            emit=stages(emit),
            master=measuring.master,
            deadlines=measuring.deadlines,
        )
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error
    return judge_again(place, measuring.expected) if measuring.expected else summary


def warn_if_up(place: RunPlace, emit: Emit) -> None:
    """What goes on is measured only so far; a manifest that cannot be read is the analysis' to tell of."""
    manifest = read_json(place.manifest)
    if isinstance(manifest, dict) and manifest.get("status") in UNFINISHED:
        emit(Warned("the lab of this run is still up: its captures are not complete"))


def write_run_report(place: RunPlace, emit: Emit) -> Path:
    from analysis.report import write_report

    stage = "writing the report"
    emit(StageStarted(stage, 1))
    path = write_report(place.folder)
    emit(StageEnded(stage))
    return path


def _write_figures(place: RunPlace, folder: Path | None, emit: Emit) -> list[str]:
    from analysis.figures import write_figures

    stage = "drawing the figures"
    emit(StageStarted(stage, 1))
    written = write_figures(place.folder, folder)
    emit(StageEnded(stage))
    return [str(path) for path in written]
