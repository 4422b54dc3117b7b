"""The monitor of a lab as one thing: it watches the machine while links are captured.

It is a guest. Should it fail to start, die or find no room, the lab goes on; the report then says for how long the
machine was not watched.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from testbed.keeper.workers import Worker, WorkerError
from testbed.monitor.board import VARIABLE, make_shared_memory
from testbed.places import RunPlace

PATIENCE_S = 2.0


class Monitoring:
    """Starts the monitor when it is first needed; `make` starts a process that writes to the file."""

    def __init__(self, make: Callable[[Path], Worker]) -> None:
        self._make = make
        self._worker: Worker | None = None
        self._memory: int | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Through which the keeper's processes find the memory that they share."""
        if self._memory is None:
            try:
                self._memory = make_shared_memory()
            except OSError:
                return {}
        return {VARIABLE: f"/proc/{os.getpid()}/fd/{self._memory}"}

    def begin(self, run: RunPlace) -> None:
        """Watch from now on, unless somebody does already."""
        if self._worker is not None and self._worker.running:
            return
        self._dismiss()
        with suppress(OSError):
            self._worker = self._make(run.machine)

    def stop(self) -> None:
        """The last row is written, and the process ends."""
        if self._worker is not None:
            with suppress(WorkerError, ValueError):
                self._worker.ask({"do": "stop"}, PATIENCE_S)
            self._dismiss()

    def close(self) -> None:
        """Also let go of the shared memory."""
        self.stop()
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None

    def reap(self) -> None:
        """Collect a process that has ended."""
        if self._worker is not None and not self._worker.running:
            self._dismiss()

    def _dismiss(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
