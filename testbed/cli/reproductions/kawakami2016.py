"""Kawakami 2016: collecting periodic sensor data over a Skip Graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.cli.reproductions.base import Asked, Result
from testbed.cli.reproductions.cells import CellPaper
from testbed.cli.reproductions.pivot import cells_of, number, pivot

if TYPE_CHECKING:
    from analysis.papers.reproduction import Paper
    from testbed.papers.cells import Extent


def extent(asked: Asked) -> "Extent":
    from testbed.papers import kawakami2016

    return (kawakami2016.quick if asked.quick else kawakami2016.full)(asked.trials)


def paper() -> "Paper":
    from analysis.papers.kawakami2016.paper import KAWAKAMI2016

    return KAWAKAMI2016


def tables(result: Result) -> Sequence[Table]:
    """For people: each figure by nodes and method, as the text is read by default."""
    from analysis.papers.kawakami2016.figures import FIGURES, is_main
    from analysis.papers.ways import title

    of_paper = [
        pivot(
            figure.title,
            filter(is_main, cells_of(result, figure.name)),
            ("nodes",),
            title,
            figure.values[0],
        )
        for figure in FIGURES
    ]
    return [*of_paper, waiting_table(result)]


def waiting_table(result: Result) -> Table:
    """What waiting costs and saves; a row for each time to wait."""
    from analysis.papers.kawakami2016 import waiting

    values = {
        name: way for _, _, of_one in waiting.FIGURES.values() for name, way in of_one.items()
    }
    rows: dict[int, dict[str, str]] = {}
    for name in waiting.FIGURES:
        for cell in cells_of(result, name):
            told = {value: number(ours["mean"]) for value, ours in cell["ours"].items()}
            rows.setdefault(cell["wait_ms"], {}).update(told)
    table = Table(title="Waiting for others' readings, on 3G and MVNO lines", title_justify="left")
    for column in ("wait, ms", *values.values()):
        table.add_column(column, justify="right")
    for wait_ms, row in sorted(rows.items()):
        table.add_row(str(wait_ms), *(row[value] for value in values))
    return table


PAPER = CellPaper(
    name="kawakami2016",
    about="collecting periodic data over a Skip Graph (up to 500 nodes, computed)",
    extent=extent,
    paper=paper,
    tables=tables,
)
KAWAKAMI2016 = PAPER.entry()
