"""`testbed analyze [RUN]...`: captures into metrics, of one run or of many in one Spark session."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.spark.local_java import LocalJava
from testbed.cli.masters import HERE, chosen_master
from testbed.cli.measurement import (
    Expected,
    Measuring,
    analyze_and_show,
    expectation_tables,
    fail_if_unmet,
    judge_again,
    read_expected,
    stages,
    start_ahead,
    warn_if_up,
    warn_of_fidelity,
    warn_of_missing,
    write_run_report,
)
from testbed.cli.options import AsJson, Master, NoReport, Strict
from testbed.cli.tables.summary import batch_tables
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.places import RunPlace
from testbed.progress import (
    Emit,
    Event,
    Incomplete,
    StageAdvanced,
    StageEnded,
    StageStarted,
    Warned,
)
from testbed.records import find_run
from testbed.topology.units import parse_duration

if TYPE_CHECKING:
    from analysis.stats.trials import Trial

FAILED = 1  # exit code
LEVELS = ("1", "2", "3", "4", "5")

Runs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN",
        help="Ids, folders or labs of runs. Default: the newest run in captures/.",
    ),
]
Deadlines = Annotated[
    list[str] | None,
    typer.Option(
        "--deadline",
        metavar="LEVEL=TIME",
        help="Deadline of a level, instead of that in the run's topology, e.g. 5=2s. Repeatable.",
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FOLDER",
        help="Also write the metrics of these runs as a dataset: a folder for each table, partitioned by run.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed analyze valley-1 valley-2 valley-3 --to valley-trials")(
        analyze
    )


def analyze(
    runs: Runs = None,
    deadline: Deadlines = None,
    expect: Expected = None,
    to: Target = None,
    master: Master = None,
    no_report: NoReport = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Compute hops, overhead and delay (metrics/*.parquet) from the captures of runs, with Spark.

    Runs of the same lab and methods are trials of one experiment: their numbers get intervals. A run that cannot be
    measured does not keep the others from it; the exit code is 1 then.
    """
    with Terminal(as_json, strict) as terminal:
        due = dict(read_deadline(text) for text in deadline or ())
        expected = read_expected(expect)
        refuse_target(to)
        named: list[str | None] = [*runs] if runs else [None]
        places = list(dict.fromkeys(find_run(name) for name in named))
        with LocalJava() as java:
            where = chosen_master(master)
            start_ahead(java, where, no_report=no_report)
            measuring = Measuring(where, due, expected, java)
            if len(places) > 1:
                _analyze_batch(places, measuring, to, terminal, no_report)
                return
            (place,) = places
            more = partial(_only, place, to)
            analyze_and_show(place, terminal, measuring, more, no_report=no_report)
        if to is not None:
            terminal.show(f"dataset: {to}")


def read_deadline(text: str) -> tuple[int, float]:
    """`5=2s`; InputError for anything else."""
    level, _, time = text.partition("=")
    if level not in LEVELS:
        raise InputError(
            f"--deadline {text!r}: there is no level {level!r}",
            "levels are 1 to 5: --deadline 5=2s",
        )
    try:
        return int(level), parse_duration(time)
    except ValueError as error:
        raise InputError(f"--deadline {text!r}: {error}", "write it with its unit: 5=2s") from error


def refuse_target(to: Path | None) -> None:
    """InputError if the folder cannot be made: otherwise that would fail after all was measured."""
    if to is not None and to.exists() and not to.is_dir():
        raise InputError(
            f"--to {to} is a file", "name a folder; testbed makes it if it does not exist"
        )


def _analyze_batch(
    places: list[RunPlace],
    measuring: Measuring,
    to: Path | None,
    terminal: Terminal,
    no_report: bool,
) -> None:
    from analysis.batch import analyze_runs
    from analysis.stats.trials import experiments, trials_of

    terminal.if_interrupted = "interrupted; runs that were already analyzed have their metrics"
    for place in places:
        warn_if_up(place, terminal.emit)
    by_folder = {place.folder.resolve(): place for place in places}
    rows: list[dict[str, Any]] = []
    measured = []
    for found in analyze_runs(
        [*by_folder],
        lambda name: stages(_of_run(name, terminal.emit)),
        measuring.master or HERE,
        measuring.deadlines,
        java=measuring.java,
    ):
        place = by_folder[found.folder]
        row: dict[str, Any] = {"run": place.run, "folder": str(place.folder)}
        if found.error is None and found.run is not None and found.summary is not None:
            more = measuring.expected
            summary = judge_again(place, more) if more else found.summary
            of_run = _of_run(place.run, terminal.emit)
            report = None if no_report else str(write_run_report(place, of_run))
            row |= {"error": None, "summary": summary, "report": report}
            measured.append(found.run)
        elif found.error is not None:
            error = {"message": found.error.message, "hint": found.error.hint}
            row |= {"error": error, "summary": None, "report": None}
        rows.append(row)
    trials = trials_of(measured)
    number = {trial.run.name: trial for trial in trials}
    for row in rows:
        trial = number.get(row["run"])
        row |= {"setup": trial.setup if trial else None, "trial": trial.number if trial else None}
    repeated = experiments(trials)
    if to is not None and trials:
        _write(to, trials, repeated)
    document = {
        "runs": rows,
        "experiments": repeated,
        "dataset": str(to) if to is not None and trials else None,
    }
    terminal.document(document)
    terminal.show(*batch_tables(document))
    if no_report and measured:
        terminal.show("no reports were written: `testbed report RUN` writes the report of a run")
    for row in rows:
        if row["summary"]:
            terminal.show(*expectation_tables(row["summary"], f"expectations of {row['run']}"))
    for row in rows:
        if row["summary"]:
            warn_of_fidelity(row["summary"], terminal, row["run"])
            warn_of_missing(row["summary"], terminal, row["run"])
    if len(measured) < len(rows):
        raise typer.Exit(FAILED)
    fail_if_unmet([row["summary"] for row in rows], terminal)


def _only(place: RunPlace, to: Path | None) -> dict[str, Any]:
    """The entry on the dataset in the document of a run that is measured alone."""
    from analysis.inputs.run_folder import read_run
    from analysis.stats.trials import trials_of

    if to is None:
        return {}
    _write(to, trials_of([read_run(place.folder)]), [])
    return {"dataset": str(to)}


def _write(to: Path, trials: "list[Trial]", found: list[dict[str, Any]]) -> None:
    from analysis.batch import write_dataset
    from analysis.stats.trials import write_intervals

    write_dataset(to, trials)
    write_intervals(to, found)


def _of_run(name: str, emit: Emit) -> Emit:
    """Add the name of the run to its stages, as each run goes through the same ones."""

    def forward(event: Event) -> None:
        match event:
            case StageStarted(stage, total) if name:
                emit(StageStarted(f"{name}: {stage}", total))
            case StageAdvanced(stage, by, detail) if name:
                emit(StageAdvanced(f"{name}: {stage}", by, detail))
            case StageEnded(stage) if name:
                emit(StageEnded(f"{name}: {stage}"))
            case Warned(text) if name:
                emit(Warned(f"{name}: {text}"))
            case Incomplete(text) if name:
                emit(Incomplete(f"{name}: {text}"))
            case _:
                emit(event)

    return forward
