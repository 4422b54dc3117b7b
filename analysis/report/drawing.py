"""Draws charts in a process of its own: specification of Vega-Lite in, SVG out.

The library that draws holds Python's lock while it loads and while it draws. A process of its own does both while this
one still does other things: `load()` starts it early, and `begin()` does not wait for the chart. It ends when its
standard input does, so also if this process is killed. With Spark that is kept ready, the process that draws is kept
ready, too, and serves several commands by a socket.
"""

import atexit
import json
import os
import socket
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
class Drawing:
    """A chart that is drawn meanwhile; templates and `str` wait for it. ValueError if its specification is wrong."""

    svg: "Future[str]"
    finish: Callable[[str], str]

    def __str__(self) -> str:
        return self.finish(self.svg.result())

    __html__ = __str__


def load(ready: Path | None = None) -> None:
    """Start the process that draws, unless it runs. `ready`: the socket of one that is kept ready."""
    _drawer(os.getpid()).load(ready)


def begin(specification: dict[str, Any], finish: Callable[[str], str] = str) -> Drawing:
    """Draw this chart; `finish` edits its SVG."""
    question = json.dumps(specification)
    return Drawing(_drawer(os.getpid()).submit(question), finish)


@cache
def _drawer(_owner: int) -> "_Drawer":
    """The one of the process of this number; a forked process has its own."""
    return _Drawer()


class _Drawer:
    """Somebody who draws, and a thread that asks, one question at a time."""

    def __init__(self) -> None:
        self._questions: SimpleQueue[tuple[str, Future[str]]] = SimpleQueue()
        self._asked: _Process | _Connection | None = None
        # The end of this process does not wait for charts.
        threading.Thread(target=self._ask, name="drawing", daemon=True).start()

    @property
    def pid(self) -> int | None:
        return self._asked.process.pid if isinstance(self._asked, _Process) else None

    def load(self, ready: Path | None) -> None:
        if self._asked is None:
            self._asked = (_connected(ready) if ready else None) or _Process()

    def submit(self, question: str) -> "Future[str]":
        self.load(None)
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

    def _answer(self, question: str) -> str:
        asked = self._asked = self._asked or _Process()
        answer = asked.answer(question)
        if answer is None and isinstance(asked, _Connection):
            asked.close()
            asked = self._asked = _Process()
            answer = asked.answer(question)
        if answer is None:
            self._asked = None
            raise AnalysisError(
                f"The process that draws charts ended with {asked.close()}",
                "Is vl-convert-python installed? Without charts: --no-report.",
            )
        if answer.startswith(drawer.FAILED):
            raise ValueError(answer.removeprefix(drawer.FAILED))
        return answer.removeprefix(drawer.DRAWN)


class _Process:
    """A process of our own that draws."""

    def __init__(self) -> None:
        ours = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - until `close`
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", drawer.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C is for this process, at whose end the other one ends
        )
        atexit.register(self._end)

    def answer(self, question: str) -> str | None:
        """None if the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            drawer.write(self.process.stdin, question)
            return drawer.read(self.process.stdout)
        except BrokenPipeError:
            return None

    def close(self) -> str:
        """End the process; returns its exit code and what it said last."""
        self._end()
        self._said.seek(0)
        last = self._said.read().strip().splitlines()[-1:]
        self._said.close()
        return f"{self.process.returncode}: {' '.join(last)}"

    def _end(self) -> None:
        self.process.kill()  # closing its input is not enough if a forked process has it open, too
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


class _Connection:
    """A connection to a process that is kept ready."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._questions, self._answers = connection.makefile("wb"), connection.makefile("rb")

    def answer(self, question: str) -> str | None:
        """None if the connection has ended."""
        try:
            drawer.write(self._questions, question)
            return drawer.read(self._answers)
        except OSError:
            return None

    def close(self) -> None:
        for end in (self._questions, self._answers, self._connection):
            with suppress(OSError):
                end.close()


def _connected(path: Path) -> _Connection | None:
    """None if nobody answers there."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return _Connection(connection)
