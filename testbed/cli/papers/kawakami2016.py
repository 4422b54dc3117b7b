"""Kawakami 2016: collecting periodic sensor data over a Skip Graph."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from testbed.cli.masters import HERE, chosen_master
from testbed.cli.papers.base import Asked, Result, cells_of, number, pivot, warnings_of_runs
from testbed.cli.papers.cells import CellPaper
from testbed.cli.papers.labs import PaperLab, refuse_those_that_are_up, run_side_by_side
from testbed.cli.terminal import Terminal
from testbed.errors import TestbedError
from testbed.jsonfiles import write_json
from testbed.links.probe import ProbeResult, probe_machine
from testbed.progress import Incomplete, Note

if TYPE_CHECKING:
    from analysis.papers.reproduction import Paper
    from testbed.papers.cells import Extent

BACKEND = "netns"


def extent(asked: Asked) -> "Extent":
    from testbed.papers import kawakami2016

    return (kawakami2016.quick if asked.quick else kawakami2016.full)(asked.trials)


def paper() -> "Paper":
    from analysis.papers.kawakami2016.paper import KAWAKAMI2016

    return KAWAKAMI2016


def tables(result: Result) -> Sequence[Table]:
    """For people: each figure by nodes and method, as the text is read by default."""
    from analysis.papers.kawakami2016.figures import FIGURES, is_main
    from analysis.papers.methods import title

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
    """What waiting costs and saves; a row for each time to wait, on real links and simulated."""
    from analysis.papers.kawakami2016 import waiting
    from analysis.papers.kawakami2016.freshness import LABS

    values = [value for _, of_one in waiting.FIGURES.values() for value in of_one]
    rows: dict[tuple[int, str], dict[str, str]] = {}
    for name in waiting.FIGURES:
        for cell in cells_of(result, name):
            means = {value: number(ours["mean"]) for value, ours in cell["ours"].items()}
            rows.setdefault((cell["wait_ms"], cell["lab"]), {}).update(means)
    table = Table(title="Waiting for others' readings, on 3G and MVNO links", title_justify="left")
    for column in ("wait, ms", "lab", *(value.replace("_", " ") for value in values)):
        table.add_column(column, justify="left" if column == "lab" else "right")
    for (wait_ms, lab), row in sorted(
        rows.items(), key=lambda one: (one[0][0], LABS.index(one[0][1]))
    ):
        table.add_row(str(wait_ms), lab, *(row[value] for value in values))
    return table


def anew(asked: Asked, folder: Path, terminal: Terminal) -> Result:
    """Labs on real links first, while nothing else computes here; then the cells."""
    master = chosen_master(asked.master or HERE)
    wanted = extent(asked)
    folder.mkdir(parents=True)
    try:
        run_labs(wanted, folder, terminal)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return PAPER.run(wanted, folder, master, terminal)


def run_labs(
    wanted: "Extent",
    folder: Path,
    terminal: Terminal,
    look: Callable[[], ProbeResult] = probe_machine,
) -> None:
    """Run the labs side by side; the folder records their runs, or why there are none."""
    from analysis.papers.kawakami2016.real_labs import NAMES
    from testbed.papers import kawakami2016

    labs = [
        PaperLab(lab.name, lab.text(), lab.sheet(kawakami2016.REAL_TRIAL))
        for lab in kawakami2016.real_labs(wanted)
    ]
    refuse_those_that_are_up([lab.name for lab in labs])
    runs: list[str] = []
    machine = look()
    without = None if machine.namespaces else machine.reason
    if without is None:
        terminal.if_interrupted = "interrupted; the labs were taken down"
        terminal.emit(Note(f"{len(labs)} labs side by side on real links"))
        try:
            runs = list(map(str, run_side_by_side(labs, folder, BACKEND, terminal.emit)))
        except TestbedError as error:
            without = error.message
    if without is not None:
        terminal.emit(
            Incomplete(
                f"no labs on real lines: {without}; the figures on waiting are simulated only"
            )
        )
    write_json(folder / NAMES, {"runs": runs, "without": without})


PAPER = CellPaper(
    name="kawakami2016",
    about="collecting periodic data over a Skip Graph (up to 500 nodes, computed; waiting on real 3G links)",
    extent=extent,
    paper=paper,
    tables=tables,
)
KAWAKAMI2016 = replace(PAPER.entry(), anew=anew, warnings=warnings_of_runs)
