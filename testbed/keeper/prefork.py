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
from testbed.keeper.process_title import room_for
from testbed.keeper.workers import PATIENCE_S, Worker, WorkerError


@dataclass(frozen=True, slots=True)
class Wait:
    """Until the descriptor can be read, or the deadline (monotonic) has come."""

    fd: int
    deadline: float


Slow = Generator[Wait, None, dict[str, Any]]  # an answer that has to be waited for


class Nursery(Worker):
    """A worker that can be asked by somebody who has no time to wait."""

    def asked(self, question: dict[str, Any]) -> Slow:
        """Like `ask`."""
        deadline = time.monotonic() + PATIENCE_S
        try:
            self._tell(json.dumps(question).encode() + b"\n", deadline)
        except (OSError, ValueError) as error:  # it is gone, or has been let go
            raise self._gone() from error
        yield Wait(self._output.fileno(), deadline)
        answer: dict[str, Any] = json.loads(self._line(deadline))
        if not answer.get("ok"):
            raise WorkerError(f"{self.name}: {answer.get('error', 'refused without a reason')}")
        return answer


Make = Callable[[str], Nursery]  # with an argument that makes room for others
Born = tuple[dict[str, HeldProcess], dict[str, str]]


class Births:
    """Of all nodes of ours."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._expected = False
        self._kept: Nursery | None = None
        self._room = 0  # that the kept one has

    def expect(self, config: str) -> None:
        """There will be some, whose files have paths no longer than this one: a nursery gets ready."""
        self._expected = True
        self._kept_for(room_for([config]))

    def expect_none(self) -> None:
        """There will be no more."""
        self._expected = False
        if self._kept is not None:
            self._kept.end()
            self._kept = None

    def nursery_for(self, configs: Sequence[str]) -> Nursery:
        """The one that is kept ready, else a new one: it loads what nodes need while their namespaces are made."""
        room = room_for([max(configs, key=len, default="")])
        return self._kept_for(room) if self._expected else self._make(room)

    def of(self, orders: Sequence[dict[str, Any]], nursery: Nursery) -> Generator[Wait, None, Born]:
        """The processes by name, and reasons for those that failed."""
        born: dict[str, HeldProcess] = {}
        try:
            answer = yield from nursery.asked({"orders": list(orders)})
            for name, pid in answer["pids"].items():
                born[name] = HeldProcess(pid, ours=True)
        except BaseException:
            nursery.end()
            for process in born.values():
                process.close()
            raise
        try:
            yield from nursery.asked({"go": True})
        except WorkerError:  # they are known: should they not live, that will be seen
            nursery.end()
        finally:
            if nursery is not self._kept:
                nursery.let_go()
        return born, answer["failed"]

    def reap(self) -> None:
        """Collect a nursery that has ended."""
        if self._kept is not None:
            self._kept.running  # noqa: B018 - to look is to collect

    def _kept_for(self, room: str) -> Nursery:
        """One that lives and has room enough."""
        if self._kept is None or not self._kept.running or self._room < len(room):
            if self._kept is not None:
                self._kept.end()
            self._kept, self._room = self._make(room), len(room)
        return self._kept
