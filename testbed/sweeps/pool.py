"""Compute cells in several processes at a time; an interrupt ends them all and leaves nothing behind."""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

PATIENCE_S = 60.0  # until a lab is down
Outcome = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """A cell and the request to its process."""

    number: int
    request: dict[str, Any]


def run_tasks(
    tasks: Iterable[Task],
    jobs: int,
    runs: Path,
    log: Path,
    done: Callable[[int, Outcome], None],
    lock: int | None = None,
) -> None:
    """Call `done` with each task's outcome at once; a process that dies has failed its task and is replaced.

    `lock`: a descriptor that the processes inherit, so that what it locks stays so until the last of them has ended.
    """
    waiting = iter(tasks)
    with selectors.DefaultSelector() as ready, log.open("a") as errors:
        workers = _WorkerProcesses(runs, errors, ready, lock)
        try:
            for _ in range(jobs):
                workers.assign(waiting, None)
            while workers.busy:
                for key, _events in ready.select():
                    process, task = key.data
                    line = process.stdout.readline()
                    if line:
                        done(task.number, json.loads(line))
                        workers.assign(waiting, process)
                    else:
                        done(task.number, workers.lost(process, log))
                        workers.assign(waiting, None)
        finally:
            workers.end()


class _WorkerProcesses:
    """The processes that were started, and what each is busy with."""

    def __init__(
        self, runs: Path, errors: IO[str], ready: selectors.BaseSelector, lock: int | None
    ) -> None:
        self._environment = {**os.environ, "TESTBED_CAPTURES": str(runs)}
        self._errors, self._ready = errors, ready
        self._inherited_fds = () if lock is None else (lock,)
        self._processes: list[subprocess.Popen[str]] = []

    @property
    def busy(self) -> bool:
        return bool(self._ready.get_map())

    def assign(self, waiting: Iterator[Task], process: "subprocess.Popen[str] | None") -> None:
        """Assign the next task to this process, or to a new one; if there is none, the process is no longer needed."""
        if process is not None:
            self._ready.unregister(_pipe(process.stdout))
        task = next(waiting, None)
        if task is None:
            return
        process = process or self._start()
        self._ready.register(_pipe(process.stdout), selectors.EVENT_READ, (process, task))
        with suppress(BrokenPipeError):  # it has died; that is read from its other pipe
            pipe = _pipe(process.stdin)
            pipe.write(json.dumps(task.request) + "\n")
            pipe.flush()

    def lost(self, process: "subprocess.Popen[str]", log: Path) -> Outcome:
        """The outcome of a task whose process has ended."""
        self._ready.unregister(_pipe(process.stdout))
        code = process.wait()
        error = f"the process that computed it ended with exit code {code}"
        return {"run": None, "error": error, "hint": f"its standard error may be in {log}"}

    def end(self) -> None:
        """End all processes, busy or not; a lab that one of them has up is taken down before."""
        for process in self._processes:
            # A process that misses the signal still ends after its cell, because its input has ended.
            with suppress(BrokenPipeError):
                _pipe(process.stdin).close()
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _pipe(process.stdout).close()

    def _start(self) -> "subprocess.Popen[str]":
        """Start a process in a session of its own: Ctrl-C is for the command, which ends it in order."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "testbed.sweeps.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=self._environment,
            start_new_session=True,
            pass_fds=self._inherited_fds,
        )
        self._processes.append(process)
        return process


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
