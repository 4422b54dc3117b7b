"""Nodes that are started again beside the scenario, one after the other: to load a program takes a while."""

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError
from testbed.lab.readying import sleep_until
from testbed.recording.actions import FAILED
from testbed.scenario import Incident

Start = Callable[[Incident], list[str]]  # does it; sentences on what went wrong


@dataclass(frozen=True, slots=True)
class Started:
    """How it went."""

    incident: Incident
    t_ns: int
    more: dict[str, Any]  # for the record
    warnings: list[str]


class Starting:
    """Those that are under way."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._under_way: list[tuple[Incident, Future[Started]]] = []

    @property
    def nodes(self) -> frozenset[str]:
        """Who is being started."""
        return frozenset(name for incident, _ in self._under_way for name in incident.nodes)

    def begin(self, incident: Incident, due_ns: int) -> None:
        """At this moment (ns since 1970), or when those before it have been started."""
        self._under_way.append((incident, self._worker.submit(self._do, incident, due_ns)))

    def finished(self, nodes: Collection[str] = (), *, over: bool = False) -> list[Started]:
        """Those that are done; those of these nodes, or when all is over all of them, are waited for."""
        done = []
        for one in [*self._under_way]:
            incident, future = one
            if future.done() or over or not set(nodes).isdisjoint(incident.nodes):
                self._under_way.remove(one)
                done.append(future.result())
        if over:
            self._worker.shutdown()
        return done

    def _do(self, incident: Incident, due_ns: int) -> Started:
        sleep_until(due_ns)
        more: dict[str, Any] = {}
        warnings: list[str] = []
        try:
            warnings = self._start(incident)
        except TestbedError as error:
            more[FAILED] = error.message
        return Started(incident, time.time_ns(), more, warnings)
