"""Reports the progress of a Spark job, stage by stage."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

Progress = Callable[[str, int, int], None]  # name of a stage, steps done, steps in total
POLL_S = 0.2
STEPS = 100  # of a progress bar
CANCELLING_S = 20.0


def tag_jobs(context: "SparkContext") -> None:
    """Mark the jobs of this thread as those of this process: other processes may use the same Spark."""
    context.addJobTag(_tag())


def cancel_jobs(context: "SparkContext", pid: int | None = None) -> None:
    """Cancel the jobs of this process, or of another one that uses the same Spark.

    A separate thread uses a separate connection to Java: on the connection of an interrupted call the response to
    that call may still be pending, and would be taken for the response to this one.
    """
    cancelling = threading.Thread(target=_cancel, args=(context, _tag(pid)), daemon=True)
    cancelling.start()
    cancelling.join(CANCELLING_S)


def _cancel(context: "SparkContext", tag: str) -> None:
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):  # Java may have ended
        context.cancelJobsWithTag(tag)


def _tag(pid: int | None = None) -> str:
    return f"testbed-{pid or os.getpid()}"


@contextmanager
def watched(context: "SparkContext", stages: Sequence[str], emit: Progress) -> Iterator[None]:
    """Report how many tasks of the block's job are done. `stages`: names of its stages; equal ones are one bar."""
    over = threading.Event()
    group = f"testbed {id(over)}"
    context.setJobGroup(group, stages[0], interruptOnCancel=True)
    tag_jobs(context)
    watcher = threading.Thread(
        target=_watch, args=(context, group, stages, emit, over), daemon=True
    )
    try:
        emit(stages[0], 0, STEPS)
        watcher.start()
        yield
    finally:
        over.set()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    watcher.join()  # so that it reports nothing more
    for stage in dict.fromkeys(stages):
        emit(stage, STEPS, STEPS)


def _watch(
    context: "SparkContext",
    group: str,
    stages: Sequence[str],
    emit: Progress,
    over: threading.Event,
) -> None:
    """Until it is over, or Java has been ended."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, OSError):
        _report(context, group, stages, emit, over)


def _report(
    context: "SparkContext",
    group: str,
    stages: Sequence[str],
    emit: Progress,
    over: threading.Event,
) -> None:
    tracker = context.statusTracker()
    furthest = {**dict.fromkeys(stages, -1), stages[0]: 0}
    while not over.wait(POLL_S):
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group))
        numbers = sorted({number for job in jobs if job for number in job.stageIds})
        tasks, done = dict.fromkeys(stages, 0), dict.fromkeys(stages, 0)
        for stage, number in zip(stages, numbers, strict=False):
            if info := tracker.getStageInfo(number):
                tasks[stage] += info.numTasks
                done[stage] += info.numCompletedTasks
        for stage in tasks:
            now = min(STEPS - 1, STEPS * done[stage] // tasks[stage]) if tasks[stage] else -1
            if now > furthest[stage]:
                furthest[stage] = now
                emit(stage, now, STEPS)
