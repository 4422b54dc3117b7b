"""Commands about this machine: doctor."""

import typer
from rich.table import Table

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.doctor import Check, as_json, examine

MARKS = {"ok": "[green]ok[/]", "limited": "[yellow]limited[/]", "missing": "[red]missing[/]"}


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed doctor --json")(doctor)


def doctor(as_document: AsJson = False) -> None:
    """List what this machine has, and what each missing thing costs."""
    with Terminal(as_document) as terminal:
        checks = examine(java_check())
        terminal.document(as_json(checks))
        terminal.show(_table(checks))


def _table(checks: tuple[Check, ...]) -> Table:
    table = Table("what", "", "found", "what it costs", "what helps", show_lines=False)
    for check in checks:
        table.add_row(check.name, MARKS[check.status], check.found, check.costs, check.fix)
    return table


def java_check() -> Check:
    """Which Java the analysis would use."""
    from analysis.errors import AnalysisError
    from analysis.java import find_java

    try:
        java = find_java()
    except AnalysisError as error:
        return Check("Java", "missing", error.message, "no analysis and no report", error.hint)
    return Check("Java", "ok", f"{java.version} ({java.source})", "", "")
