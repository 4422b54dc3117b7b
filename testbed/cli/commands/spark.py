"""`testbed spark start|stop|status`: Spark that is kept ready between commands."""

import math
from typing import Annotated, Any

import typer
from rich.table import Table

from testbed.cli.masters import warm_spark
from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.doctor.checks import size
from testbed.errors import InputError, TestbedError
from testbed.places import own_state_root
from testbed.progress import Note, StageEnded, StageStarted
from testbed.topology.units import parse_duration

STARTING = "starting Spark"
IDLE = "20min"

Idle = Annotated[
    str,
    typer.Option("--idle", metavar="TIME", help="Spark ends after it has been idle for this time."),
]


def register(app: typer.Typer) -> None:
    spark = typer.Typer(
        help="Keep a Spark session running between commands, so that analyses start without delay.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    spark.command(epilog="Example: testbed spark start --idle 1h")(start)
    spark.command(epilog="Example: testbed spark stop")(stop)
    spark.command(epilog="Example: testbed spark status --json")(status)
    app.add_typer(spark, name="spark")


def start(idle: Idle = IDLE, as_json: AsJson = False) -> None:
    """Start a Spark session that stays for analyze, run, simulate, compare, query, sweep, packets and report."""
    from analysis.errors import AnalysisError
    from analysis.report import drawer

    with Terminal(as_json) as terminal:
        terminal.if_interrupted = "interrupted; Spark was not started"
        try:
            idle_s = parse_duration(idle)
        except ValueError as error:
            raise InputError(f"--idle: {error}", "write it with its unit, e.g. 1h") from error
        own_state_root()
        warm = warm_spark()
        if warm.is_current():
            terminal.emit(Note("Spark is already running"))
        else:
            terminal.emit(StageStarted(STARTING, 1))
            try:
                warm.stop()  # one with other code
                warm.start(idle_s, drawer.__name__)
            except AnalysisError as error:
                raise TestbedError(error.message, error.hint) from error
            terminal.emit(StageEnded(STARTING))
        _show(terminal)


def stop(as_json: AsJson = False) -> None:
    """End the Spark session. A command that is using it fails."""
    from analysis.errors import AnalysisError

    with Terminal(as_json) as terminal:
        try:
            stopped = warm_spark().stop()
        except AnalysisError as error:
            raise TestbedError(error.message, error.hint) from error
        terminal.document({"stopped": stopped})
        terminal.show("Spark has ended" if stopped else "no Spark is kept ready")


def status(as_json: AsJson = False) -> None:
    """Show whether a Spark session is running, its memory, and when it ends."""
    with Terminal(as_json) as terminal:
        _show(terminal)


def _show(terminal: Terminal) -> None:
    warm = warm_spark()
    found = warm.status()
    if found is None:
        terminal.document({"ready": False})
        terminal.show("no Spark is kept ready: `testbed spark start` starts it")
        return
    current = warm.is_current()
    names = ("pid", "java", "java_version", "used_by", "memory_bytes", "ends_in_s")
    terminal.document({"ready": True, "current": current} | {name: found[name] for name in names})
    terminal.show(_table(found))
    if not current:
        terminal.emit(
            Note(
                "commands do not use this session, because testbed has changed since it was started; "
                "`testbed spark start` restarts it"
            )
        )


def _table(found: dict[str, Any]) -> Table:
    table = Table(title="Spark", show_header=False)
    ends = found["ends_in_s"]
    commands = "command" if found["used_by"] == 1 else "commands"
    table.add_row("used by", f"{found['used_by']} {commands}")
    table.add_row("memory", size(found["memory_bytes"]))
    table.add_row("Java", f"{found['java_version']}, process {found['java']}")
    table.add_row("ends", "while in use: never" if ends is None else _idle(ends))
    return table


def _idle(seconds: float) -> str:
    return f"in {math.ceil(seconds / 60)} min, if nobody uses it"
