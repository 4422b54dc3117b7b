"""Answers SQL queries on the metrics of runs: each table is a view over all runs, with the columns of its run."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import Run
from analysis.pipeline import STARTING
from analysis.report.sweep import CELLS, DATASET, POINTS
from analysis.spark.progress import Progress
from analysis.spark.session import LOCAL, open_session
from analysis.stats.trials import of_run, trials_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKING = "asking"
QUESTIONS = frozenset({"select", "with", "from", "values", "describe", "show", "explain"})


def ask_runs(
    sql: str, runs: Sequence[Run], most: int, emit: Progress, master: str = LOCAL
) -> dict[str, Any]:
    """The result: `columns`, at most so many `rows`, and whether there are `more`."""
    check_question(sql)
    if not any(run.metrics.is_dir() for run in runs):
        raise AnalysisError(
            f"Run {runs[0].name} has no metrics.", f"`testbed analyze {runs[0].name}` makes them."
        )
    return _asked(lambda spark: ask(spark, sql, runs, most), emit, master)


def ask_sweep(
    sql: str, sweep: Path, most: int, emit: Progress, master: str = LOCAL
) -> dict[str, Any]:
    """The same about a sweep: its cells, its points and the metrics of all its runs, each row with the swept values."""
    check_question(sql)
    if not (sweep / CELLS).is_file():
        raise AnalysisError(
            f"The sweep in {sweep} has no results yet: there is no {CELLS}.",
            "Repeat the same `testbed sweep` command to continue the sweep and write them.",
        )
    return _asked(lambda spark: ask_about_sweep(spark, sql, sweep, most), emit, master)


def _asked(
    answer_by: "Callable[[SparkSession], dict[str, Any]]", emit: Progress, master: str
) -> dict[str, Any]:
    emit(STARTING, 0, 1)
    with open_session(master) as spark:
        emit(STARTING, 1, 1)
        emit(ASKING, 0, 1)
        answer = answer_by(spark)
        emit(ASKING, 1, 1)
        return answer


def check_question(sql: str) -> None:
    """AnalysisError if the query does more than read."""
    tokens = sql.replace("(", " ").split()
    if not tokens or tokens[0].lower() not in QUESTIONS:
        raise AnalysisError(
            f"{sql.strip()[:60]!r} is not a query.",
            "Ask with SELECT or WITH; `SHOW VIEWS` names the tables, `DESCRIBE delay` the columns of one.",
        )


def ask(spark: "SparkSession", sql: str, runs: Sequence[Run], most: int) -> dict[str, Any]:
    """The same in an open session."""
    return _answer(spark, sql, make_views(spark, runs), [run.name for run in runs], most)


def ask_about_sweep(spark: "SparkSession", sql: str, sweep: Path, most: int) -> dict[str, Any]:
    """The same in an open session."""
    tables = make_sweep_views(spark, sweep)
    runs = pq.read_table(sweep / CELLS, columns=["run"])["run"].unique().to_pylist()
    return _answer(spark, sql, tables, runs, most)


def _answer(
    spark: "SparkSession", sql: str, tables: list[str], runs: list[str], most: int
) -> dict[str, Any]:
    """The answer to the query; the views are dropped."""
    from pyspark.errors import PySparkException

    try:
        with _without_traceback():
            frame = spark.sql(sql)
            found = frame.limit(most + 1).collect()
    except PySparkException as error:
        raise AnalysisError(
            f"Spark does not understand the question: {_sentence(error)}",
            f"There is {', '.join(tables)}; `DESCRIBE {tables[0]}` has the columns of one.",
        ) from error
    finally:
        for name in tables:
            spark.catalog.dropTempView(name)
    _refuse_equal_names(frame.columns)
    return {
        "runs": runs,
        "tables": tables,
        "columns": [
            {"name": one.name, "type": one.dataType.simpleString()} for one in frame.schema
        ],
        "rows": [row.asDict(recursive=True) for row in found[:most]],
        "more": len(found) > most,
    }


@contextmanager
def _without_traceback() -> Iterator[None]:
    """Silence Spark's log of invalid queries, with Java's stack trace; it raises the error, too."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    usual, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = usual


def _sentence(error: Exception) -> str:
    """The message without Spark's error class and SQLSTATE."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (
        re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+.*$", "", lines[0]).strip()
        if lines
        else "no reason given"
    )


def _refuse_equal_names(columns: list[str]) -> None:
    for name in columns:
        if columns.count(name) > 1:
            raise AnalysisError(
                f"Two columns of the answer are called {name!r}.", f"Name one: ... AS other_{name}"
            )


def make_views(spark: "SparkSession", runs: Sequence[Run]) -> list[str]:
    """Create a view for each table of any of the runs; returns their names."""
    from pyspark.sql import functions as sf

    names = sorted({path.stem for run in runs for path in run.metrics.glob("*.parquet")})
    known = [(trial.run, {**of_run(trial.run), "trial": trial.number}) for trial in trials_of(runs)]
    for name in names:
        frames = [
            spark.read.parquet(str(path)).select(
                *(sf.lit(value).alias(column) for column, value in columns.items()), "*"
            )
            for run, columns in known
            if (path := run.metrics / f"{name}.parquet").exists()
        ]
        view = frames[0]
        for frame in frames[1:]:
            view = view.unionByName(frame, allowMissingColumns=True)
        view.createOrReplaceTempView(name)
    return names


def make_sweep_views(spark: "SparkSession", sweep: Path) -> list[str]:
    """Create a view for `cells`, one for `points`, and one for each table of the dataset; returns their names."""
    from pyspark.sql import functions as sf

    views = {path.removesuffix(".parquet"): sweep / path for path in (CELLS, POINTS)}
    for name, path in views.items():
        spark.read.parquet(str(path)).createOrReplaceTempView(name)
    tables = sorted(path for path in (sweep / DATASET).iterdir() if path.is_dir())
    for path in tables:
        frame = spark.read.option("mergeSchema", True).parquet(str(path))
        others = [sf.col(f"`{name}`") for name in frame.columns if name != "run"]
        frame.select("run", *others).createOrReplaceTempView(path.name)
    return sorted([*views, *(path.name for path in tables)])
