"""What happens while a scenario is played in a real lab: processes end and begin again, links are cut and change.

Each action is in the manifest under `actions`, with the moment from which on it held.
"""

import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from testbed.backends.choice import Maker, make_backend
from testbed.control import tell_each
from testbed.errors import TestbedError, few
from testbed.events import Emit, Warned, ignore
from testbed.journal import Journal
from testbed.keeper.client import Keeper
from testbed.lab.apply import apply
from testbed.lab.health import NO_KEEPER
from testbed.lab.links import change_links
from testbed.places import LabPlace
from testbed.plan import plan_up
from testbed.recording.actions import ACTIONS, FAILED, entry
from testbed.records import LabRecord, extend_manifest, locked
from testbed.scenario import Action, Incident
from testbed.scenario.link_orders import link_orders
from testbed.topology.model import ActionKind, Topology

PATIENCE_S = 5.0  # for another command that changes the lab at the same moment
_SIGNALS = {ActionKind.CRASH: signal.SIGKILL, ActionKind.STOP: signal.SIGTERM}


class Actions:
    """The incidents of one scenario; whoever watches the clock calls `strike`."""

    def __init__(
        self,
        record: LabRecord,
        topology: Topology,
        timeline: Sequence[Action],
        incidents: Sequence[Incident],
        emit: Emit,
        make: Maker = make_backend,
    ) -> None:
        self._record = record
        self._topology = topology
        self._timeline = timeline
        self.skipped: set[Action] = set()  # what was due while a node was being started again
        self._to_come = list(incidents)
        self._emit = emit
        self._make = make
        self._place = LabPlace.of(record.name)

    def wait_s(self, elapsed_s: float) -> float:
        """How long until the next one."""
        return self._to_come[0].at_ns / 1e9 - elapsed_s if self._to_come else float("inf")

    def strike(self, start_ns: int) -> None:
        """Let happen what is due; one that cannot be done is a warning, and the scenario goes on."""
        while self._to_come and self._to_come[0].at_ns <= time.time_ns() - start_ns:
            incident = self._to_come.pop(0)
            more = {}
            try:
                self._do(incident, start_ns)
            except TestbedError as error:
                more[FAILED] = error.message
                self._emit(Warned(f"{incident.kind} of {few(incident.nodes)}: {error.message}"))
            done = entry(incident, start_ns, time.time_ns(), **more)
            extend_manifest(self._record.run_place, **{ACTIONS: [done]})

    def _do(self, incident: Incident, start_ns: int) -> None:
        if incident.kind.of_links:
            for order, names in link_orders(incident, self._topology):
                change_links(self._record, names, order, ignore, self._make)
        elif incident.kind is ActionKind.START:
            self._start(incident, start_ns)
        elif incident.kind in _SIGNALS:
            keeper = Keeper.connect(self._place)
            if keeper is None:
                raise TestbedError(
                    f"lab {self._record.name}: {NO_KEEPER}", "`testbed up` repairs it"
                )
            keeper.signal(incident.nodes, _SIGNALS[incident.kind])

    def _start(self, incident: Incident, start_ns: int) -> None:
        run, names = self._record.run_place, incident.nodes
        with locked(self._record.name, patience_s=PATIENCE_S):
            backend = self._make(self._record.backend, self._place, run, self._topology, self._emit)
            late = backend.inspect().created.intersection(names)  # they have not finished leaving
            backend.stop([self._topology.node(name) for name in sorted(late)], lambda _: None)
            steps = plan_up(self._topology, backend.inspect())
            own = tuple(step for step in steps if step.target in names)
            failures = apply(own, backend, self._topology, Journal(run.journal), ignore)
        for failure in failures:
            self._emit(Warned(failure.message))
        self._hand_out_the_rest(incident, start_ns)

    def _hand_out_the_rest(self, incident: Incident, start_ns: int) -> None:
        """What these nodes are still to publish."""
        now_ns = time.time_ns() - start_ns
        parts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for action in self._timeline:
            if action.node not in incident.nodes or action.at_ns < incident.at_ns:
                continue
            if action.at_ns <= now_ns:
                self.skipped.add(action)
                continue
            part = asdict(action)
            parts[part.pop("node")].append(part)
        orders = {
            self._place.node_control(node): {"do": "play", "start_ns": start_ns, "actions": part}
            for node, part in parts.items()
        }
        tell_each(orders, timeout_s=30.0)
