"""Bring a lab up: what is missing is made, what is there already is left alone."""

import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from testbed import __version__
from testbed.backends.base import Backend
from testbed.backends.choice import Choice, Maker, make_backend
from testbed.errors import NameTaken, NodeFailure
from testbed.events import Emit, Note
from testbed.journal import Journal
from testbed.lab.apply import apply
from testbed.lab.ready import wait_until_ready
from testbed.machine import machine_facts
from testbed.places import LabPlace, RunPlace
from testbed.plan import Actual, Step, plan_up
from testbed.records import (
    FORMAT,
    LabRecord,
    forget_lab,
    load_lab,
    locked,
    new_run,
    read_manifest,
    save_lab,
    update_manifest,
)
from testbed.topology.model import Topology, from_json, to_json

Chooser = Callable[[], Choice]  # asked only when a lab starts anew


def bring_up(
    topology: Topology, source: Path, choose: Chooser, emit: Emit, make: Maker = make_backend
) -> LabRecord:
    """Everything the topology asks for exists, is connected and ready when this returns.

    A lab that is up from the same file is brought in line with it. An interrupt or an error takes back what this
    call made; only when single nodes fail the others stay, so that another `up` can complete the lab.
    """
    with locked(topology.name):
        place = LabPlace.of(topology.name)
        known = load_lab(place)
        if known is not None:
            _refuse_other_file(known, source)
            backend = make(known.backend, place, known.run_place, topology, emit)
            if backend.inspect().prepared:
                return _bring_in_line(known, backend, topology, source, emit)
            emit(Note(f"lab {topology.name} had died; its remains are cleared away"))
            backend.destroy()
            forget_lab(place)
        return _start_anew(place, topology, source, choose(), emit, make)


def _refuse_other_file(known: LabRecord, source: Path) -> None:
    if Path(known.source) != source.resolve():
        raise NameTaken(
            f"a lab named {known.name!r} is up already, from {known.source}",
            f"end it with `testbed down {known.name}`, or give this one another name with --name",
        )


def _start_anew(
    place: LabPlace,
    topology: Topology,
    source: Path,
    choice: Choice,
    emit: Emit,
    make: Maker,
) -> LabRecord:
    emit(Note(f"backend {choice.name}: {choice.reason}"))
    _say_what_is_not_enforced(topology, emit)
    run = new_run(topology.name)
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
        record = LabRecord(
            name=topology.name,
            run=run.run,
            run_folder=str(run.folder),
            backend=choice.name,
            backend_reason=choice.reason,
            source=str(source.resolve()),
        )
        save_lab(place, record)
        shutil.copyfile(source, run.topology)
        update_manifest(
            run,
            format=FORMAT,
            run=run.run,
            lab=topology.name,
            status="starting",
            version=__version__,
            created_ns=time.time_ns(),
            backend={"name": choice.name, "reason": choice.reason},
            emulator=None,
            topology=to_json(topology),
            capture=None,
            play=None,
            details={},
            machine=machine_facts(),
            warnings=[],
        )
        backend = make(choice.name, place, run, topology, emit)
        steps = plan_up(topology, Actual())
        _apply_and_wait(steps, backend, topology, topology, place, run, emit)
    except NodeFailure:
        raise
    except BaseException:
        make(choice.name, place, run, topology, emit).destroy()
        forget_lab(place)
        shutil.rmtree(run.folder, ignore_errors=True)
        raise
    return record


def _say_what_is_not_enforced(topology: Topology, emit: Emit) -> None:
    """No backend of this version limits a node to a board's processor: say so rather than pretend."""
    boards = [node for node in topology.nodes if node.platform or node.board]
    if boards:
        emit(
            Note(
                f"platform and class are recorded only: {len(boards)} nodes run "
                "with this machine's own processor and memory"
            )
        )


def _bring_in_line(
    known: LabRecord, backend: Backend, topology: Topology, source: Path, emit: Emit
) -> LabRecord:
    run = known.run_place
    before = from_json(read_manifest(run)["topology"])
    actual = backend.inspect()
    steps = plan_up(topology, actual)
    if not steps:
        emit(Note(f"lab {topology.name} is up already; nothing to do"))
        return known
    shutil.copyfile(source, run.topology)
    update_manifest(run, topology=to_json(topology))
    place = LabPlace.of(known.name)
    try:
        _apply_and_wait(steps, backend, topology, before, place, run, emit)
    except KeyboardInterrupt:
        made = [node for node in topology.nodes if node.name not in actual.created]
        backend.remove(made, lambda _: None)
        raise
    return known


def _apply_and_wait(
    steps: tuple[Step, ...],
    backend: Backend,
    topology: Topology,
    before: Topology,
    place: LabPlace,
    run: RunPlace,
    emit: Emit,
) -> None:
    nodes = {node.name: node for node in (*before.nodes, *topology.nodes)}
    apply(steps, backend, topology, nodes, Journal(run.journal), emit)
    wait_until_ready(place, topology, emit)
    update_manifest(
        run,
        status="up",
        emulator={"name": backend.emulator, "reason": backend.emulator_reason},
        details={**backend.details(), "python": platform.python_version()},
    )
