"""Reads the results of `analyze` in a run folder without Spark: summary.json and the metrics as Parquet."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import Run


def read_summary(run: Run) -> dict[str, Any]:
    """Read the summary."""
    try:
        summary: dict[str, Any] = json.loads(run.summary.read_text())
    except FileNotFoundError:
        raise AnalysisError(
            f"Run {run.name} has no summary.json yet.", f"First: testbed analyze {run.name}"
        ) from None
    return summary


def table(
    run: Run, name: str, columns: list[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """Read one metric; `where`: a filter of its rows."""
    return pq.read_table(run.metrics / f"{name}.parquet", columns=columns, filters=where)
