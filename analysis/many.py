"""Many runs in one Spark session: what is wrong with one does not keep the others from being measured."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

from analysis.errors import AnalysisError
from analysis.pipeline import SHORT_BYTES, STARTING, Progress, measure, size_of
from analysis.runfolder import Run, read_run
from analysis.session import open_session

# What a damaged run folder makes of us: its own sentence, or what the files of it really were.
DAMAGE = (AnalysisError, OSError, ValueError, KeyError, TypeError, IndexError)
BETWEEN_LOOKS_S = 0.2  # at threads that give up


class Measured(NamedTuple):
    """What became of one of the runs."""

    folder: Path
    run: Run | None
    summary: dict[str, Any] | None
    error: AnalysisError | None


def analyze_runs(
    folders: Sequence[Path],
    emit_of: Callable[[str], Progress],
    master: str = "local[*]",
    deadlines: Mapping[int, float] | None = None,
    at_a_time: int = 1,
) -> Generator[Measured, None, None]:
    """Each run in its turn, as soon as it is done; `emit_of`: a listener for the run of this name.

    Spark is started only if there is any run that can be read. `at_a_time`: small runs leave most of a machine idle.
    """
    known: dict[Path, Run | AnalysisError] = {}
    size = 0.0
    for folder in folders:
        try:
            run = read_run(folder.resolve())
            size += size_of(run)
            known[folder] = run
        except DAMAGE as error:
            known[folder] = _sentence(folder, error)
    emit = emit_of("")
    readable = any(isinstance(one, Run) for one in known.values())
    if not readable:
        yield from (_measured(folder, one) for folder, one in known.items())
        return
    emit(STARTING, 0, 1)
    with open_session(master, short=size < SHORT_BYTES) as spark:
        emit(STARTING, 1, 1)

        def measured(folder: Path) -> Measured:
            one = known[folder]
            if isinstance(one, Run):
                return _measure(spark, folder, one, emit_of(one.name), deadlines)
            return _measured(folder, one)

        if at_a_time == 1:
            yield from map(measured, known)
        else:
            yield from _side_by_side(spark, measured, [*known], at_a_time)


def _side_by_side(
    spark: Any, measured: Callable[[Path], Measured], folders: Sequence[Path], at_a_time: int
) -> Iterator[Measured]:
    """In their order, by so many threads. An interrupt waits until all have given up what they were at."""
    with ThreadPoolExecutor(at_a_time) as threads:
        begun = [threads.submit(measured, folder) for folder in folders]
        try:
            for one in begun:
                yield one.result()
        finally:
            left = {one for one in begun if not one.cancel() and not one.done()}
            while left:  # whoever was between two of Spark's jobs begins another one
                spark.sparkContext.cancelAllJobs()
                left = wait(left, BETWEEN_LOOKS_S).not_done


def _measure(
    spark: Any, folder: Path, run: Run, emit: Progress, deadlines: Mapping[int, float] | None
) -> Measured:
    from pyspark.errors import PySparkException

    try:
        return Measured(folder, run, measure(spark, run, emit, deadlines=deadlines), None)
    except (*DAMAGE, PySparkException) as error:
        return Measured(folder, run, None, _sentence(folder, error))


def _measured(folder: Path, found: Run | AnalysisError) -> Measured:
    assert isinstance(found, AnalysisError)
    return Measured(folder, None, None, found)


def _sentence(folder: Path, error: Exception) -> AnalysisError:
    if isinstance(error, AnalysisError):
        return error
    told = " ".join(str(error).split()) or type(error).__name__
    return AnalysisError(
        f"{folder.name} cannot be measured: {type(error).__name__}: {told[:300]}.",
        "Its files are damaged, or of another version; run it again.",
    )
