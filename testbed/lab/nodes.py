"""Crash, stop and start nodes of a lab by hand. The manifest records it like the actions of a scenario."""

import signal
import time
from collections.abc import Sequence

from testbed.backends.common.base import Backend
from testbed.backends.registry import Maker, make_backend
from testbed.errors import InputError, NodeFailure, TestbedError, few
from testbed.lab.journal import Journal
from testbed.lab.links import PATIENCE_S, select_links, topology_of
from testbed.lab.preparation import prepare_start
from testbed.lab.status import node_statuses
from testbed.places import LabPlace
from testbed.progress import Emit
from testbed.recording.actions import ACTIONS
from testbed.records import LabRecord, extend_manifest, find_lab, locked
from testbed.topology.model import ActionKind, Topology

BY_HAND = {"by": "hand"}


def order_nodes(
    record: LabRecord,
    selectors: Sequence[str],
    kind: ActionKind,
    emit: Emit,
    make: Maker = make_backend,
) -> list[str]:
    """Crash, stop or start these nodes; return the names of those that changed their state."""
    with locked(record.name, patience_s=PATIENCE_S):
        record = find_lab(record.name)
        topology = topology_of(record)
        place = LabPlace.of(record.name)
        meant = _meant(selectors, topology)
        statuses = node_statuses(place, [topology.node(name) for name in meant])
        down = {name for name, status in statuses.items() if status.state == "silent"}
        concerned = [name for name in meant if (name in down) is (kind is ActionKind.START)]
        if not concerned:
            return []
        run = record.run_place
        Journal(run.journal).write(step=kind.value, targets=concerned)
        backend = make(record.backend, place, run, topology, emit)
        due_ns = time.time_ns()
        failed: frozenset[str] = frozenset()
        try:
            _do(kind, concerned, backend, topology, Journal(run.journal))
        except NodeFailure as failure:
            failed = frozenset(failure.nodes)
            raise
        finally:
            done = [name for name in concerned if name not in failed]
            entry = {
                "t_ns": time.time_ns(),
                "due_ns": due_ns,
                "action": kind.value,
                "targets": done,
                "details": BY_HAND,
            }
            extend_manifest(run, **{ACTIONS: [entry] if done else []})
        return done


def _do(
    kind: ActionKind, names: list[str], backend: Backend, topology: Topology, journal: Journal
) -> None:
    if kind is ActionKind.CRASH:
        backend.signal(names, signal.SIGKILL)
    elif kind is ActionKind.STOP:
        backend.stop([topology.node(name) for name in names], lambda _: None)
    elif failed := prepare_start(names, backend, topology, journal)():
        raise TestbedError("; ".join(failed), "`testbed logs` says more")


def _meant(selectors: Sequence[str], topology: Topology) -> list[str]:
    names = select_links(selectors, topology)
    if others := [name for name in names if not topology.node(name).ours]:
        raise InputError(
            f"{few(others)}: only brokers, sensors and subscribers can be stopped and started",
            "name others",
        )
    return [*names]
