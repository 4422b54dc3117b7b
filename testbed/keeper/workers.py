"""A helper process of the keeper (relay, capture) that answers questions as JSON lines on its pipes."""

import json
import os
import select
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper.children import end, start

PATIENCE_S = 60.0
_TAIL = 400  # characters of its log that an error quotes


class WorkerError(TestbedError):
    """The worker refused, or is gone."""


class Worker:
    """One such process."""

    def __init__(self, name: str, module: str, marks: Mapping[str, str], log: Path) -> None:
        self.name = name
        self._log = log
        self._process = start([sys.executable, "-m", module], marks, log, talking=True)
        self._buffer = b""

    @property
    def running(self) -> bool:
        """Whether it still works."""
        return self._process.poll() is None

    def ask(self, question: dict[str, Any], patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """One question, one answer; WorkerError if it refuses, dies or takes too long."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
        except OSError as error:
            raise self._gone() from error
        answer: dict[str, Any] = json.loads(self._line(time.monotonic() + patience_s))
        if not answer.get("ok"):
            raise WorkerError(f"{self.name}: {answer.get('error', 'refused without a reason')}")
        return answer

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            readable = _wait(fd, deadline)
            if not readable:
                raise WorkerError(f"{self.name} did not answer in time")
            heard = os.read(fd, 1 << 16)
            if not heard:
                raise self._gone()
            self._buffer += heard
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _gone(self) -> WorkerError:
        try:
            last = self._log.read_text(errors="replace").strip()[-_TAIL:]
        except OSError:
            last = ""
        return WorkerError(
            f"{self.name} has ended{': ' + last if last else ''}", f"see {self._log}"
        )

    def dismiss(self) -> None:
        """It may go: its pipes are closed, and it ends by itself."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what it did not read is lost with it
                    pipe.close()

    def end(self) -> None:
        """It goes now."""
        self.dismiss()
        end([self._process])


def _wait(fd: int, deadline: float) -> bool:
    """Until something can be read, or the deadline; `poll`, because descriptors may go beyond select's 1,024."""
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    return bool(waiting.poll(max(0.0, deadline - time.monotonic()) * 1000))
