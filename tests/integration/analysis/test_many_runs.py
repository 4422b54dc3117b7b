"""`testbed analyze RUN RUN...`: trials of one experiment, damaged runs, and a dataset for other programs."""

import json
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from support.runs.metric_tables import rows
from support.runs.star_runs import StarRun, manifest_of
from support.runs.star_runs import publications as plain
from testbed.cli.app import app

pytestmark = pytest.mark.spark

TRIALS = ("first", "second")
OF_RUN = ["lab", "backend", "overlay", "delivery", "seed", "setup", "trial"]


@pytest.fixture(scope="module")
def analysed(spark, tmp_path_factory):
    """Two trials, one of them with losses; a run that ends while it is measured; and one that cannot be read."""
    folder = tmp_path_factory.mktemp("runs")
    lost = {(10, "broker", "town-1"): "unsent", (12, "sensor-1", "broker"): "unsent"}
    for number, name in enumerate(TRIALS):
        made = StarRun(
            publications=list(plain(20, 2)),
            delay_ns=(5 + number) * 1_000_000,
            fate=lambda *hop, number=number: lost.get(hop) if number else None,
        )
        topology = _topology(made, name, seed=7 + number)
        made.write(folder / name, topology=topology, created_ns=1_000 + number)
    made = StarRun(publications=list(plain(5, 2)))
    topology = _topology(made, "bare", seed=1)
    del topology["profiles"]
    made.write(folder / "bare", topology=topology)
    (folder / "torn").mkdir()
    (folder / "torn" / "run.json").write_text('{"format": 1')
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "analysis.batch.open_context", lambda *_, **__: nullcontext(spark.sparkContext)
        )
        names = [str(folder / name) for name in ("bare", *TRIALS, "torn")]
        done = CliRunner().invoke(
            app,
            ["analyze", *names, "--to", str(folder / "all"), "--deadline", "5=23ms", "--json"],
        )
    assert done.exit_code == 1, done.stderr
    return folder, json.loads(done.stdout), done.stderr


def _topology(made: StarRun, name: str, seed: int) -> dict[str, Any]:
    members = [
        (host, kind, made.topics if kind == "subscriber" else ()) for host, kind in made.hosts()
    ]
    topology: dict[str, Any] = {**manifest_of(members, name)["topology"], "seed": seed}
    return topology


def test_a_run_that_is_damaged_does_not_keep_the_others_from_being_measured(analysed):
    folder, document, _ = analysed
    by_run = {row["run"]: row for row in document["runs"]}
    assert [row["run"] for row in document["runs"]] == ["bare", *TRIALS, "torn"]
    assert "profiles" in by_run["bare"]["error"]["message"]
    assert "is not JSON" in by_run["torn"]["error"]["message"]
    for name in TRIALS:
        row = by_run[name]
        assert row["error"] is None
        assert row["summary"] == json.loads((folder / name / "summary.json").read_text())
        assert Path(row["report"]).is_file()
    assert not (folder / "bare" / "metrics").exists()
    assert not (folder / "bare" / "metrics.unfinished").exists()


def test_the_table_shows_all_runs_and_why_one_failed(analysed):
    from rich.console import Console

    from testbed.cli.tables.summary import batch_tables

    console = Console(width=250, record=True, file=StringIO())
    for table in batch_tables(analysed[1]):
        console.print(table)
    text = console.export_text()
    assert "4 runs" in text
    assert "torn" in text
    assert "is not JSON" in text
    assert "2 trials: star, fifo, netns" in text
    assert "12.50%" in text
    assert "0.00% to 25.00%" in text


