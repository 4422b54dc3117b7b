"""Many runs in one Spark session: what is wrong with one does not keep the others from being measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.errors import AnalysisError
from analysis.pipeline import SHORT_BYTES, STARTING, Progress, measure, size_of
from analysis.runfolder import Run, read_run
from analysis.session import open_session

# What a damaged run folder makes of us: its own sentence, or what the files of it really were.
DAMAGE = (AnalysisError, OSError, ValueError, KeyError, TypeError, IndexError)


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
) -> Iterator[Measured]:
    """Each run in its turn, as soon as it is done; `emit_of`: a listener for the run of this name.

    Spark is started only if there is any run that can be read.
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
        for folder, one in known.items():
            if isinstance(one, Run):
                yield _measure(spark, folder, one, emit_of(one.name), deadlines)
            else:
                yield _measured(folder, one)


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
