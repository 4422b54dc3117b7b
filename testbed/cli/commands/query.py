"""`testbed query "SELECT ..." [RUN...]`: questions in SQL to the metrics of runs."""

import csv
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from testbed.cli.masters import default_master
from testbed.cli.measurement import analyze_run, stages
from testbed.cli.options import AsJson, Strict
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.jsonfiles import read_json
from testbed.progress import Note
from testbed.records import find_run, is_sweep

Question = Annotated[
    str, typer.Argument(metavar="SQL", help="The query. SHOW VIEWS lists the tables.")
]
Runs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN",
        help="Ids, folders or labs of runs, or the folder of a sweep. Default: the newest run.",
    ),
]
Most = Annotated[int, typer.Option("--most", min=1, help="Maximum number of rows.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog='Example: testbed query "SELECT priority, avg(hops) FROM deliveries GROUP BY 1" demo'
    )(query)


def query(
    sql: Question,
    runs: Runs = None,
    most: Most = 1000,
    as_csv: AsCsv = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Query the metrics of one or several runs, or of a sweep, in Spark SQL.

    Tables are those of metrics/ (deliveries, delay, hops, links, messages, ...). Each row also has run, lab, backend,
    overlay, delivery and seed. The command first analyzes runs that have not been analyzed. The folder of a
    sweep also has the tables cells and points, and its rows have the swept values.
    """
    with Terminal(as_json, strict) as terminal:
        sweep = _sweep_of(runs or [])
        answer = (
            _ask_sweep(sql, sweep, most, terminal) if sweep else _ask(sql, runs, most, terminal)
        )
        terminal.document(answer)
        if as_csv and not as_json:
            _print_csv(answer)
        else:
            terminal.show(_table(answer))
        if answer["more"]:
            terminal.emit(Note(f"there are more rows than {most}: --most"))


def _sweep_of(names: list[str]) -> Path | None:
    """The folder of a sweep; None if runs are named. InputError for a sweep beside other names."""
    sweeps = [name for name in names if is_sweep(Path(name))]
    if sweeps and len(names) > 1:
        raise InputError(
            f"{sweeps[0]} is a sweep, and a query takes only one sweep and no runs beside it",
            f"name only the sweep, or only runs of it, which are in {Path(sweeps[0]) / 'runs'}",
        )
    return Path(sweeps[0]) if sweeps else None


def _ask_sweep(sql: str, sweep: Path, most: int, terminal: Terminal) -> dict[str, Any]:
    from analysis.errors import AnalysisError
    from analysis.query import ask_sweep

    try:
        return ask_sweep(sql, sweep.resolve(), most, stages(terminal.emit), default_master())
    except AnalysisError as error:
        raise InputError(error.message, error.hint) from error


def _ask(sql: str, runs: list[str] | None, most: int, terminal: Terminal) -> dict[str, Any]:
    from analysis.errors import AnalysisError
    from analysis.inputs.run_folder import read_run
    from analysis.query import ask_runs, check_question

    named: list[str | None] = [*runs] if runs else [None]
    places = list(dict.fromkeys(find_run(name) for name in named))
    try:
        check_question(sql)
        for place in places:
            if not read_json(place.folder / "summary.json"):
                analyze_run(place, terminal.emit)
        found = [read_run(place.folder) for place in places]
        return ask_runs(sql, found, most, stages(terminal.emit), default_master())
    except AnalysisError as error:
        raise InputError(error.message, error.hint) from error


def _table(answer: dict[str, Any]) -> Table:
    table = Table()
    for column in answer["columns"]:
        numeric = column["type"] in ("int", "bigint", "double", "float", "smallint", "tinyint")
        table.add_column(escape(column["name"]), justify="right" if numeric else "left")
    for row in answer["rows"]:
        table.add_row(*(escape(_shown(row[column["name"]])) for column in answer["columns"]))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_csv(answer: dict[str, Any]) -> None:
    names = [column["name"] for column in answer["columns"]]
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(answer["rows"])
