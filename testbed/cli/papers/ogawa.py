"""Ogawa, Nakamura, Saito: a Publish/Subscribe map over Z-order keys, levelled by load."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.cli.papers.base import Asked, Result, cells_of, number
from testbed.cli.papers.cells import CellPaper

if TYPE_CHECKING:
    from analysis.papers.reproduction import Paper
    from testbed.papers.cells import Extent

SHOWN = ("largest", "fairness", "to_50", "above_250", "from_500", "moves")


def extent(asked: Asked) -> "Extent":
    from testbed.papers import ogawa

    return (ogawa.quick if asked.quick else ogawa.full)(asked.trials)


def paper() -> "Paper":
    from analysis.papers.ogawa.paper import OGAWA

    return OGAWA


def tables(result: Result) -> Sequence[Table]:
    """For people: the load before and after, and what the threshold does."""
    return (
        _means("Load of the nodes", result, "levelled", ("give", "when"), SHOWN),
        _means("By threshold", result, "e", ("e_of", "e"), ("largest", "fairness", "moves")),
    )


def _means(
    title: str, result: Result, figure: str, places: Sequence[str], values: Sequence[str]
) -> Table:
    table = Table(title=title, title_justify="left")
    for name in (*places, *values):
        table.add_column(name.replace("_", " "), justify="right")
    for cell in cells_of(result, figure):
        means = (number(cell["ours"][value]["mean"]) for value in values)
        table.add_row(*(str(cell[name]) for name in places), *means)
    return table


PAPER = CellPaper(
    name="ogawa",
    about="a Publish/Subscribe map over Z-order keys, levelled by load (1,000 nodes, computed)",
    extent=extent,
    paper=paper,
    tables=tables,
)
OGAWA = PAPER.entry()
