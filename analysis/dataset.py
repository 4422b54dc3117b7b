"""The metrics of many runs as one dataset: a folder for each table, divided by run; each row tells of which run it is.

FOLDER/deliveries/run=valley-20261116-…/part-0.parquet
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.trials import Trial, of_run

OF_TRIAL = (
    "lab",
    "backend",
    "overlay",
    "delivery",
    "seed",
    "setup",
    "trial",
)  # `run` is the folder
TYPES = {"seed": pa.int64(), "trial": pa.int32()}
FILE = "part-0.parquet"


def write_dataset(folder: Path, trials: Sequence[Trial]) -> None:
    """Add these runs, in the place of what the dataset had of them."""
    for trial in trials:
        for table in sorted(trial.run.metrics.glob("*.parquet")):
            _write_part(folder / table.stem / f"run={trial.run.name}", table, trial)


def _write_part(target: Path, table: Path, trial: Trial) -> None:
    unfinished = target.with_name(f"_{target.name}.unfinished")  # readers pass such names over
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    known = {**of_run(trial.run), "setup": trial.setup, "trial": trial.number}
    files = sorted(table.glob("*.parquet")) if table.is_dir() else [table]
    writer: pq.ParquetWriter | None = None
    try:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches():
                rows = _with(batch, known)
                writer = writer or pq.ParquetWriter(
                    unfinished / FILE, rows.schema, compression="zstd"
                )
                writer.write_table(rows)
        if writer is None:  # no row at all: the columns are told all the same
            empty = pq.ParquetFile(files[0]).schema_arrow.empty_table()
            pq.write_table(_with(empty, known), unfinished / FILE, compression="zstd")
    finally:
        if writer is not None:
            writer.close()
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)


def _with(batch: pa.RecordBatch | pa.Table, known: dict[str, Any]) -> pa.Table:
    """With the columns of its run before its own."""
    rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    for place, name in enumerate(OF_TRIAL):
        column = pa.repeat(pa.scalar(known[name], TYPES.get(name, pa.string())), rows.num_rows)
        rows = rows.add_column(place, name, column)
    return rows
