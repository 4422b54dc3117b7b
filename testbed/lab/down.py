"""Take a lab down: stop its nodes in order if it still answers, and remove all that carries its mark."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from testbed.backends.common.base import Backend
from testbed.backends.common.names import BOARDS, has_boards
from testbed.backends.docker.removal import remove_lab
from testbed.backends.registry import Maker, make_backend
from testbed.errors import InputError, TestbedError
from testbed.lab.external_nodes import save_outputs
from testbed.lab.journal import Journal
from testbed.lab.run_record import record_publications
from testbed.lab.status import NO_KEEPER, problems
from testbed.places import LabPlace
from testbed.progress import (
    Emit,
    Incomplete,
    Note,
    StageAdvanced,
    StageEnded,
    StageStarted,
    Warned,
)
from testbed.records import (
    UNFINISHED,
    LabRecord,
    did_you_mean,
    extend_manifest,
    lab_names,
    load_lab,
    locked,
    read_manifest,
    remove_lab_folder,
    update_manifest,
)
from testbed.topology.model import NodeKind, Topology, from_json

STAGE = "stopping nodes"
NOT_COMPLETE = "the measurement is not complete"
# In the order of the data flow: a node that stops hands over its queue, so its receiver must still run.
STOP_ORDER = (NodeKind.SENSOR, NodeKind.BROKER, NodeKind.SUBSCRIBER, NodeKind.EXTERNAL)
# Errors of damaged files, a full disk and a dying lab. None of them may stop `down`.
OBSTACLES = (TestbedError, OSError, ValueError, KeyError, TypeError, AttributeError)


def bring_down(name: str, emit: Emit, make: Maker = make_backend) -> LabRecord | None:
    """Remove the whole lab. This needs neither its topology file nor a live keeper."""
    with locked(name):
        place = LabPlace.of(name)
        record = load_lab(place)
        existed = place.folder.exists()
        if record is not None:
            try:
                _finish_run(place, record, emit, make)
            except OBSTACLES as error:
                emit(
                    Incomplete(
                        f"the lab did not end in order ({error}); it is removed all the same"
                    )
                )
        if record is not None and has_boards(record.backend):
            _clear_boards(place, record, emit)
        removed = remove_lab(place, record.backend if record else None)
        remove_lab_folder(place)
    with suppress(InputError), locked(name, "playing"):
        pass  # this removes the lock of a `play` that was killed
    if not existed and not removed:
        emit(Note(f"nothing of a lab named {name!r} is here; {did_you_mean(name, lab_names())}"))
    return record


def _clear_boards(place: LabPlace, record: LabRecord, emit: Emit) -> None:
    """Clear the boards. Warn of boards that fail, and go on: an unreachable board must not keep a lab up."""
    from testbed.backends.field.deployment import load
    from testbed.backends.field.removal import clear_boards

    try:
        _, left = clear_boards(place, record.run_place, load(place), emit)
    except OBSTACLES as error:
        left = [f"the boards were not cleared: {error}"]
    for sentence in left:
        emit(Incomplete(sentence))


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome for one of several labs: its run folder, if it had one, and the error, if it is not down."""

    lab: str
    run_folder: str | None
    error: str = ""
    hint: str = ""


def bring_all_down(names: Sequence[str], emit: Emit, make: Maker = make_backend) -> list[Ended]:
    """One lab after the other; one that fails does not stop the others."""
    ended = []
    for name in names:
        emit(Note(f"lab {name}"))
        try:
            record = bring_down(name, emit, make)
            ended.append(Ended(name, record.run_folder if record else None))
        except TestbedError as error:
            ended.append(Ended(name, None, error.message, error.hint))
        except OSError as error:
            ended.append(Ended(name, None, str(error), f"`testbed down {name}` says more"))
    return ended


def _finish_run(place: LabPlace, record: LabRecord, emit: Emit, make: Maker) -> None:
    """End the nodes in order and complete captures and manifest, as far as the lab still answers."""
    run = record.run_place
    if not run.manifest.exists():
        emit(Note("the lab had only begun; its run folder is removed"))
        shutil.rmtree(run.folder, ignore_errors=True)
        return
    manifest = read_manifest(run)
    topology = from_json(manifest["topology"])
    backend = make(record.backend, place, run, topology, emit)
    if not _is_alive(backend, record):
        save_outputs(record)
        if has_boards(record.backend):
            _save_boards(make(BOARDS, place, run, topology, emit), record, emit)
        if manifest["status"] in UNFINISHED:
            emit(Note("the lab had died before; its captures end where it died"))
            update_manifest(run, status="died")
        return
    Journal(run.journal).write(step="stop", targets=[node.name for node in topology.nodes])
    _stop_in_order(backend, topology, emit)
    _complete_manifest(backend, record, emit)
    record_publications(run)


def _save_boards(boards: Backend, record: LabRecord, emit: Emit) -> None:
    """Collect the data on the boards of a lab that died on this machine."""
    captured, trouble = boards.captured()
    known = read_manifest(record.run_place).get("capture") or {}
    update_manifest(record.run_place, capture={**known, **captured})
    if trouble:
        emit(Incomplete(f"{NOT_COMPLETE}: {trouble}"))
    record_publications(record.run_place)


def _is_alive(backend: Backend, record: LabRecord) -> bool:
    """Whether nodes can be stopped in order. If the engine does not answer, ask the keeper."""
    try:
        return backend.inspect().prepared
    except TestbedError:
        return NO_KEEPER not in problems(record)


def _stop_in_order(backend: Backend, topology: Topology, emit: Emit) -> None:
    emit(StageStarted(STAGE, len(topology.nodes) - len(topology.of_kind(NodeKind.ROUTER))))
    obstacles: dict[str, None] = {}
    for kind in STOP_ORDER:
        try:
            backend.stop(
                topology.of_kind(kind), lambda node: emit(StageAdvanced(STAGE, detail=node))
            )
        except TestbedError as error:
            obstacles[str(error)] = None
    for obstacle in obstacles:
        emit(Incomplete(f"the nodes did not end in order: {obstacle}"))
    emit(StageEnded(STAGE))


def _complete_manifest(backend: Backend, record: LabRecord, emit: Emit) -> None:
    run = record.run_place
    captured, trouble = backend.captured()
    manifest = read_manifest(run)
    problems = [f"{NOT_COMPLETE}: {trouble}"] if trouble else []
    update_manifest(
        run,
        status="down",
        capture=captured,
        details={**manifest.get("details", {}), **backend.details()},
    )
    extend_manifest(run, warnings=problems)
    for text in problems:
        emit(Incomplete(text))
    if dropped := sum(link["dropped"] for link in captured.values()):
        emit(Warned(f"the captures lost {dropped} packets; the report says where"))
