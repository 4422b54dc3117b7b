"""Commands about this machine: doctor."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.doctor import Check, Repair, as_json, examine
from testbed.doctor.remedies import Change, Done, carry_out, compare, plan, run_here
from testbed.errors import InputError, TestbedError
from testbed.progress import Note

MARKS = {"ok": "[green]ok[/]", "limited": "[yellow]limited[/]", "missing": "[red]missing[/]"}
MOST_ROUNDS = 3  # one repair can show the next lack: an engine that runs may have no image


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed doctor --json; testbed doctor --fix")(doctor)


def doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Repair what can be repaired and check again. The command asks first.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix: do not ask.")] = False,
    as_document: AsJson = False,
) -> None:
    """Check which tools and rights this machine has, and show what is not possible without the missing ones."""
    with Terminal(as_document) as terminal:
        if yes and not fix:
            raise InputError("--yes needs --fix", "add --fix, or remove --yes")
        before = examine(java_checks())
        if fix:
            _fix(before, terminal, yes)
            return
        terminal.document(as_json(before))
        terminal.show(_table(before))


def _fix(before: tuple[Check, ...], terminal: Terminal, yes: bool) -> None:
    done: list[Done] = []
    after = before
    could: dict[str, Check] = {}
    for _ in range(MOST_ROUNDS):
        could |= {check.name: check for check in after if check.repairs and check.name not in could}
        steps = plan(after, tried=[each.repair for each in done])
        if not steps:
            break
        terminal.show(_steps_table(steps))
        _ask(yes)
        done += carry_out(
            steps, run_here, lambda repair: terminal.emit(Note(f"$ {_typed(repair)}"))
        )
        after = examine(java_checks())
    changes = compare(could.values(), after)
    document = {**as_json(after), "repairs": _as_documents(done), "changes": _change_rows(changes)}
    if not done:
        terminal.show(_table(after), "there is nothing that could be fixed from here")
    else:
        terminal.show(_changes_table(changes))
    if left := [change for change in changes if not change.repaired]:
        terminal.so_far = document
        raise TestbedError(
            f"not fixed: {', '.join(change.name for change in left)}",
            "; ".join(
                f"`{_typed(each.repair)}` failed: {each.trouble}" for each in done if each.trouble
            )
            or left[0].after.fix,
        )
    terminal.document(document)


def _typed(repair: Repair) -> str:
    return repair.typed(as_root=os.geteuid() == 0)


def _ask(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(
            "the command must ask, and there is no terminal", "--yes repairs without asking"
        )
    if not typer.confirm("do this?", err=True):
        raise TestbedError("nothing was changed", "`testbed doctor` shows what each lack costs")


def _as_documents(done: Sequence[Done]) -> list[dict[str, object]]:
    return [
        {"argv": list(each.repair.argv), "root": each.repair.root, "trouble": each.trouble}
        for each in done
    ]


def _change_rows(changes: Sequence[Change]) -> list[dict[str, object]]:
    return [
        {"name": each.name, "before": asdict(each.before), "after": asdict(each.after)}
        for each in changes
    ]


def _table(checks: tuple[Check, ...]) -> Table:
    helps = Column("what helps", overflow="fold")  # commands, to be copied whole
    table = Table("what", "", "found", "what it costs", helps, show_lines=False)
    for check in checks:
        table.add_row(
            check.name,
            MARKS[check.status],
            escape(check.found),
            escape(check.costs),
            escape(check.fix),
        )
    return table


def _steps_table(steps: Sequence[Repair]) -> Table:
    table = Table("what will be done", "what it changes")
    for step in steps:
        table.add_row(escape(_typed(step)), escape(step.changes))
    return table


def _changes_table(changes: Sequence[Change]) -> Table:
    table = Table("what", "before", "after", "found")
    for change in changes:
        table.add_row(
            change.name,
            MARKS[change.before.status],
            MARKS[change.after.status],
            escape(change.after.found),
        )
    return table


def java_checks() -> tuple[Check, ...]:
    """Which Java the analysis would use, and whether it starts fast."""
    from analysis.errors import AnalysisError
    from analysis.spark.archive import State
    from analysis.spark.local_java import LocalJava

    try:
        archive = LocalJava().archive
    except AnalysisError as error:
        lack = "no analysis and no report"
        return (Check("Java", "missing", error.message, lack, error.hint),)
    java = Check("Java", "ok", f"{archive.java.version} ({archive.java.source})", "", "")
    if archive.state() in (State.MADE, State.MAKING):
        return java, Check("class archive", "ok", archive.describe(), "", "")
    costs = "Spark starts some seconds later, and measures the same"
    return java, Check("class archive", "limited", archive.describe(), costs, "")
