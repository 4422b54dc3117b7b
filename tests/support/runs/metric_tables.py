"""The tables that an analysis has written, as plain rows."""

from pathlib import Path

import pyarrow.parquet as pq


def rows(folder: Path, name: str) -> list[dict]:
    """The rows of the table of this name."""
    return pq.read_table(folder / "metrics" / f"{name}.parquet").to_pylist()
