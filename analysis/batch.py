"""Measures many runs with Spark started once; an error in one run does not affect the others."""

import shutil
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import Run, read_run
from analysis.pipeline import STARTING, check_files, measure
from analysis.spark.local_java import LocalJava
from analysis.spark.progress import Progress, cancel_jobs
from analysis.spark.session import LOCAL, open_context
from analysis.stats.trials import Trial, of_run

# The errors that a damaged run folder can cause.
DAMAGE = (AnalysisError, OSError, ValueError, KeyError, TypeError, IndexError)
POLL_S = 0.2  # seconds between two attempts to cancel jobs


class Measured(NamedTuple):
    """The outcome of one run."""

    folder: Path
    run: Run | None
    summary: dict[str, Any] | None
    error: AnalysisError | None


def analyze_runs(
    folders: Sequence[Path],
    emit_of: Callable[[str], Progress],
    master: str = LOCAL,
    deadlines: Mapping[int, float] | None = None,
    at_a_time: int = 1,
    java: LocalJava | None = None,
) -> Generator[Measured, None, None]:
    """Measure the runs and yield each result in order; `emit_of`: the progress callback for the run of this name.

    Spark starts only if at least one run can be read. `at_a_time`: runs in parallel, as small runs leave cores idle.
    """
    known: dict[Path, Run | AnalysisError] = {}
    for folder in folders:
        try:
            run = read_run(folder.resolve())
            check_files(run)
            known[folder] = run
        except DAMAGE as error:
            known[folder] = _sentence(folder, error)
    emit = emit_of("")
    readable = any(isinstance(one, Run) for one in known.values())
    if not readable:
        yield from (_measured(folder, one) for folder, one in known.items())
        return
    emit(STARTING, 0, 1)
    with open_context(master, java=java) as context:
        emit(STARTING, 1, 1)

        def measured(folder: Path) -> Measured:
            one = known[folder]
            if isinstance(one, Run):
                return _measure(context, folder, one, emit_of(one.name), deadlines)
            return _measured(folder, one)

        if at_a_time == 1:
            yield from map(measured, known)
        else:
            yield from _measure_in_parallel(context, measured, [*known], at_a_time)


def _measure_in_parallel(
    context: Any, measured: Callable[[Path], Measured], folders: Sequence[Path], at_a_time: int
) -> Iterator[Measured]:
    """Measure with several threads, in order. An interrupt waits until all threads have stopped."""
    with ThreadPoolExecutor(at_a_time) as threads:
        begun = [threads.submit(measured, folder) for folder in folders]
        try:
            for one in begun:
                yield one.result()
        finally:
            left = {one for one in begun if not one.cancel() and not one.done()}
            while left:  # a thread between two jobs starts another one
                cancel_jobs(context)
                left = wait(left, POLL_S).not_done


def _measure(
    context: Any, folder: Path, run: Run, emit: Progress, deadlines: Mapping[int, float] | None
) -> Measured:
    try:
        return Measured(folder, run, measure(context, run, emit, deadlines=deadlines), None)
    except DAMAGE as error:
        return Measured(folder, run, None, _sentence(folder, error))


def _measured(folder: Path, found: Run | AnalysisError) -> Measured:
    assert isinstance(found, AnalysisError)
    return Measured(folder, None, None, found)


def _sentence(folder: Path, error: Exception) -> AnalysisError:
    if isinstance(error, AnalysisError):
        return error
    text = " ".join(str(error).split()) or type(error).__name__
    return AnalysisError(
        f"{folder.name} cannot be measured: {type(error).__name__}: {text[:300]}.",
        "Its files are damaged, or of another version; run it again.",
    )


# The metrics of many runs as one dataset: a folder for each table, partitioned by run; each row names its run.
#
# FOLDER/deliveries/run=valley-20261116-…/part-0.parquet


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


Columns = Mapping[str, "pa.Scalar[Any]"]  # name -> the value in all rows of a run
TAKEN = "_set"  # added to the name of a column of a run that a table has already


def write_dataset(
    folder: Path, trials: Sequence[Trial], more: Mapping[str, Columns] | None = None
) -> None:
    """Add these runs, replacing earlier versions of them; `more`: further columns of each run, by its name."""
    for trial in trials:
        known = _columns_of(trial, (more or {}).get(trial.run.name, {}))
        for table in sorted(trial.run.metrics.glob("*.parquet")):
            _write_part(folder / table.stem / f"run={trial.run.name}", table, known)


def _columns_of(trial: Trial, more: Columns) -> dict[str, "pa.Scalar[Any]"]:
    values = {**of_run(trial.run), "setup": trial.setup, "trial": trial.number}
    own = {name: pa.scalar(values[name], TYPES.get(name, pa.string())) for name in OF_TRIAL}
    return own | {_free(name, ("run", *own)): value for name, value in more.items()}


def _free(name: str, taken: Collection[str]) -> str:
    return f"{name}{TAKEN}" if name in taken else name


def _write_part(target: Path, table: Path, known: Columns) -> None:
    unfinished = target.with_name(
        f"_{target.name}.unfinished"
    )  # readers ignore names that begin with _
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
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
        if writer is None:  # no rows: write the schema only
            empty = pq.ParquetFile(files[0]).schema_arrow.empty_table()
            pq.write_table(_with(empty, known), unfinished / FILE, compression="zstd")
    finally:
        if writer is not None:
            writer.close()
    shutil.rmtree(target, ignore_errors=True)
    unfinished.rename(target)


def _with(batch: pa.RecordBatch | pa.Table, known: Columns) -> pa.Table:
    """Prepend the columns of the run. Drop Spark's own schema in the metadata: Spark would not see the new columns."""
    rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    own = rows.column_names
    for place, (name, value) in enumerate(known.items()):
        rows = rows.add_column(place, _free(name, own), pa.repeat(value, rows.num_rows))
    return rows.replace_schema_metadata(None)
