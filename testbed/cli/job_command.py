"""`testbed job --to FOLDER`: what `spark-submit` needs to do our analysis on a cluster without testbed."""

from pathlib import Path
from typing import Annotated

import typer

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal

To = Annotated[
    Path, typer.Option("--to", metavar="FOLDER", help="Where the two files are written.")
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed job --to job")(job)


def job(to: To, as_json: AsJson = False) -> None:
    """Write our code and a program for spark-submit: `packets` and `analyze` on a cluster that has neither."""
    from analysis.shipping import write_job

    with Terminal(as_json) as terminal:
        code, program = write_job(to)
        terminal.document({"code": str(code), "program": str(program)})
        submit = f"spark-submit --master spark://HOST:PORT --py-files {code} {program}"
        terminal.show(f"{submit} packets PATH... --to FOLDER.parquet", f"{submit} analyze RUN")
