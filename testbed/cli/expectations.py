"""What was expected of a run and what was found, as a table; a run of which something else came has failed."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table

from testbed.cli.summary import seconds
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.events import Note
from testbed.jsonfiles import read_json, write_json
from testbed.places import RunPlace
from testbed.topology.expectations import ExpectationError, parse

UNMET = 1  # exit code
OK, FAILED, UNJUDGED = "pass", "FAIL", "FAIL (not judged)"

Expected = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="LINE",
        help="Expect this of the run, too, e.g. 'level 5 delay p99 < 2s' (docs/expectations.md). Several times. "
        "Exit code 1 if it is not so.",
    ),
]


def read_expected(lines: Sequence[str] | None) -> list[dict[str, Any]]:
    """Lines of the command's own; InputError with a caret below what is wrong."""
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
    from analysis import expectations
    from analysis.runfolder import read_run

    path = place.folder / "summary.json"
    summary = expectations.judge_again(read_run(place.folder), more)
    if summary != read_json(path):
        write_json(path, summary)
    return summary


def expectation_tables(summary: dict[str, Any], title: str = "what was expected") -> list[Table]:
    """A row for each line; nothing if nothing was expected."""
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
    """In a word, readable without colour."""
    if verdict["ok"]:
        return OK
    return UNJUDGED if verdict["found"] is None else FAILED


def fail_if_unmet(summaries: Sequence[dict[str, Any]], terminal: Terminal) -> None:
    """When everything is written and told: exit code 1 if something is not as it was expected."""
    verdicts = [verdict for one in summaries for verdict in one.get("expectations", ())]
    unmet = sum(not verdict["ok"] for verdict in verdicts)
    if unmet:
        terminal.emit(Note(f"{unmet} of {len(verdicts)} expectations were not met"))
        raise typer.Exit(UNMET)
