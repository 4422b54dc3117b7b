"""Measure a run for a command: progress of the analysis, expectations, summary and report."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from testbed.cli.masters import HERE, default_master, ready_drawer
from testbed.cli.tables.summary import seconds, summary_tables
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError
from testbed.jsonfiles import read_json, write_json
from testbed.places import RunPlace
from testbed.progress import Emit, Note, StageAdvanced, StageEnded, StageStarted, Warned
from testbed.records import UNFINISHED
from testbed.topology.parse.expectations import ExpectationError, parse

if TYPE_CHECKING:
    from analysis.spark.local_java import LocalJava


def stages(emit: Emit) -> Callable[[str, int, int], None]:
    """A listener for (stage, done, total) that emits events."""
    known: dict[str, int] = {}

    def on_progress(stage: str, done: int, total: int) -> None:
        if stage not in known:
            known[stage] = 0
            emit(StageStarted(stage, total))
        emit(StageAdvanced(stage, done - known[stage]))
        known[stage] = done
        if done >= total:
            emit(StageEnded(stage))

    return on_progress


# What was expected of a run and what was found, as a table; a run of which something else came has failed.


UNMET = 1  # exit code
OK, FAILED, UNJUDGED = "pass", "FAIL", "FAIL (not judged)"

Expected = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="LINE",
        help="Add an expectation, e.g. 'level 5 delay p99 < 2s' (docs/reference/expectations.md). "
        "Repeatable. Exit with code 1 if an expectation is not met.",
    ),
]


def read_expected(lines: Sequence[str] | None) -> list[dict[str, Any]]:
    """Expectations given to the command; InputError with a caret below what is wrong."""
    found = []
    for line in lines or ():
        try:
            found.append(asdict(parse(line)))
        except ExpectationError as error:
            caret = " " * error.start + "^" * error.width
            raise InputError(
                f"--expect: {error.message}\n  {line}\n  {caret}", error.hint
            ) from error
    return found


def judge_again(place: RunPlace, more: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The run's summary with verdicts on what is expected of it; the file has them from now on, too."""
    from analysis.inputs.run_folder import read_run
    from analysis.stats import expectations

    path = place.folder / "summary.json"
    summary = expectations.judge_again(read_run(place.folder), more)
    if summary != read_json(path):
        write_json(path, summary)
    return summary


def expectation_tables(summary: dict[str, Any], title: str = "expectations") -> list[Table]:
    """A row for each expectation; nothing if there is none."""
    verdicts = summary.get("expectations", [])
    if not verdicts:
        return []
    table = Table(title=title)
    for column in ("expected", "found", "result"):
        table.add_column(column, justify="right" if column == "found" else "left")
    for verdict in verdicts:
        style = "" if verdict["ok"] else "bold red"
        table.add_row(verdict["expect"], found(verdict), result(verdict), style=style)
    return [table]


def found(verdict: dict[str, Any]) -> str:
    """The value in its unit, or why there is none."""
    value = verdict["found"]
    if value is None:
        return str(verdict["reason"])
    if verdict["unit"] == "s":
        return seconds(value)
    return f"{value:.3%}" if verdict["unit"] == "share" else f"{value:,.6g}"


def result(verdict: dict[str, Any]) -> str:
    """The verdict in one word, readable without colour."""
    if verdict["ok"]:
        return OK
    return FAILED if verdict.get("judged", verdict["found"] is not None) else UNJUDGED


def fail_if_unmet(summaries: Sequence[dict[str, Any]], terminal: Terminal) -> None:
    """Exit code 1 if an expectation is not met; to be called when everything is written and shown."""
    verdicts = [verdict for one in summaries for verdict in one.get("expectations", ())]
    unmet = sum(not verdict["ok"] for verdict in verdicts)
    if unmet:
        terminal.emit(Note(f"{unmet} of {len(verdicts)} expectations were not met"))
        raise typer.Exit(UNMET)


@dataclass(frozen=True, slots=True)
class Measuring:
    """How a run is measured: where Spark computes, level -> seconds that go before the run's own deadlines, and
    what is expected besides what the run's scenario says. `java`: one that may have been started ahead."""

    master: str | None = None  # None: the default one
    deadlines: Mapping[int, float] = field(default_factory=dict)
    expected: Sequence[dict[str, Any]] = ()
    java: "LocalJava | None" = None


