"""Computes the figures of a reproduction: one Spark session measures all runs, then the cells."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.inputs.run_folder import Run, read_run
from analysis.papers.lee2016 import cells
from analysis.papers.lee2016.cells import Sheet, read_sheet
from analysis.papers.lee2016.figures import Measured, checks, figures
from analysis.papers.lee2016.page import write_page
from analysis.pipeline import check_files, measure
from analysis.spark.progress import Progress
from analysis.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STARTING, CELLS = "starting Spark", "measuring the cells"


@dataclass(frozen=True, slots=True)
class Found:
    """A measured run: its summary, its cells, and each urgent message for the charts."""

    run: Run
    summary: dict[str, Any]
    measured: Measured
    points: list[dict[str, Any]]


def reproduce(
    run_dirs: Sequence[Path], folder: Path, *, emit: Progress, master: str = "local[*]"
) -> dict[str, Any]:
    """Write result.json, report.html and the cells as Parquet into the folder; returns what result.json holds.

    The figures are those of the first run; the other runs are shown beside it.
    """
    runs = [read_run(Path(path).resolve()) for path in run_dirs]
    sheets = [read_sheet(run) for run in runs]
    for run in runs:
        check_files(run)
    emit(STARTING, 0, 1)
    with open_session(master) as spark:
        emit(STARTING, 1, 1)
        found = [
            _measure(spark, run, sheet, folder, emit)
            for run, sheet in zip(runs, sheets, strict=True)
        ]
    main, *others = (one.measured for one in found)
    result = {
        "paper": "lee2016",
        "scale": main.sheet.scale,
        "runs": [
            {
                "run": one.run.name,
                "folder": str(one.run.folder),
                "emulator": one.run.emulator,
                "scale": one.measured.sheet.scale,
                "fidelity": one.summary["fidelity"],
            }
            for one in found
        ],
        "figures": figures(main, others),
        "checks": checks(main),
    }
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    write_page(folder, result, main.sheet, [one.points for one in found])
    return result


def _measure(spark: "SparkSession", run: Run, sheet: Sheet, folder: Path, emit: Progress) -> Found:
    summary = measure(
        spark.sparkContext, run, lambda stage, done, all_: emit(_of(run, stage), done, all_)
    )
    stage = _of(run, CELLS)
    emit(stage, 0, 2)
    each = _keep(spark, folder / f"{run.name}-delays.parquet", cells.delays(spark, run, sheet))
    by_cell = {
        row["node"]: row for row in _rows(cells.delays_by_cell(each, sheet.standard_period_s))
    }
    emit(stage, 1, 2)
    carried = cells.traffic_by_cell(spark, run, sheet)
    if carried is not None:
        carried = _keep(spark, folder / f"{run.name}-traffic.parquet", carried)
    costs = {row["node"]: row for row in _rows(carried)} if carried is not None else {}
    emit(stage, 2, 2)
    return Found(run, summary, Measured(sheet, by_cell, costs), _rows(each))


def _of(run: Run, stage: str) -> str:
    return f"{stage}, {run.manifest['lab']}"


def _keep(spark: "SparkSession", path: Path, frame: "DataFrame") -> "DataFrame":
    frame.write.mode("overwrite").parquet(str(path))
    return spark.read.parquet(str(path))


def _rows(frame: "DataFrame") -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]
