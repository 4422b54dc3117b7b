"""`testbed reproduce PAPER`: a whole paper, run here, beside its own numbers."""

from pathlib import Path
from typing import Annotated

import typer

from testbed.cli.options import AsJson, Strict
from testbed.cli.papers import PAPERS, Asked, Reproduction, refuse_strange_options
from testbed.cli.papers.base import failed_checks
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.progress import Incomplete, Warned
from testbed.records import did_you_mean, new_run

PaperName = Annotated[
    str,
    typer.Argument(
        metavar="PAPER",
        help="; ".join(f"{name}: {paper.about}" for name, paper in PAPERS.items()) + ".",
        autocompletion=lambda: list(PAPERS),
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Run only a part, in about two minutes.")]
Backend = Annotated[
    str | None,
    typer.Option(
        "--backend", help="For papers whose experiments run in labs: netns (the default) or docker."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="For papers whose experiments are computed: a Spark cluster, spark://HOST:PORT. "
        "Default: all cores of this machine.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        "--trials",
        min=1,
        help="For papers whose experiments are computed: number of trials of each cell.",
    ),
]
Again = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FOLDER",
        help="Analyze the recordings of an earlier reproduction again, without running the experiments.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed reproduce lee2016 --quick")(reproduce)


def reproduce(
    paper: PaperName,
    quick: Quick = False,
    backend: Backend = None,
    master: Master = None,
    trials: Trials = None,
    again: Again = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Repeat a paper's experiments and compare the results with the paper's numbers."""
    with Terminal(as_json, strict) as terminal:
        known, asked = find_paper(paper), Asked(quick, backend, master, trials)
        refuse_strange_options(known, asked, again is not None)
        if again is None:
            folder = new_run(f"reproduced-{paper}").folder
            result = known.anew(asked, folder, terminal)
        else:
            folder = again.resolve()
            result = known.again(folder, terminal)
        terminal.document({**result, "report": str(folder / "report.html")})
        terminal.show(*known.tables(result), f"report: {folder / 'report.html'}")
        for warning in known.warnings(result):
            terminal.emit(Warned(warning))
        for failed in failed_checks(result):
            terminal.emit(Incomplete(failed))


def find_paper(name: str) -> Reproduction:
    """InputError if there is none of this name."""
    if name not in PAPERS:
        raise InputError(f"there is no paper {name!r}", did_you_mean(name, list(PAPERS)))
    return PAPERS[name]
