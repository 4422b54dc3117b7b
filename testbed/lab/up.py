"""Bring a lab up: what is missing is made, what is there already is left alone."""

import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from testbed import __version__
from testbed.backends.base import Backend
from testbed.backends.choice import Choice, Maker, choose_backend, known_backend, make_backend
from testbed.errors import InputError, NameTaken, NodeFailure, TestbedError
from testbed.events import Emit, Note, Warned
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
    make_run_folder,
    new_run,
    read_manifest,
    save_lab,
    update_manifest,
)
from testbed.topology import doubts
from testbed.topology.model import Topology, from_json, to_json
from testbed.topology.numbering import keep_numbers, numbers_of

Chooser = Callable[[str | None], Choice]


@dataclass(frozen=True, slots=True)
class Undertaking:
    """One `up`: what is wanted, from which file, where, and who listens."""

    topology: Topology
    source: Path
    place: LabPlace
    emit: Emit
    make: Maker

    def backend(self, name: str, run: RunPlace) -> Backend:
        return self.make(name, self.place, run, self.topology, self.emit)

    def on(self, known: LabRecord) -> "Undertaking":
        """The same for a lab that runs."""
        return replace(self, topology=as_numbered(self.topology, known))


def bring_up(
    topology: Topology,
    source: Path,
    asked: str | None,
    emit: Emit,
    make: Maker = make_backend,
    choose: Chooser = choose_backend,
) -> LabRecord:
    """Everything the topology asks for exists, is connected and ready when this returns.

    A lab that is up from the same file is brought in line with it. An interrupt or an error takes back what this
    call made; only when single nodes fail the others stay, so that another `up` can complete the lab.
    """
    known_backend(asked)
    with locked(topology.name):
        place = LabPlace.of(topology.name)
        undertaking = Undertaking(topology, source, place, emit, make)
        known = load_lab(place)
        if known is not None:
            refuse_another_lab(known, source, asked)
            backend = undertaking.backend(known.backend, known.run_place)
            if backend.inspect().prepared:
                _bring_in_line(undertaking.on(known), known)
                return known
            emit(Note(f"lab {topology.name} had died; its remains are cleared away"))
            backend.destroy()
        forget_lab(place)
        return _start_anew(undertaking, choose(asked))


def as_numbered(topology: Topology, known: LabRecord) -> Topology:
    """The topology with the numbers that the running lab has given to its nodes."""
    return keep_numbers(topology, read_manifest(known.run_place)["numbers"])


def refuse_another_lab(known: LabRecord, source: Path, asked: str | None) -> None:
    """A lab that is up keeps its file and its backend."""
    if Path(known.source) != source.resolve():
        raise NameTaken(
            f"a lab named {known.name!r} is up already, from {known.source}",
            f"end it with `testbed down {known.name}`, or give this one another name with --name",
        )
    if asked not in (None, "auto", known.backend):
        raise InputError(
            f"lab {known.name} is up on the {known.backend} backend",
            f"end it with `testbed down {known.name}` before you start it on {asked}",
        )


def _start_anew(undertaking: Undertaking, choice: Choice) -> LabRecord:
    topology, emit = undertaking.topology, undertaking.emit
    emit(Note(f"backend {choice.name}: {choice.reason}"))
    _say_what_is_not_enforced(topology, emit)
    for doubt in doubts(topology):
        emit(Warned(doubt))
    run = new_run(topology.name)
    record = LabRecord(
        name=topology.name,
        run=run.run,
        run_folder=str(run.folder),
        backend=choice.name,
        source=str(undertaking.source.resolve()),
    )
    try:
        undertaking.place.folder.mkdir(parents=True)
        save_lab(undertaking.place, record)  # first of all: `down` must know of the run folder
        _begin_run(undertaking, run, choice)
        backend = undertaking.backend(choice.name, run)
        _apply_and_wait(undertaking, run, backend, plan_up(topology, Actual()))
    except NodeFailure:
        raise
    except BaseException:
        _take_back(undertaking, undertaking.backend(choice.name, run), run)
        raise
    return record


def _take_back(undertaking: Undertaking, backend: Backend, run: RunPlace) -> None:
    """Everything a failed start has made. What cannot be removed now keeps its record, so that `down` can."""
    try:
        backend.destroy()
    except TestbedError as error:
        undertaking.emit(Warned(f"{error.message}; {error.hint}"))
        return
    forget_lab(undertaking.place)
    shutil.rmtree(run.folder, ignore_errors=True)


def _begin_run(undertaking: Undertaking, run: RunPlace, choice: Choice) -> None:
    make_run_folder(run)
    shutil.copyfile(undertaking.source, run.topology)
    update_manifest(
        run,
        format=FORMAT,
        run=run.run,
        lab=undertaking.topology.name,
        status="starting",
        version=__version__,
        created_ns=time.time_ns(),
        backend={"name": choice.name, "reason": choice.reason},
        emulator=None,
        topology=to_json(undertaking.topology),
        numbers=numbers_of(undertaking.topology),
        measured_from_ns=0,
        capture=None,
        play=None,
        details={},
        machine=machine_facts(),
        warnings=[],
    )


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


def _bring_in_line(undertaking: Undertaking, known: LabRecord) -> None:
    """Do what is missing. The manifest follows when it is done, so that it never promises what does not exist."""
    topology, run = undertaking.topology, known.run_place
    backend = undertaking.backend(known.backend, run)
    actual = backend.inspect()
    steps = plan_up(topology, actual)
    manifest = read_manifest(run)
    try:
        _apply_and_wait(undertaking, run, backend, steps)
    except NodeFailure:
        raise
    except BaseException:
        made = [node.name for node in topology.nodes if node.name not in actual.created]
        backend.remove(made, lambda _: None)
        raise
    changed = from_json(manifest["topology"]) != topology
    if changed:
        shutil.copyfile(undertaking.source, run.topology)
        update_manifest(
            run,
            topology=to_json(topology),
            numbers={**manifest["numbers"], **numbers_of(topology)},
        )
    if changed and steps:  # what was published to other nodes than these is not measured with them
        update_manifest(run, measured_from_ns=time.time_ns())
    if not steps:
        what = "its scenario is now the file's" if changed else "nothing to do"
        undertaking.emit(Note(f"lab {topology.name} is up already; {what}"))


def _apply_and_wait(
    undertaking: Undertaking, run: RunPlace, backend: Backend, steps: tuple[Step, ...]
) -> None:
    apply(steps, backend, undertaking.topology, Journal(run.journal), undertaking.emit)
    wait_until_ready(undertaking.place, undertaking.topology, undertaking.emit)
    manifest = read_manifest(run)
    if steps or manifest["status"] == "starting":
        update_manifest(
            run,
            status="up",
            emulator={"name": backend.emulator, "reason": backend.emulator_reason},
            details={**backend.details(), "python": platform.python_version()},
        )
