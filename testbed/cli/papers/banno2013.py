"""Banno 2013: topic pub/sub on a Skip Graph, and Scribe."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.cli.papers.base import Asked, Result, cells_of, pivot
from testbed.cli.papers.cells import CellPaper

if TYPE_CHECKING:
    from analysis.papers.reproduction import Paper
    from testbed.papers.cells import Extent


def extent(asked: Asked) -> "Extent":
    from testbed.papers import banno2013

    return (banno2013.quick if asked.quick else banno2013.full)(asked.trials)


def paper() -> "Paper":
    from analysis.papers.banno2013.paper import BANNO2013

    return BANNO2013


def tables(result: Result) -> Sequence[Table]:
    """For people: hops by pattern and size, and what the load has to do with what a node receives."""
    from analysis.papers.methods import title

    return (
        pivot("Hops, mean", cells_of(result, "path"), ("pattern", "nodes"), title, "path"),
        pivot(
            "Correlation of received and forwarded",
            cells_of(result, "correlation"),
            ("nodes",),
            title,
            "correlation",
        ),
    )


PAPER = CellPaper(
    name="banno2013",
    about="pub/sub on a Skip Graph, and Scribe (up to 100,000 nodes, computed)",
    extent=extent,
    paper=paper,
    tables=tables,
)
BANNO2013 = PAPER.entry()
