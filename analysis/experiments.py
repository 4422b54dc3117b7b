"""Experiments of several runs: by level, each number with the interval in which it would lie if all were done again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.bootstrap import intervals
from analysis.runfolder import Run
from analysis.trials import Trial, of_run

Array = npt.NDArray[Any]
FILE = "intervals.parquet"
SAME = ("backend", "overlay", "delivery")  # of all trials of an experiment


def delays_by_level(run: Run) -> dict[int, Array]:
    """Level -> the delay of each expected delivery, nan if it was lost."""
    table = pq.read_table(run.metrics / "deliveries.parquet", columns=["priority", "delay_s"])
    delays = pc.fill_null(table["delay_s"], float("nan")).to_numpy()
    levels = table["priority"].to_numpy()
    return {level: delays[levels == level] for level in sorted(set(levels.tolist()), reverse=True)}


def experiments(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """One for each setup, in the order of their first runs; those of a single run have no intervals to tell."""
    by_setup: dict[str, list[Trial]] = {}
    for trial in trials:
        by_setup.setdefault(trial.setup, []).append(trial)
    return [_experiment(setup, of_it) for setup, of_it in by_setup.items() if len(of_it) > 1]


def _experiment(setup: str, trials: Sequence[Trial]) -> dict[str, Any]:
    about = of_run(trials[0].run)
    return {
        "setup": setup,
        **{name: about[name] for name in SAME},
        "runs": [trial.run.name for trial in trials],
        "seeds": [of_run(trial.run)["seed"] for trial in trials],
        "levels": levels_of([trial.run for trial in trials]),
    }


def levels_of(trials: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """Level -> what was expected in all trials together, and the statistics of its delay with their intervals."""
    runs = [delays_by_level(run) for run in trials]
    levels = sorted({level for run in runs for level in run}, reverse=True)
    nothing: Array = np.zeros(0)
    return {
        str(level): {
            "expected": sum(len(run.get(level, nothing)) for run in runs),
            **{
                name: found._asdict()
                for name, found in intervals([run.get(level, nothing) for run in runs]).items()
            },
        }
        for level in levels
    }


def write_intervals(folder: Path, found: Sequence[dict[str, Any]]) -> None:
    """As a table: a row for each experiment, level and statistic."""
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("setup", *SAME)),
            ("trials", pa.int32()),
            ("priority", pa.int32()),
            ("expected", pa.int64()),
            ("statistic", pa.string()),
            *((name, pa.float64()) for name in ("value", "low", "high")),
        ]
    )
    rows = [
        {
            **{name: one[name] for name in ("setup", *SAME)},
            "trials": len(one["runs"]),
            "priority": int(level),
            "expected": told["expected"],
            "statistic": name,
            **told[name],
        }
        for one in found
        for level, told in one["levels"].items()
        for name in told
        if name != "expected"
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / FILE, compression="zstd")
