"""Papers made of cells: from Spark's workers to figures, on this machine and on a cluster without our code."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.errors import AnalysisError
from analysis.spark.fanout import fan_out
from analysis.spark.session import open_session
from benchmarks.support.spark_cluster import bare_python, own_cluster
from testbed.cli.papers import kita2025 as command
from testbed.cli.papers import ogawa
from testbed.cli.papers.base import failed_checks
from testbed.cli.terminal import Terminal
from testbed.papers import kita2025
from testbed.papers.cells import Cell, Extent, measure, topics

pytestmark = pytest.mark.spark

SMALL = Extent(
    "small",
    2,
    (
        *(c for c in topics((1_000,), 2, 7, kita2025.METHODS) if c.arguments["pattern"] > "b"),
        *(
            Cell("tables", {**c.arguments, "nodes": 400}, c.weight)
            for c in kita2025.tables((10, 80), 2)
        ),
    ),
)
PATIENCE_S = 60


def test_cells_become_parquet_figures_and_a_page(
    places: Path, testbed_json: Callable[..., Any]
) -> None:
    folder = places / "c" / "small"
    result = command.PAPER.run(SMALL, folder, "local[2]", Terminal(as_json=True))
    assert json.loads((folder / "result.json").read_text()) == result
    assert (result["paper"], result["extent"], result["trials"]) == ("kita2025", "small", 2)
    assert result["cells"] == len(SMALL.cells) == 12
    assert "<svg" in (folder / "report.html").read_text()

    rows = pq.read_table(folder / "topics.parquet").to_pylist()
    assert rows == [row for cell in SMALL.heaviest_first() for row in _topic_rows(cell)]
    cells = {figure["figure"]: figure["cells"] for figure in result["figures"]}
    same = [cell["ours"]["of_sg"] for cell in cells["path-1"]]
    assert same == pytest.approx([1.0] * len(same))
    assert {cell["ours"]["path"]["trials"] for cell in cells["tables-path"]} == {2}
    verdicts = {check["check"]: check["ok"] for check in result["checks"]}
    assert verdicts["PSG-TBPS at priority 1 is SG-TBPS: path and messages differ by nothing"]

    again = testbed_json("reproduce", "kita2025", "--from", folder, codes=(0, 3))
    assert again.pop("incomplete") == [*failed_checks(result)]
    assert again.pop("warnings") == []
    assert again == {**result, "report": str(folder / "report.html")}


def _topic_rows(cell: Cell) -> list[dict[str, Any]]:
    return [row for table, row in measure(cell.as_plain()) if table == "topics"]


def test_a_levelled_map_becomes_figures_and_a_page(places: Path) -> None:
    small = {"nodes": 100, "rounds": 200, "bits": 7, "seed": 7}
    cells = [
        Cell(experiment, {**small, "trial": trial, **reading}, 1.0)
        for experiment, reading in (
            ("levelling", {"give": "both"}),
            ("levelling", {"give": "left"}),
            ("levelling_reading", {"e": 10.0, "e_of": "load"}),
        )
        for trial in range(2)
    ]
    folder = places / "c" / "map"
    extent = Extent("small", 2, tuple(cells))
    result = ogawa.PAPER.run(extent, folder, "local[2]", Terminal(as_json=True))
    assert "<svg" in (folder / "report.html").read_text()
    assert all(check["ok"] is not None for check in result["checks"])
    figures = {figure["figure"]: figure["cells"] for figure in result["figures"]}
    assert [cell["e_of"] for cell in figures["e"]] == ["mean", "load"]
    rows = [row for cell in cells for _, row in measure(cell.as_plain())]
    largest = [row["largest"] for row in rows if row.get("moves") and "when" in row]
    reported = [
        cell["ours"]["largest"]["mean"] for cell in figures["levelled"] if cell["when"] == "after"
    ]
    assert reported == [sum(pair) / 2 for pair in (largest[:2], largest[2:4])]


def test_an_interrupt_leaves_no_process_and_no_folder(places: Path, repository: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "testbed", "reproduce", "kita2025"],
        cwd=repository,
        env={**os.environ, "TMPDIR": str(places)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while "computing the cells: " not in process.stderr.readline():
            assert process.poll() is None
        assert _processes_of(places)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "interrupted; nothing is kept" in errors
    assert not list((places / "c").iterdir())
    deadline = time.monotonic() + PATIENCE_S
    while left := _processes_of(places):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def _processes_of(places: Path) -> list[str]:
    """The processes that were started with this folder for their captures, except this test."""
    mark, found = f"TESTBED_CAPTURES={places / 'c'}".encode(), []
    for entry in Path("/proc").iterdir():
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # no process, or it has just ended
    return found


@pytest.mark.usefixtures("no_spark")
def test_workers_of_a_cluster_get_our_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare_python(tmp_path)))
    cells = [cell.as_plain() for cell in SMALL.heaviest_first()]
    progress: list[tuple[int, int]] = []
    with own_cluster(tmp_path) as cluster, open_session(cluster) as spark:
        found = fan_out(spark, measure, cells, lambda done, of: progress.append((done, of)))
        with pytest.raises(AnalysisError, match="KeyError: 'no such experiment'"):
            fan_out(spark, measure, [{"experiment": "no such experiment"}], lambda *_: None)
    expected: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        for table, row in measure(cell):
            expected.setdefault(table, []).append(row)
    assert found == expected
    assert progress[0] == (0, 12)
    assert progress[-1] == (12, 12)
    assert progress == sorted(progress)
