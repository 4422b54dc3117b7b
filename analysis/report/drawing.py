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
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
        self._thread = ThreadPoolExecutor(1, "drawing")
        self._process = self._started()

    @property
    def pid(self) -> int:
        return self._process.pid

    def submit(self, question: str) -> "Future[str]":
        return self._thread.submit(self._answer, question)

    def _started(self) -> "subprocess.Popen[bytes]":
        ours = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            [sys.executable, "-m", "analysis.report.drawer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C is for this process, at whose end the other one ends
        )
        atexit.register(_end, process)
        return process

    def _answer(self, question: str) -> str:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            drawer.write(process.stdin, question)
            answer = drawer.read(process.stdout)
        except BrokenPipeError:
            answer = None
        if answer is None:
            _end(process)
            self._process = self._started()  # for the next question
            raise RuntimeError(f"the process that draws charts ended: {process.returncode}")
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
