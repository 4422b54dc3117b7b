"""Papers whose experiments are cells on converged overlays: Spark computes them, here or on a cluster."""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from testbed.cli.masters import HERE, chosen_master
from testbed.cli.measurement import stages
from testbed.cli.papers.base import Asked, Reproduction, Result, checks_table
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError
from testbed.progress import Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from analysis.papers.reproduction import Paper
    from testbed.papers.cells import Extent

STARTING, COMPUTING = "starting Spark", "computing the cells"


@dataclass(frozen=True, slots=True)
class CellPaper:
    """A paper made of cells. Modules that are slow to load are imported when they are needed."""

    name: str
    about: str
    extent: "Callable[[Asked], Extent]"
    paper: "Callable[[], Paper]"
    tables: Callable[[Result], Sequence[Table]]

    def entry(self) -> Reproduction:
        """As the registry has it."""
        return Reproduction(
            name=self.name,
            about=self.about,
            options=("master", "trials"),
            anew=self.anew,
            again=self.again,
            tables=lambda result: (*self.tables(result), checks_table(result)),
            warnings=lambda _: (),
        )

    def anew(self, asked: Asked, folder: Path, terminal: Terminal) -> Result:
        """All cells, then their figures."""
        master = chosen_master(asked.master or HERE)
        return self.run(self.extent(asked), folder, master, terminal)

    def run(self, extent: "Extent", folder: Path, master: str, terminal: Terminal) -> Result:
        """The same for a given extent; a folder without all cells is removed."""
        from analysis.spark.shipping import is_local

        folder.mkdir(parents=True, exist_ok=True)
        terminal.if_interrupted = "interrupted; nothing is kept of cells that are not complete"
        try:
            with _session(master, terminal) as spark:
                self._compute(spark, extent, folder, master, terminal)
                if is_local(master):
                    return self._measure(spark, folder, terminal)
            return self.again(folder, terminal)  # a cluster's machines do not see the folder
        finally:
            if not _is_complete(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def again(self, folder: Path, terminal: Terminal) -> Result:
        """The figures of cells that were computed before."""
        from analysis.errors import AnalysisError
        from analysis.papers.tables import read_sheet

        try:
            read_sheet(folder, self.name)
        except AnalysisError as error:
            raise InputError(error.message, f"{error.hint} makes one") from error
        with _session(HERE, terminal) as spark:
            return self._measure(spark, folder, terminal)

    def _compute(
        self,
        spark: "SparkSession",
        extent: "Extent",
        folder: Path,
        master: str,
        terminal: Terminal,
    ) -> None:
        from analysis.papers.tables import write_tables
        from analysis.spark.fanout import fan_out
        from testbed.papers.cells import measure

        cells = [cell.as_plain() for cell in extent.heaviest_first()]
        report_stage, begun = stages(terminal.emit), time.monotonic()
        terminal.emit(Note(f"{self.name}, {extent.name}: {len(cells)} cells on {master}"))
        tables = fan_out(spark, measure, cells, lambda done, of: report_stage(COMPUTING, done, of))
        sheet = {
            "paper": self.name,
            "extent": extent.name,
            "trials": extent.trials,
            "cells": len(cells),
            "master": master,
            "seconds": round(time.monotonic() - begun, 1),
        }
        write_tables(folder, sheet, tables)

    def _measure(self, spark: "SparkSession", folder: Path, terminal: Terminal) -> Result:
        from analysis.papers.reproduction import measure_cells

        terminal.if_interrupted = (
            f"interrupted; the cells are complete: `testbed reproduce {self.name} --from {folder}`"
        )
        return measure_cells(spark, self.paper(), folder, stages(terminal.emit))


def _is_complete(folder: Path) -> bool:
    from analysis.papers.tables import SHEET

    return (folder / SHEET).exists()


@contextmanager
def _session(master: str, terminal: Terminal) -> "Iterator[Any]":
    """A Spark session; its failures become our own errors."""
    from analysis.errors import AnalysisError
    from analysis.spark.session import open_session

    report_stage = stages(terminal.emit)
    report_stage(STARTING, 0, 1)
    try:
        with open_session(master) as spark:
            report_stage(STARTING, 1, 1)
            yield spark
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error
