"""Draws charts in a process of its own: specification of Vega-Lite in, SVG out.

The library that draws holds Python's lock while it loads and while it draws. A process of its own does both while this
one still does other things: `load()` starts it early, and `begin()` does not wait for the chart. It ends when its
standard input does, so also if this process is killed.

"""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from analysis.errors import AnalysisError
from analysis.report import drawer


@dataclass(frozen=True)
class Rows:
    """The rows of a chart; altair would copy a list of them, and each of its values, several times."""

    values: list[dict[str, Any]]


@dataclass(frozen=True)
class Drawing:
    """A chart that is drawn meanwhile; templates and `str` wait for it. ValueError if its specification is wrong."""

    svg: "Future[str]"
    finish: Callable[[str], str]

    def __str__(self) -> str:
        return self.finish(self.svg.result())

    __html__ = __str__


def load() -> None:
    """Start the process that draws, unless it runs."""
    _drawer(os.getpid())


def begin(specification: dict[str, Any], finish: Callable[[str], str] = str) -> Drawing:
    """Draw this chart; `finish` edits its SVG."""
    question = json.dumps(specification, default=_values)
    return Drawing(_drawer(os.getpid()).submit(question), finish)


def _values(rows: object) -> list[dict[str, Any]]:
    assert isinstance(rows, Rows)
    return rows.values


@cache
def _drawer(_owner: int) -> "_Drawer":
    """The one of the process of this number; a forked process has its own."""
    return _Drawer()


class _Drawer:
    """The process that draws, and a thread that asks it, one question at a time."""

    def __init__(self) -> None:
        self._questions: SimpleQueue[tuple[str, Future[str]]] = SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = self._started()
        # The end of this process does not wait for charts.
        threading.Thread(target=self._ask, name="drawing", daemon=True).start()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def submit(self, question: str) -> "Future[str]":
        answer: Future[str] = Future()
        self._questions.put((question, answer))
        return answer

    def _ask(self) -> None:
        while True:
            question, answer = self._questions.get()
            try:
                answer.set_result(self._answer(question))
            except Exception as error:  # noqa: BLE001 - for the one who waits for the chart
                answer.set_exception(error)

    def _started(self) -> "subprocess.Popen[bytes]":
        ours = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - until the next one
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "analysis.report.drawer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C is for this process, at whose end the other one ends
        )
        atexit.register(_end, process)
        return process

    def _answer(self, question: str) -> str:
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            drawer.write(process.stdin, question)
            answer = drawer.read(process.stdout)
        except BrokenPipeError:
            answer = None
        if answer is None:
            _end(process)
            self._process = None
            self._said.seek(0)
            last = self._said.read().strip().splitlines()[-1:]
            self._said.close()
            raise AnalysisError(
                f"The process that draws charts ended with {process.returncode}: {' '.join(last)}",
                "Is vl-convert-python installed? Without charts: --no-report.",
            )
        if answer.startswith(drawer.FAILED):
            raise ValueError(answer.removeprefix(drawer.FAILED))
        return answer.removeprefix(drawer.DRAWN)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()  # closing its input is not enough if a forked process has it open, too
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()