def test_runs_that_differ_in_their_seed_only_are_trials_with_intervals(analysed):
    folder, document, _ = analysed
    by_run = {row["run"]: row for row in document["runs"]}
    assert [by_run[name]["trial"] for name in TRIALS] == [1, 2]
    assert by_run["first"]["setup"] == by_run["second"]["setup"]
    (one,) = document["experiments"]
    assert (one["runs"], one["seeds"]) == ([*TRIALS], [7, 8])
    delays = [
        row["delay_s"]
        for name in TRIALS
        for row in rows(folder / name, "deliveries")
        if row["priority"] == 5
    ]
    endless = [np.inf if delay is None else delay for delay in delays]
    level = one["levels"]["5"]
    assert level["expected"] == len(delays) == 8
    assert level["p50"]["value"] == pytest.approx(np.median(endless))
    assert (level["p99"]["value"], level["mean"]["value"]) == (None, None)
    assert level["p99"]["not_within_s"] > level["p50"]["value"]
    assert level["lost_share"]["value"] == pytest.approx(1 / 8)
    assert level["p50"]["low"] <= level["p50"]["value"] <= level["p50"]["high"]


def test_a_deadline_of_the_command_goes_before_that_of_the_run(analysed):
    folder, document, _ = analysed
    by_run = {row["run"]: row["summary"] for row in document["runs"]}
    assert by_run["first"]["by_priority"]["5"]["deadline_s"] == 0.023
    assert by_run["first"]["by_priority"]["5"]["late"] == 0, "21.5 ms each"
    assert by_run["second"]["by_priority"]["5"]["late"] == 3, "25.5 ms each, and one was lost"
    assert by_run["second"]["by_priority"]["1"]["late"] is None
    assert {row["late"] for row in rows(folder / "second", "deliveries")} == {True, None}


def test_pandas_duckdb_and_polars_read_the_same_rows_of_all_runs(analysed):
    folder, document, _ = analysed
    dataset = folder / "all"
    assert document["dataset"] == str(dataset)
    frame = pd.read_parquet(dataset / "deliveries")
    assert list(frame.columns[: len(OF_RUN)]) == OF_RUN
    assert len(frame) == sum(len(rows(folder / name, "deliveries")) for name in TRIALS)
    by_pandas = frame.groupby(["run", "trial", "priority"], observed=True)["delay_s"].mean()
    by_duckdb = duckdb.sql(
        f"SELECT run, trial, priority, avg(delay_s) AS mean FROM "
        f"read_parquet('{dataset}/deliveries/*/*.parquet', hive_partitioning = true) GROUP BY ALL"
    ).fetchall()
    by_polars = (
        polars.scan_parquet(f"{dataset}/deliveries/**/*.parquet", hive_partitioning=True)
        .group_by("run", "trial", "priority")
        .agg(polars.col("delay_s").mean())
        .collect()
        .rows()
    )
    expected = {key: pytest.approx(mean) for key, mean in by_pandas.items()}
    assert len(expected) == 4
    assert {(run, trial, level): mean for run, trial, level, mean in by_duckdb} == expected
    assert {(run, trial, level): mean for run, trial, level, mean in by_polars} == expected


def test_every_table_is_there_divided_by_run_and_the_intervals_too(analysed):
    folder, document, _ = analysed
    dataset = folder / "all"
    for table in (folder / "first" / "metrics").iterdir():
        parts = {path.name for path in (dataset / table.stem).iterdir()}
        assert parts == {f"run={name}" for name in TRIALS}
        found = pq.read_table(dataset / table.stem)
        assert found.schema.names[: len(OF_RUN)] == OF_RUN
        assert found.num_rows == sum(len(rows(folder / name, table.stem)) for name in TRIALS)
    intervals = pq.read_table(dataset / "intervals.parquet").to_pylist()
    of_level = document["experiments"][0]["levels"]
    assert len(intervals) == 5 * len(of_level)
    for row in intervals:
        found = of_level[str(row["priority"])][row["statistic"]]
        assert [row[name] for name in found] == [*found.values()]
        assert row["trials"] == 2


def test_the_notebook_goes_through_from_its_first_cell_to_its_last(
    analysed, repository, monkeypatch
):
    monkeypatch.setenv("TESTBED_DATASET", str(analysed[0] / "all"))
    notebook = json.loads((repository / "docs" / "notebooks" / "trials.ipynb").read_text())
    known: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "the notebook is stored without output"
            exec("".join(cell["source"]), known)
    assert len(known["by_trial"]) == 4
    for chart in (known["parts_chart"], known["utilization_chart"]):
        assert chart.to_dict()["mark"]