def start_ahead(java: "LocalJava", master: str | None = None, *, no_report: bool = False) -> None:
    """Start what the analysis and the report need: Java and the process that draws, unless they are kept ready.

    What fails here, they report.
    """
    from analysis.errors import AnalysisError
    from analysis.report import drawing

    with suppress(AnalysisError, OSError):
        master = master or default_master()
        if master == HERE:
            java.start()
        if not no_report:
            drawing.load(ready_drawer(master))


def _load_report() -> None:
    from analysis.report.report import load_libraries

    with suppress(ImportError):  # the report itself says so
        load_libraries()


AS_RUN = Measuring()


def analyze_and_show(
    place: RunPlace,
    terminal: Terminal,
    measuring: Measuring = AS_RUN,
    more: Callable[[], dict[str, Any]] = dict,
    *,
    no_report: bool = False,
) -> None:
    """Measure a run, write its report unless `no_report`, and show it; `more`: further keys of the document."""
    terminal.if_interrupted = (
        f"interrupted; the captures in {place.folder} are complete: `testbed analyze {place.run}`"
    )
    meanwhile = None if no_report else _load_report
    summary = analyze_run(place, terminal.emit, measuring, meanwhile)
    report = None if no_report else str(write_run_report(place, terminal.emit))
    terminal.document({**summary, "report": report, **more()})
    tables = (*summary_tables(summary), *expectation_tables(summary))
    terminal.show(*tables, report_line(place.run, report))
    warn_of_fidelity(summary, terminal)
    warn_of_missing(summary, terminal)
    fail_if_unmet([summary], terminal)


def warn_of_fidelity(summary: dict[str, Any], terminal: Terminal, run: str = "") -> None:
    """Warn why the numbers may be wrong; `run`: which of several."""
    for reason in summary["fidelity"]["reasons"]:
        terminal.emit(Warned(f"{run}: {reason}" if run else reason))


MISSING_SHARE = 0.01  # of a level's expected deliveries; percentiles above this are not known


def warn_of_missing(summary: dict[str, Any], terminal: Terminal, run: str = "") -> None:
    """Warn of levels of which many deliveries had not arrived; `run`: which of several."""
    for level, count in sorted(summary["by_priority"].items(), reverse=True):
        missing = missing_deliveries(count["lost"], count["expected"])
        if missing:
            text = f"level {level}: {missing} had not arrived when the run ended"
            terminal.emit(Warned(f"{run}: {text}" if run else text))


def missing_deliveries(lost: int, expected: int) -> str:
    """Their number and share, if there are many; else empty."""
    if lost <= MISSING_SHARE * expected:
        return ""
    return f"{lost} of {expected} deliveries ({lost / expected * 100:.0f} %)"


def analyze_run(
    place: RunPlace,
    emit: Emit,
    measuring: Measuring = AS_RUN,
    meanwhile: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Measure a run; TestbedError if it cannot be. `meanwhile` is done beside it, when Spark has begun to work."""
    from analysis.errors import AnalysisError
    from analysis.pipeline import STARTING
    from analysis.pipeline import analyze as measure_run

    def on_progress(stage: str, done: int, total: int) -> None:
        nonlocal meanwhile
        if meanwhile is not None and stage != STARTING:
            threading.Thread(target=meanwhile).start()
            meanwhile = None
        show(stage, done, total)

    show = stages(emit)
    warn_if_up(place, emit)
    try:
        summary = measure_run(
            place.folder,
            emit=on_progress,
            master=measuring.master or default_master(),
            java=measuring.java,
            deadlines=measuring.deadlines,
        )
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error
    return judge_again(place, measuring.expected) if measuring.expected else summary


def warn_if_up(place: RunPlace, emit: Emit) -> None:
    """Warn that a run which goes on is measured only so far; the analysis reports an unreadable manifest."""
    manifest = read_json(place.manifest)
    if isinstance(manifest, dict) and manifest.get("status") in UNFINISHED:
        emit(Warned("the lab of this run is still up, so its captures are not complete"))


def report_line(run: str, report: str | None) -> str:
    """Where the report is, or how to write it."""
    return (
        f"report: {report}"
        if report
        else f"no report was written: `testbed report {run}` writes it"
    )


def write_run_report(place: RunPlace, emit: Emit) -> Path:
    from analysis.errors import AnalysisError
    from analysis.report.report import write_report

    stage = "writing the report"
    emit(StageStarted(stage, 1))
    try:
        path = write_report(place.folder)
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error
    emit(StageEnded(stage))
    return path
