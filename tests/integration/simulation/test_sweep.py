"""`testbed sweep` on simulated links, and expectations of runs, as users call them."""

import json
import shutil
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.batch import analyze_runs
from analysis.inputs.run_folder import read_run
from analysis.query import ask_about_sweep
from analysis.stats.trials import trials_of
from testbed.cli.app import app
from testbed.cli.commands.sweep import points_table, short

pytestmark = pytest.mark.spark

RATE = "links.profiles.narrow.down.rate"
VALLEY = """\
name: valley
links:
  profiles:
    narrow: {up: {rate: 64kB/s}, down: {rate: 16kB/s}}
groups:
  sensors: {kind: sensor, count: 2, link: narrow}
nodes:
  broker: {kind: broker}
  siren: {kind: subscriber, link: narrow, topics: [alerts]}
scenario:
  duration: 2s
  events:
    - {at: 0s, publish: {from: "sensors[*]", topic: alerts, size: 2kB, period: 500ms, spread: 500ms}}
    - {at: 1s, publish: {from: "sensors[0]", topic: alerts, priority: 5, size: 500B, count: 2, period: 500ms}}
  expect:
    - level 5 lost == 0
    - level 5 delay max < 300ms
"""


@pytest.fixture(scope="module")
def swept(spark, tmp_path_factory):
    """Two rates, two methods, two trials; and the same command once more."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "valley.yaml").write_text(VALLEY)
    command = [
        "sweep",
        str(folder / "valley.yaml"),
        *("--set", f"{RATE}=4,16kB/s".replace("4,", "4kB/s,")),
        *("--set", "delivery.method=fifo,preemptive"),
        *("--trials", "2", "--to", str(folder / "all"), "--json"),
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "analysis.batch.open_context", lambda *_, **__: nullcontext(spark.sparkContext)
        )
        done = CliRunner().invoke(app, command)
        again = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert again.exit_code == 0, again.stderr
    return folder / "all", json.loads(done.stdout), json.loads(again.stdout), again.stderr


def test_each_combination_is_a_point_with_its_trials(swept):
    _, document, _, _ = swept
    settings = [tuple(point["settings"].values()) for point in document["points"]]
    assert settings == [
        ("4kB/s", "fifo"),
        ("4kB/s", "preemptive"),
        ("16kB/s", "fifo"),
        ("16kB/s", "preemptive"),
    ]
    for point in document["points"]:
        assert point["seeds"] == [1, 2]
        assert set(point["levels"]) == {"5", "1"}
        p95 = point["levels"]["5"]["p95"]
        assert p95["low"] <= p95["value"] <= p95["high"]
    assert document["failed"] == []


def test_a_narrower_link_takes_longer_and_urgent_bytes_go_first(swept):
    _, document, _, _ = swept
    median = {
        tuple(point["settings"].values()): point["levels"]["5"]["p50"]["value"]
        for point in document["points"]
    }
    assert median["4kB/s", "fifo"] > median["16kB/s", "fifo"]
    assert median["4kB/s", "fifo"] > median["4kB/s", "preemptive"]


def test_expectations_are_counted_by_trials(swept):
    _, document, _, _ = swept
    met = {tuple(point["settings"].values()): point["met"] for point in document["points"]}
    assert met["4kB/s", "fifo"] == 0
    assert met["16kB/s", "preemptive"] == 2
    unmet = next(point["unmet"] for point in document["points"] if point["met"] == 0)
    assert unmet["level 5 delay max < 300ms"] == 2


def test_a_repeated_sweep_runs_no_cell_twice(swept):
    _, document, again, stderr = swept
    assert "8 were finished before" in stderr
    assert again["points"] == document["points"]


def test_tables_and_the_page_contain_all_points(swept):
    folder, document, _, _ = swept
    points = pq.read_table(folder / "points.parquet")
    assert points.num_rows == 4 * 2 * 5  # combinations, levels, statistics
    assert {*points.column_names} >= {RATE, "delivery.method", "statistic", "value", "low", "high"}
    cells = pq.read_table(folder / "cells.parquet").to_pylist()
    assert len(cells) == 8 * 2
    runs = {run for point in document["points"] for run in point["runs"]}
    assert {row["run"] for row in cells} == runs
    deliveries = pq.read_table(folder / "dataset" / "deliveries")
    assert {*deliveries["run"].to_pylist()} == runs
    page = Path(document["report"]).read_text()
    assert page.count("<svg") == 2  # nothing was lost, so there is no chart of losses
    assert "4kB/s" in page
    assert "<script" not in page


def test_swept_values_are_text_and_numbers_in_all_tables(swept):
    folder, document, _, _ = swept
    number = f"{RATE}_bps"
    bps = {"4kB/s": 32_000.0, "16kB/s": 128_000.0}
    for path in (folder / "cells.parquet", folder / "points.parquet"):
        table = pq.read_table(path)
        assert table.schema.field(number).type == "double"
        assert all(row[number] == bps[row[RATE]] for row in table.to_pylist())
        assert not any(name.startswith("delivery.method_") for name in table.column_names)
    settings = {run: point["settings"] for point in document["points"] for run in point["runs"]}
    deliveries = pq.read_table(folder / "dataset" / "deliveries").to_pylist()
    for row in deliveries:
        known = settings[row["run"]]
        assert {path: row[path] for path in known} == known
        assert row[number] == bps[row[RATE]]


def test_a_run_has_one_trial_number_in_all_tables(swept):
    folder, _, _, _ = swept
    cells = {
        row["run"]: row["trial"] for row in pq.read_table(folder / "cells.parquet").to_pylist()
    }
    deliveries = pq.read_table(folder / "dataset" / "deliveries").to_pylist()
    assert {row["run"]: row["trial"] for row in deliveries} == cells
    runs = [read_run(folder / "runs" / name) for name in cells]
    assert {trial.run.name: trial.number for trial in trials_of(runs)} == cells


def test_the_tables_of_a_sweep_answer_queries(spark, swept):
    folder, document, _, _ = swept
    number = f"`{RATE}_bps`"
    cells = f"SELECT run, trial, {number} AS bps FROM cells WHERE priority = 5 AND {number} < 50000"
    rows = ask_about_sweep(spark, cells, folder, 100)["rows"]
    assert sorted(row["trial"] for row in rows) == [1, 1, 2, 2]
    assert {row["bps"] for row in rows} == {32_000.0}
    levels = f"""
        SELECT {number} AS bps, `delivery.method` AS method, percentile(delay_s, 0.5) AS p50
        FROM deliveries WHERE priority = 5 GROUP BY ALL ORDER BY bps, method
    """
    answer = ask_about_sweep(spark, levels, folder, 100)
    assert [(row["bps"], row["method"]) for row in answer["rows"]] == [
        (32_000.0, "fifo"),
        (32_000.0, "preemptive"),
        (128_000.0, "fifo"),
        (128_000.0, "preemptive"),
    ]
    assert {*answer["runs"]} == {run for point in document["points"] for run in point["runs"]}
    points = f"SELECT DISTINCT {number} AS bps FROM points ORDER BY bps"
    assert [row["bps"] for row in ask_about_sweep(spark, points, folder, 9)["rows"]] == [
        32_000.0,
        128_000.0,
    ]


def test_the_terminal_shows_a_row_for_each_combination(swept):
    console = Console(width=120, record=True, file=StringIO())
    console.print(points_table(swept[1]))
    text = console.export_text()
    assert "down.rate" not in text
    assert "rate" in text
    assert text.count("preemptive") == 2
    assert "0 of 2" in text


def test_a_cell_that_fails_does_not_keep_the_others_from_their_runs(
    spark, tmp_path, places, monkeypatch
):
    monkeypatch.setattr(
        "analysis.batch.open_context", lambda *_, **__: nullcontext(spark.sparkContext)
    )
    (tmp_path / "valley.yaml").write_text(VALLEY)
    monkeypatch.setattr(
        "testbed.cli.commands.sweep.Sweeping._task_request",
        lambda self, cell, texts: {
            "name": self._sweep.name_of(cell),
            "overrides": [*cell.overrides, *(["nonsense=1"] if cell.number == 1 else [])],
            "file": str(self._file),
            "scenario": None,
            "texts": texts,
            "backend": "simulated",
        },
    )
    done = CliRunner().invoke(
        app,
        [
            "sweep",
            str(tmp_path / "valley.yaml"),
            "--trials",
            "2",
            "--to",
            str(tmp_path / "s"),
            "--json",
        ],
    )
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    (failed,) = document["failed"]
    assert "unknown key 'nonsense'" in failed["error"]
    assert [point["seeds"] for point in document["points"]] == [[2]]
    for table in ("cells.parquet", "dataset/deliveries"):
        assert {*pq.read_table(tmp_path / "s" / table)["trial"].to_pylist()} == {2}, table


def test_runs_that_are_measured_side_by_side_or_interrupted_are_measured_as_one_by_one(
    spark, swept, tmp_path, monkeypatch
):
    """Measure two runs at a time and stop after the first: each of the others has no metrics, never a part of them."""
    monkeypatch.setattr(
        "analysis.batch.open_context", lambda *_, **__: nullcontext(spark.sparkContext)
    )
    folder, document, _, _ = swept
    names = [point["runs"][0] for point in document["points"]]
    for name in names:
        results = shutil.ignore_patterns("metrics", "summary.json", "report.html")
        shutil.copytree(folder / "runs" / name, tmp_path / name, ignore=results)
    folders = [tmp_path / name for name in names]
    measuring = analyze_runs(folders, lambda _: lambda *_: None, at_a_time=2)
    first = next(measuring)
    measuring.close()
    assert first.folder == folders[0]
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert [*tmp_path.glob("*/metrics.unfinished")] == []
    left = [one for one in folders if not (one / "summary.json").exists()]
    assert 2 <= len(left) < len(folders)
    for one in analyze_runs(left, lambda _: lambda *_: None):
        assert one.error is None
    for one in folders:
        known = json.loads((folder / "runs" / one.name / "summary.json").read_text())
        assert json.loads((one / "summary.json").read_text()) == known


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        (["a.b.rate", "delivery.method"], ["rate", "method"]),
        (["x.up.rate", "x.down.rate"], ["up.rate", "down.rate"]),
        ([], []),
    ],
)
def test_paths_are_shortened_to_their_distinct_ends(paths, shown):
    assert short(paths) == shown


def test_a_run_that_misses_an_expectation_fails_after_all_files_are_written(
    spark, tmp_path, places, monkeypatch
):
    monkeypatch.setattr(
        "analysis.pipeline.open_context", lambda *_, **__: nullcontext(spark.sparkContext)
    )
    file = tmp_path / "valley.yaml"
    file.write_text(VALLEY)
    slow = ["simulate", str(file), "--set", f"{RATE}=4kB/s", "--json"]
    done = CliRunner().invoke(app, slow)
    assert done.exit_code == 1, done.stderr
    document = json.loads(done.stdout)
    assert [one["ok"] for one in document["expectations"]] == [True, False]
    folder = places / "c" / document["run"]
    assert (
        json.loads((folder / "summary.json").read_text())["expectations"]
        == document["expectations"]
    )
    manifest = json.loads((folder / "run.json").read_text())
    assert manifest["topology"]["overrides"] == [[RATE, "4kB/s"]]
    page = (folder / "report.html").read_text()
    assert "Expectations: 1 of 2 met" in page
    assert "FAILED" in page
    report = CliRunner().invoke(app, ["report", document["run"]])
    assert report.exit_code == 1
    assert "level 5 delay max < 300ms" in report.stdout
    assert "FAIL" in report.stdout
    later = [
        "analyze",
        document["run"],
        "--expect",
        "level 4 lost == 0",
        "--expect",
        "fidelity warnings == 0",
    ]
    judged = CliRunner().invoke(app, [*later, "--json"])
    verdicts = json.loads(judged.stdout)["expectations"]
    assert [one["ok"] for one in verdicts] == [True, False, False, True]
    assert verdicts[2]["reason"] == "no such delivery was expected"
    fine = CliRunner().invoke(app, ["simulate", str(file), "--set", "delivery.method=preemptive"])
    assert fine.exit_code == 0, fine.stdout
    assert "pass" in fine.stdout


def test_a_mistake_in_an_expectation_is_shown_with_a_caret(places):
    done = CliRunner().invoke(app, ["analyze", "--expect", "delay p < 2s", "--json"])
    assert done.exit_code == 2
    message = json.loads(done.stdout)["error"]["message"]
    assert message.splitlines()[1:] == ["  delay p < 2s", "        ^"]
