"""How long processes waited for a processor. Tests subtract it: a busy machine says nothing about the product."""

from collections.abc import Iterable
from pathlib import Path


class ProcessorWait:
    """The time in which the main threads of these processes were ready to run and others ran, from now on."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)
        self._before = self._waited_ns()

    def seconds(self) -> float:
        """The sum over the processes that are alive."""
        return sum(ns - self._before.get(pid, 0) for pid, ns in self._waited_ns().items()) / 1e9

    def _waited_ns(self) -> dict[int, int]:
        """By process: the second number of its schedstat (Documentation/scheduler/sched-stats.rst of Linux)."""
        waited = {}
        for pid in self._pids:
            try:
                waited[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
            except OSError:  # it has ended
                continue
        return waited
