"""The tables that a reproduction of cells writes to its folder, and the code that it sends to a cluster."""

import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.errors import AnalysisError
from analysis.papers.tables import COLUMNS, SHEET, read_sheet, write_tables
from analysis.spark.shipping import is_local, zip_code
from support.runs.levelling_rows import histogram_rows, moment_rows, node_rows, total_rows
from support.runs.overlay_rows import (
    collection_rows,
    load_rows,
    load_total_rows,
    table_rows,
    topic_rows,
)

ROWS = {
    "topics": list(topic_rows()),
    "tables": list(table_rows()),
    "load": list(load_rows()),
    "load_totals": list(load_total_rows()),
    "collection": list(collection_rows()),
    "levelling": list(total_rows()),
    "levelling_nodes": list(node_rows()),
    "levelling_histogram": list(histogram_rows()),
    "levelling_moments": list(moment_rows()),
}


def test_every_row_comes_back_with_the_types_that_are_declared(tmp_path: Path) -> None:
    write_tables(tmp_path, {"paper": "both"}, ROWS)
    for name, rows in ROWS.items():
        table = pq.read_table(tmp_path / f"{name}.parquet")
        assert table.to_pylist() == [
            {column: row[column] for column in COLUMNS[name]} for row in rows
        ]
        kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
        assert table.schema.types == [kinds[kind] for kind in COLUMNS[name].values()]


def test_a_folder_is_of_its_own_paper_only(tmp_path: Path) -> None:
    write_tables(tmp_path, {"paper": "kita2025", "trials": 3}, {})
    assert read_sheet(tmp_path, "kita2025") == {"paper": "kita2025", "trials": 3}
    with pytest.raises(AnalysisError, match="is not the folder of a reproduction of banno2013"):
        read_sheet(tmp_path, "banno2013")
    (tmp_path / SHEET).write_text("{")
    with pytest.raises(AnalysisError):
        read_sheet(tmp_path, "kita2025")


def test_a_cluster_gets_all_our_packages_and_nothing_else(tmp_path: Path, repository: Path) -> None:
    with zipfile.ZipFile(zip_code(tmp_path / "code.zip")) as archive:
        names = set(archive.namelist())
        sent = archive.read("testbed/papers/cells.py")
    assert sent == (repository / "testbed" / "papers" / "cells.py").read_bytes()
    assert {name.split("/")[0] for name in names} == {"analysis", "nodes", "testbed"}
    assert {Path(name).suffix for name in names} == {".py"}
    assert "testbed/converged/__init__.py" in names


@pytest.mark.parametrize(
    ("master", "local"), [("local[*]", True), ("local", True), ("spark://one:7077", False)]
)
def test_only_local_masters_are_on_this_machine_for_sure(master: str, local: bool) -> None:
    assert is_local(master) is local
