"""Kita 2025: priorities in topic pub/sub on Skip Graphs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.cli.papers.base import Asked, Result, cells_of, pivot
from testbed.cli.papers.cells import CellPaper

if TYPE_CHECKING:
    from analysis.papers.reproduction import Paper
    from testbed.papers.cells import Extent


def extent(asked: Asked) -> "Extent":
    from testbed.papers import kita2025

    return (kita2025.quick if asked.quick else kita2025.full)(asked.trials)


def paper() -> "Paper":
    from analysis.papers.kita2025.paper import KITA2025

    return KITA2025


def tables(result: Result) -> Sequence[Table]:
    """For people: hops and messages at priority 5, and hops with tables by number of subscribers."""
    from analysis.papers.kita2025 import mixed
    from analysis.papers.kita2025.figures import FAN, SG, STRATEGY, is_main
    from analysis.papers.methods import METHODS, with_priority

    ours = [{**cell, "method": FAN} for cell in cells_of(result, "ours") if is_main(cell)]
    shown = []
    for name, value, words in (
        ("path-5", "path", "Hops at priority 5"),
        ("forwards-5", "forwards", "Messages for one publication at priority 5"),
    ):
        theirs = [
            cell
            for cell in cells_of(result, name)
            if is_main(cell) or (cell["method"] == SG and cell["strategy"] == STRATEGY)
        ]
        places = ("pattern", "nodes")
        shown.append(pivot(words, [*theirs, *ours], places, lambda c: METHODS[c["method"]], value))
    adaptive = cells_of(result, "tables-path")
    words = "Hops with tables of 60 entries"
    shown.append(pivot(words, adaptive, ("subscribers",), with_priority, "path"))
    if shared := cells_of(result, mixed.NAME):
        words = "Ours: hops where urgent and routine topics share a table"
        shown.append(pivot(words, shared, ("subscribers",), mixed.way, "path"))
    return shown


PAPER = CellPaper(
    name="kita2025",
    about="priorities in pub/sub on Skip Graphs (up to 100,000 nodes, computed)",
    extent=extent,
    paper=paper,
    tables=tables,
)
KITA2025 = PAPER.entry()
