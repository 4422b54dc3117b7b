"""A helper process of the keeper (relay, capture, monitor) that answers questions as JSON lines on its pipes."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper.children import end, start
from testbed.links.namespaces import empty_network
from testbed.pipes import Lines, wait_for

PATIENCE_S = 60.0
_TAIL = 400  # characters of its log that an error quotes


class WorkerError(TestbedError):
    """The worker refused, or is gone."""


class Worker:
    """One such process. `apart`: in a network namespace of its own; scapy lists all interfaces that it finds when it is
    loaded, which would take 4 ms for each link of the core."""

    def __init__(
        self,
        name: str,
        module: str,
        marks: Mapping[str, str],
        log: Path,
        *arguments: str,
        apart: bool = False,
    ) -> None:
        self.name = name
        self._log = log
        argv = [sys.executable, "-m", module, *arguments]
        with empty_network() if apart else nullcontext() as ns_fd:
            self._process = start(argv, marks, log, ns_fd=ns_fd, talking=True)
        self._found_dead_at: float | None = None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._lines = Lines(self._output.fileno())
        os.set_blocking(self._input.fileno(), False)

    @property
    def running(self) -> bool:
        """Whether it still works."""
        alive = self._process.poll() is None
        if not alive and self._found_dead_at is None:
            self._found_dead_at = time.time()
        return alive

    @property
    def obituary(self) -> str:
        """A sentence on its death; nothing while it lives."""
        if self.running or self._found_dead_at is None:
            return ""
        when = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(self._found_dead_at))
        return f"the {self.name} process had died at {when}{self._last_words()}"

    def ask(self, question: dict[str, Any], patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """One question, one answer; WorkerError if it refuses, dies or takes too long."""
        deadline = time.monotonic() + patience_s
        if self._input.closed:
            raise self._gone()
        try:
            self._tell(json.dumps(question).encode() + b"\n", deadline)
        except OSError as error:
            raise self._gone() from error
        answer: dict[str, Any] = json.loads(self._line(deadline))
        if not answer.get("ok"):
            raise WorkerError(f"{self.name}: {answer.get('error', 'refused without a reason')}")
        return answer

    def _tell(self, data: bytes, deadline: float) -> None:
        """Piece by piece: a worker that does not read must not hold up its keeper."""
        fd = self._input.fileno()
        while data:
            if not wait_for(fd, select.POLLOUT, deadline):
                raise self._too_late()
            data = data[os.write(fd, data) :]

    def _line(self, deadline: float) -> bytes:
        try:
            return self._lines.next(deadline)
        except TimeoutError:
            raise self._too_late() from None
        except EOFError:
            raise self._gone() from None

    def _too_late(self) -> WorkerError:
        """It is ended: its late answer would be taken for that to the next question."""
        self.end()
        return WorkerError(f"{self.name} did not answer in time and was ended", f"see {self._log}")

    def _gone(self) -> WorkerError:
        return WorkerError(f"{self.name} has ended{self._last_words()}", f"see {self._log}")

    def _last_words(self) -> str:
        try:
            last = self._log.read_text(errors="replace").strip()[-_TAIL:]
        except OSError:
            last = ""
        return f": {last}" if last else ""

    def dismiss(self) -> None:
        """It may go: its pipes are closed, and it ends by itself."""
        for pipe in (self._input, self._output):
            with suppress(OSError):  # what it did not read is lost with it
                pipe.close()

    def let_go(self, patience_s: float = PATIENCE_S) -> None:
        """It may go, and is waited for; who takes too long is ended."""
        self.dismiss()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
            return
        self.end()

    def end(self) -> None:
        """It goes now."""
        self.dismiss()
        end([self._process])
