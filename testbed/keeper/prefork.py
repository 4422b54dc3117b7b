"""Forks nodes as the keeper's children through a prefork worker, which takes a while to load their program.

While forks are expected, one worker stays ready for all of them; else each request has its own worker, which ends with
it. The keeper must not block: a fork is a generator that yields what it waits for.
"""

import json
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.keeper.children import HeldProcess
from testbed.keeper.process_title import padding_for
from testbed.keeper.workers import PATIENCE_S, Worker, WorkerError


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait until the descriptor is readable, or until the deadline (monotonic)."""

    fd: int
    deadline: float


DeferredAnswer = Generator[Wait, None, dict[str, Any]]  # an answer that takes a while


class PreforkWorker(Worker):
    """A worker that can be asked without blocking."""

    def ask_deferred(self, question: dict[str, Any]) -> DeferredAnswer:
        """Like `ask`, but yield instead of blocking."""
        deadline = time.monotonic() + PATIENCE_S
        try:
            self._write(json.dumps(question).encode() + b"\n", deadline)
        except (OSError, ValueError) as error:  # it has ended, or its pipes are closed
            raise self._gone() from error
        yield Wait(self._output.fileno(), deadline)
        answer: dict[str, Any] = json.loads(self._line(deadline))
        if not answer.get("ok"):
            raise WorkerError(f"{self.name}: {answer.get('error', 'refused without a reason')}")
        return answer


# With an argument that makes its command line long enough.
MakeWorker = Callable[[str], PreforkWorker]
Forked = tuple[dict[str, HeldProcess], dict[str, str]]


class Prefork:
    """Forks all nodes of a keeper."""

    def __init__(self, make: MakeWorker) -> None:
        self._make = make
        self._expected = False
        self._ready_worker: PreforkWorker | None = None
        self._padding_length = 0  # of the ready worker

    def expect(self, config: str) -> None:
        """Keep a worker ready for nodes whose config files have no longer paths than this one."""
        self._expected = True
        self._ready_worker_for(padding_for([config]))

    def expect_none(self) -> None:
        """End the ready worker."""
        self._expected = False
        if self._ready_worker is not None:
            self._ready_worker.end()
            self._ready_worker = None

    def worker_for(self, configs: Sequence[str]) -> PreforkWorker:
        """The ready worker, else a new one: it loads the nodes' program while their namespaces are made."""
        padding = padding_for([max(configs, key=len, default="")])
        return self._ready_worker_for(padding) if self._expected else self._make(padding)

    def fork(
        self, orders: Sequence[dict[str, Any]], worker: PreforkWorker
    ) -> Generator[Wait, None, Forked]:
        """Fork these nodes: the processes by name, and the reasons of failures."""
        forked: dict[str, HeldProcess] = {}
        try:
            answer = yield from worker.ask_deferred({"orders": list(orders)})
            for name, pid in answer["pids"].items():
                forked[name] = HeldProcess(pid, ours=True)
        except BaseException:
            worker.end()
            for process in forked.values():
                process.close()
            raise
        try:
            yield from worker.ask_deferred({"go": True})
        except WorkerError:  # the pids are known, so the keeper will notice nodes that have ended
            worker.end()
        finally:
            if worker is not self._ready_worker:
                worker.close_and_wait()
        return forked, answer["failed"]

    def reap(self) -> None:
        """Reap the ready worker if it has ended."""
        if self._ready_worker is not None:
            self._ready_worker.running  # noqa: B018 - reading it reaps

    def _ready_worker_for(self, padding: str) -> PreforkWorker:
        """A ready worker that runs and has enough padding; start one if needed."""
        if (
            self._ready_worker is None
            or not self._ready_worker.running
            or self._padding_length < len(padding)
        ):
            if self._ready_worker is not None:
                self._ready_worker.end()
            self._ready_worker, self._padding_length = self._make(padding), len(padding)
        return self._ready_worker
