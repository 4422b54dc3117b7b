"""SQL queries on the metrics of runs."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import Run, read_run
from analysis.query import ask, check_question
from analysis.stats.trials import OF_RUN

pytestmark = pytest.mark.spark
TOPOLOGY = {
    "nodes": [],
    "seed": 3,
    "overlay": {"method": "star", "parameters": []},
    "delivery": {"method": "fifo", "parameters": []},
}


def made(folder: Path, name: str, delays: list[float], **more: list[int]) -> Run:
    """An analysed run."""
    (folder / "metrics").mkdir(parents=True)
    manifest = {
        "format": 2,
        "run": name,
        "lab": "hand",
        "backend": {"name": "netns"},
        "topology": TOPOLOGY,
    }
    (folder / "run.json").write_text(json.dumps(manifest))
    table = pa.table({"delay_s": delays, **more})
    pq.write_table(table, folder / "metrics" / "deliveries.parquet")
    return read_run(folder)


def test_every_row_says_of_which_run_it_is(spark, tmp_path: Path) -> None:
    runs = [made(tmp_path / "a", "a", [0.5, 1.5]), made(tmp_path / "b", "b", [4.0])]
    sql = "SELECT run, avg(delay_s) AS mean FROM deliveries GROUP BY run ORDER BY run"
    answer = ask(spark, sql, runs, 10)
    assert answer["rows"] == [{"run": "a", "mean": 1.0}, {"run": "b", "mean": 4.0}]
    assert answer["tables"] == ["deliveries"]
    assert not answer["more"]
    (row,) = ask(spark, "SELECT * FROM deliveries WHERE run = 'b'", runs, 10)["rows"]
    assert [row[name] for name in OF_RUN] == ["b", "hand", "netns", "star", "fifo", 3]
    assert row["trial"] == 2, "both runs are of the same experiment"


def test_a_column_that_one_run_lacks_is_empty_there(spark, tmp_path: Path) -> None:
    runs = [made(tmp_path / "a", "a", [0.5]), made(tmp_path / "b", "b", [4.0], hops=[2])]
    answer = ask(spark, "SELECT run, hops FROM deliveries ORDER BY run", runs, 10)
    assert [row["hops"] for row in answer["rows"]] == [None, 2]


def test_a_query_returns_the_wanted_number_of_rows_and_says_whether_there_are_more(
    spark, tmp_path: Path
) -> None:
    run = made(tmp_path / "a", "a", [0.1, 0.2, 0.3])
    answer = ask(spark, "SELECT delay_s FROM deliveries", [run], 2)
    assert (len(answer["rows"]), answer["more"]) == (2, True)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT nonsense FROM deliveries", "`nonsense` cannot be resolved"),
        ("SELECT 1 FROM nowhere", "`nowhere` cannot be found"),
        ("SELECT ) FROM deliveries", "Syntax error"),
        ("SELECT run, run FROM deliveries", "Two columns of the answer are called 'run'"),
    ],
)
def test_a_wrong_question_is_one_sentence(
    spark, tmp_path: Path, capfd: pytest.CaptureFixture[str], sql: str, expected: str
) -> None:
    run = made(tmp_path / "a", "a", [0.1])
    with pytest.raises(AnalysisError) as raised:
        ask(spark, sql, [run], 10)
    assert expected in raised.value.message
    assert "\n" not in raised.value.message
    assert "SQLSTATE" not in raised.value.message
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("sql", ["", "DROP VIEW delay", "INSERT INTO delay VALUES (1)", "set a=b"])
def test_only_questions_are_asked(sql: str) -> None:
    with pytest.raises(AnalysisError, match="is not a query"):
        check_question(sql)


def test_the_command_answers_in_a_table_and_refuses_nonsense(testbed, repository: Path) -> None:
    sample = repository / "captures" / "sample"
    refused = testbed("query", "DELETE FROM delay", sample)
    assert refused.returncode == 2
    assert "is not a query" in refused.stderr


def test_a_sweep_without_results_and_a_sweep_beside_a_run_are_refused(
    testbed, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    early = testbed("query", "SELECT 1 FROM cells", tmp_path)
    assert early.returncode == 2
    assert "has no results yet" in early.stderr
    both = testbed("query", "SELECT 1 FROM cells", tmp_path, repository / "captures" / "sample")
    assert both.returncode == 2
    assert "a query takes only one sweep and no runs beside it" in both.stderr
