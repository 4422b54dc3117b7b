"""Nodes of our own as the keeper's children: forked by a nursery, which takes a while to load their program.

While births are expected one nursery is kept ready for all of them; else each birth has its own, which ends with it.
Nobody waits here, for the keeper has other things to do: a birth is a generator of what is to be waited for.
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
    """Until the descriptor can be read, or the deadline (monotonic) has come."""

    fd: int
    deadline: float


DeferredAnswer = Generator[Wait, None, dict[str, Any]]  # an answer that has to be waited for


class PreforkWorker(Worker):
    """A worker that can be asked by somebody who has no time to wait."""

    def ask_deferred(self, question: dict[str, Any]) -> DeferredAnswer:
        """Like `ask`."""
        deadline = time.monotonic() + PATIENCE_S
        try:
            self._write(json.dumps(question).encode() + b"\n", deadline)
        except (OSError, ValueError) as error:  # it is gone, or has been let go
            raise self._gone() from error
        yield Wait(self._output.fileno(), deadline)
        answer: dict[str, Any] = json.loads(self._line(deadline))
        if not answer.get("ok"):
            raise WorkerError(f"{self.name}: {answer.get('error', 'refused without a reason')}")
        return answer


MakeWorker = Callable[[str], PreforkWorker]  # with an argument that makes room for others
Forked = tuple[dict[str, HeldProcess], dict[str, str]]


class Prefork:
    """Of all nodes of ours."""

    def __init__(self, make: MakeWorker) -> None:
        self._make = make
        self._expected = False
        self._ready_worker: PreforkWorker | None = None
        self._padding_length = 0  # that the kept one has

    def expect(self, config: str) -> None:
        """There will be some, whose files have paths no longer than this one: a nursery gets ready."""
        self._expected = True
        self._ready_worker_for(padding_for([config]))

    def expect_none(self) -> None:
        """There will be no more."""
        self._expected = False
        if self._ready_worker is not None:
            self._ready_worker.end()
            self._ready_worker = None

    def worker_for(self, configs: Sequence[str]) -> PreforkWorker:
        """The one that is kept ready, else a new one: it loads what nodes need while their namespaces are made."""
        padding = padding_for([max(configs, key=len, default="")])
        return self._ready_worker_for(padding) if self._expected else self._make(padding)

    def fork(
        self, orders: Sequence[dict[str, Any]], worker: PreforkWorker
    ) -> Generator[Wait, None, Forked]:
        """The processes by name, and reasons for those that failed."""
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
        except WorkerError:  # they are known: should they not live, that will be seen
            worker.end()
        finally:
            if worker is not self._ready_worker:
                worker.close_and_wait()
        return forked, answer["failed"]

    def reap(self) -> None:
        """Collect a nursery that has ended."""
        if self._ready_worker is not None:
            self._ready_worker.running  # noqa: B018 - to look is to collect

    def _ready_worker_for(self, padding: str) -> PreforkWorker:
        """One that lives and has room enough."""
        if (
            self._ready_worker is None
            or not self._ready_worker.running
            or self._padding_length < len(padding)
        ):
            if self._ready_worker is not None:
                self._ready_worker.end()
            self._ready_worker, self._padding_length = self._make(padding), len(padding)
        return self._ready_worker
