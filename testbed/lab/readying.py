"""Incidents made ready a moment before their time: when it comes, only the act itself is left to do.

What takes long is to ask the keeper of hundreds of nodes, and to write the journal. Starting a node cannot be prepared.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from testbed.backends.base import Backend
from testbed.backends.choice import Maker
from testbed.control import ControlError
from testbed.errors import TestbedError
from testbed.events import Emit
from testbed.keeper.client import Keeper
from testbed.lab.commands import Commands
from testbed.lab.health import NO_KEEPER
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

Act = Callable[[], list[dict[str, Any]]]  # does it; what the manifest says of links that it changed


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

    def _bench(self) -> LinkBench:
        return LinkBench(self._record, self._topology, self._backend())

    def _backend(self) -> Backend:
        run = self._record.run_place
        return self._make(self._record.backend, self._place, run, self._topology, self._emit)

    def _act(self, incident: Incident, bench: LinkBench | None) -> Act:
        if bench is not None and incident.kind.of_links:
            orders = link_orders(incident, self._topology)
            changes = [bench.ready(names, order) for order, names in orders]
            return lambda: [change() for change in changes if change is not None]
        if (number := SIGNALS.get(incident.kind)) is not None:
            return lambda: self._signal(incident, number)
        if incident.kind is ActionKind.MARK:
            return list
        backend = self._backend()
        if incident.kind is ActionKind.LOAD:
            backend.expect_load()
        return lambda: self._let(incident, backend)

    def _let(self, incident: Incident, backend: Backend) -> list[dict[str, Any]]:
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
                backend.unload(details[NUMBER])
            case ActionKind.EXEC:
                self.commands.begin(incident, backend)
        return []

    def _signal(self, incident: Incident, number: int) -> list[dict[str, Any]]:
        try:
            Keeper(self._place).signal(incident.nodes, number)
        except ControlError:
            if Keeper.connect(self._place) is None:
                raise TestbedError(
                    f"lab {self._record.name}: {NO_KEEPER}", "`testbed up` repairs it"
                ) from None
            raise
        return []


def sleep_until(t_ns: int) -> None:
    """Until this moment (ns since 1970); at once if it has passed."""
    while (rest_ns := t_ns - time.time_ns()) > 0:
        time.sleep(rest_ns / 1e9)


def _failing(error: TestbedError) -> Act:
    def fail() -> list[dict[str, Any]]:
        raise error

    return fail
