"""Nodes that are started again beside the scenario: made a moment before, as far as their gates, which open in time."""

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from testbed.backends.base import Backend
from testbed.errors import NodeFailure, TestbedError
from testbed.events import ignore
from testbed.journal import Journal
from testbed.lab.apply import apply
from testbed.lab.readying import sleep_until
from testbed.plan import StepKind, batches, plan_up
from testbed.recording.actions import FAILED
from testbed.recording.script import Script
from testbed.scenario import Incident
from testbed.topology.model import ActionKind, Happening, Topology

AT_ONCE = 4  # that are made ready side by side
SEEN_BY_OTHERS = (StepKind.CAPTURE, StepKind.START)  # a link that comes up, a gate that opens

Start = Callable[[], list[str]]  # does what is left to do; sentences on what went wrong
Ready = Callable[[Incident], AbstractContextManager[Start]]


def may_start(script: Script, topology: Topology) -> bool:
    """Whether nodes may be started again while this is played."""
    if script.awaits:  # who is down, and when, depends on what comes
        return any(_starts(happening) for happening in topology.scenario.actions)
    return any(incident.kind is ActionKind.START for incident in script.incidents)


def _starts(happening: Happening) -> bool:
    if happening.kind in (ActionKind.CRASH, ActionKind.STOP):
        return happening.for_s is not None
    return happening.kind in (ActionKind.START, ActionKind.CHURN)


def made_ready(
    names: Sequence[str], backend: Backend, topology: Topology, journal: Journal
) -> Start:
    """These nodes wait at their gates; nobody else in the lab notices until they are started."""
    actual = backend.inspect(names)
    if late := sorted(actual.created.intersection(names)):  # they have not finished leaving
        backend.stop([topology.node(name) for name in late], lambda _: None)
        actual = backend.inspect(names)
    steps = [step for step in plan_up(topology, actual) if step.target in names]
    ahead = tuple(step for step in steps if step.kind not in SEEN_BY_OTHERS)
    failures = apply(ahead, backend, topology, journal, ignore)
    failed = {name for failure in failures for name in failure.nodes}
    left = [s for s in steps if s.kind in SEEN_BY_OTHERS and s.target not in failed]
    orders = [(kind, [step.target for step in batch]) for kind, batch in batches(tuple(left))]
    for kind, targets in orders:
        journal.write(step=kind, targets=targets)

    def start() -> list[str]:
        calls = {StepKind.CAPTURE: backend.capture, StepKind.START: backend.start}
        for kind, targets in orders:
            try:
                calls[kind]([topology.node(name) for name in targets], lambda _: None)
            except NodeFailure as failure:
                failures.append(failure)
        return [failure.message for failure in failures]

    return start


@dataclass(frozen=True, slots=True)
class Started:
    """How it went."""

    incident: Incident
    t_ns: int
    more: dict[str, Any]  # for the record
    warnings: list[str]


class Starting:
    """Those that are under way."""

    def __init__(self, ready: Ready) -> None:
        self._ready = ready
        self._workers = ThreadPoolExecutor(max_workers=AT_ONCE)
        self._under_way: list[tuple[Incident, Future[Started]]] = []

    @property
    def nodes(self) -> frozenset[str]:
        """Who is being started."""
        return frozenset(name for incident, _ in self._under_way for name in incident.nodes)

    def begin(self, incident: Incident, due_ns: int) -> None:
        """Make it ready; it is done at this moment (ns since 1970), or as soon as it is ready."""
        self._under_way.append((incident, self._workers.submit(self._do, incident, due_ns)))

    def finished(self, nodes: Collection[str] = (), *, over: bool = False) -> list[Started]:
        """Those that are done; those of these nodes, or when all is over all of them, are waited for."""
        done = []
        for one in [*self._under_way]:
            incident, future = one
            if future.done() or over or not set(nodes).isdisjoint(incident.nodes):
                self._under_way.remove(one)
                done.append(future.result())
        if over:
            self._workers.shutdown()
        return done

    def _do(self, incident: Incident, due_ns: int) -> Started:
        try:
            with self._ready(incident) as start:
                sleep_until(due_ns)
                warnings = start()
                return Started(incident, time.time_ns(), {}, warnings)
        except TestbedError as error:
            sleep_until(due_ns)
            return Started(incident, time.time_ns(), {FAILED: error.message}, [])
