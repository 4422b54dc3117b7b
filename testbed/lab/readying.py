"""Incidents made ready a moment before their time: when it comes, only the act itself is left to do.

What takes long is to ask the keeper of hundreds of nodes, and to write the journal. How nodes are made ready to be
started is in `starting`.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from testbed.backends.base import Backend
from testbed.backends.choice import Maker
from testbed.errors import TestbedError
from testbed.events import Emit
from testbed.keeper.client import Keeper
from testbed.lab.commands import Commands
from testbed.lab.hold import Hold
from testbed.lab.links import LinkBench
from testbed.places import LabPlace
from testbed.records import LabRecord
from testbed.scenario import Incident
from testbed.scenario.link_orders import link_orders
from testbed.scenario.unfolding import NUMBER
from testbed.topology.model import ActionKind, Topology

AHEAD_S = 0.25
SIGNALS = {ActionKind.CRASH: signal.SIGKILL, ActionKind.STOP: signal.SIGTERM}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the manifest says of an act: entries of the links that it changed, and what came of it."""

    links: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


Act = Callable[[], Outcome]


class Readying:
    """For the incidents of one lab."""

    def __init__(self, record: LabRecord, topology: Topology, emit: Emit, make: Maker) -> None:
        self._record, self._topology = record, topology
        self.hold = Hold(record.name)
        self._emit, self._make = emit, make
        self._place = LabPlace.of(record.name)
        self.commands = Commands(record.run_place, topology)

    @contextmanager
    def ready(self, incidents: Sequence[Incident]) -> Iterator[list[Act]]:
        """The act of each. Nobody else changes the lab's links meanwhile."""
        with ExitStack() as held:
            bench: LinkBench | None = None
            acts = []
            for incident in incidents:
                try:
                    if incident.kind.of_links and bench is None:
                        held.enter_context(self.hold.shared())
                        bench = self._bench()
                    acts.append(self._act(incident, bench))
                except TestbedError as error:
                    acts.append(_failing(error))
            yield acts

    def expect_starts(self) -> None:
        """Nodes may be started again; where that cannot be prepared, it takes longer."""
        with suppress(TestbedError):
            self._backend().expect_starts()

    def calm(self) -> None:
        """Nothing more is expected."""
        with suppress(TestbedError):
            Keeper(self._place).calm()

    def _bench(self) -> LinkBench:
        return LinkBench(self._record, self._topology, self._backend())

    def _backend(self) -> Backend:
        run = self._record.run_place
        return self._make(self._record.backend, self._place, run, self._topology, self._emit)

    def _act(self, incident: Incident, bench: LinkBench | None) -> Act:
        if bench is not None and incident.kind.of_links:
            orders = link_orders(incident, self._topology)
            changes = [bench.ready(names, order) for order, names in orders]
            return lambda: Outcome([change() for change in changes if change is not None])
        if (number := SIGNALS.get(incident.kind)) is not None:
            end = self._backend()
            return lambda: _signalled(end, incident, number)
        if incident.kind is ActionKind.MARK:
            return Outcome
        backend = self._backend()
        if incident.kind is ActionKind.LOAD:
            backend.expect_load()
        return lambda: self._let(incident, backend)

    def _let(self, incident: Incident, backend: Backend) -> Outcome:
        """What goes on for a while, and commands."""
        details = incident.details
        match incident.kind:
            case ActionKind.PARTITION:
                backend.part(details[NUMBER], details["sides"])
            case ActionKind.REUNITE:
                backend.reunite(details[NUMBER])
            case ActionKind.LOAD:
                to, rate_bps, size = details["to"], details["rate_bps"], details["size"]
                backend.load(details[NUMBER], incident.nodes, to, rate_bps, size)
            case ActionKind.UNLOAD:
                return Outcome(details=dict(backend.unload(details[NUMBER])))
            case ActionKind.EXEC:
                self.commands.begin(incident, backend)
        return Outcome()


def _signalled(backend: Backend, incident: Incident, number: int) -> Outcome:
    backend.signal(incident.nodes, number)
    return Outcome()


def sleep_until(t_ns: int) -> None:
    """Until this moment (ns since 1970); at once if it has passed."""
    while (rest_ns := t_ns - time.time_ns()) > 0:
        time.sleep(rest_ns / 1e9)


def _failing(error: TestbedError) -> Act:
    def fail() -> Outcome:
        raise error

    return fail
