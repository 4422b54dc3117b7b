"""`testbed watch [RUN]`: delay and loss by level while a run goes on."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nodes.protocol.wire import LEVEL_NAMES
from testbed.cli.options import RunName
from testbed.cli.tables.summary import quantile
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError
from testbed.places import RunPlace
from testbed.progress import Note
from testbed.records import find_run, is_run_unfinished, read_manifest

if TYPE_CHECKING:
    from analysis.live.run import WatchedRun
    from analysis.live.table import Level

QUANTILES = ("p50", "p95", "max", "recent_p50", "recent_p95")
EVERY_S = 1.0
OVERDUE_S = 30.0

Every = Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two updates.")]
Overdue = Annotated[
    float,
    typer.Option(min=0.1, help="Seconds after which a message that has not arrived is overdue."),
]
Once = Annotated[bool, typer.Option("--once", help="Show the values once and exit.")]
AsLines = Annotated[
    bool,
    typer.Option(
        "--json", envvar="TESTBED_JSON", help="Print one JSON document per line for each update."
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed watch demo --every 2")(watch)


def watch(
    run: RunName = None,
    every: Every = EVERY_S,
    overdue: Overdue = OVERDUE_S,
    once: Once = False,
    as_json: AsLines = False,
) -> None:
    """Show delay and loss by level during a run, from its captures and logs.

    Ends with the run (exit code 0) or with Ctrl-C (130); the run goes on then.
    """
    with Terminal(as_json) as terminal:
        terminal.if_interrupted = "interrupted; the run continues"
        place = find_run(run)
        watched = _open(place)
        with terminal.screen() as show:
            while True:
                began = time.monotonic()
                running = is_run_unfinished(
                    place
                )  # checked first, so that messages until the end are read
                _look(watched, final=not running)
                levels = watched.levels(
                    time.time_ns(), overdue if running else 0.0, over=not running
                )
                terminal.line(document(watched, levels, running))
                show(table(watched, levels, running))
                if once or not running:
                    break
                time.sleep(max(0.0, began + every - time.monotonic()))
        if not running and not once:
            terminal.emit(
                Note(f"run {place.run} has ended: `testbed analyze` computes all metrics")
            )


def _open(place: RunPlace) -> "WatchedRun":
    from analysis.live.run import WatchedRun

    if place.trace.is_dir():
        raise InputError(
            f"run {place.run} was simulated in virtual time and cannot be watched",
            "`testbed analyze` measures it",
        )
    read_manifest(place)  # raises if it is invalid
    return WatchedRun(place.folder)


def _look(watched: "WatchedRun", final: bool) -> None:
    from analysis.errors import AnalysisError

    try:
        watched.look(final)
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error


def document(watched: "WatchedRun", levels: "list[Level]", running: bool) -> dict[str, Any]:
    """For programs."""
    return {
        "run": watched.run.name,
        "t": time.time_ns(),
        "running": running,
        "by": "captures" if watched.by_captures else "logs",
        "levels": {
            str(level.level): {
                name: value for name, value in level._asdict().items() if name != "level"
            }
            for level in levels
        },
    }


def table(watched: "WatchedRun", levels: "list[Level]", running: bool) -> Table:
    """For people. Overdue messages of a run that is over are lost; percentiles count what is overdue."""
    shown = Table(title=f"run {watched.run.name}" + ("" if running else " (over)"))
    if not watched.by_captures:
        shown.caption = "by the receivers' logs: links are not captured"
    shown.add_column("level")
    names = ("published", "delivered", "under way", "overdue" if running else "lost")
    for name in (*names, "p50", "p95", "max", "last 10 s", "p50", "p95"):
        shown.add_column(name, justify="right")
    for level in levels:
        delays = [quantile(level._asdict(), name) for name in QUANTILES]
        shown.add_row(
            f"{level.level} {LEVEL_NAMES[level.level]}",
            str(level.published),
            f"{level.delivered} of {level.expected}",
            str(level.in_flight),
            str(level.overdue),
            *delays[:3],
            str(level.recent),
            *delays[3:],
            style="bold" if level.level == max(LEVEL_NAMES) else "",
        )
    return shown
