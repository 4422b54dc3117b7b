"""Take a lab down: politely if it still answers, by its mark in any case."""

from testbed.backends.base import Backend
from testbed.backends.choice import Maker, make_backend
from testbed.backends.clearing import clear_away
from testbed.control import ControlError
from testbed.errors import InputError, TestbedError
from testbed.events import Emit, Note, StageAdvanced, StageEnded, StageStarted, Warned
from testbed.journal import Journal
from testbed.places import LabPlace
from testbed.records import (
    LabRecord,
    did_you_mean,
    forget_lab,
    lab_names,
    load_lab,
    locked,
    read_manifest,
    update_manifest,
)
from testbed.topology.model import NodeKind, Topology, from_json

STAGE = "stopping nodes"
# A node that stops hands over what it has queued: whoever takes it must still be there.
WITH_THE_STREAM = (NodeKind.SENSOR, NodeKind.BROKER, NodeKind.SUBSCRIBER)


def bring_down(name: str, emit: Emit, make: Maker = make_backend) -> LabRecord | None:
    """Nothing of the lab is left when this returns. Needs no topology file and no live keeper."""
    with locked(name):
        place = LabPlace.of(name)
        record = load_lab(place)
        existed = place.folder.exists()
        if record is not None:
            _finish_run(place, record, emit, make)
        removed = clear_away(place)
        forget_lab(place)
    if not existed and not removed:
        emit(Note(f"nothing of a lab named {name!r} is here; {did_you_mean(name, lab_names())}"))
    return record


def _finish_run(place: LabPlace, record: LabRecord, emit: Emit, make: Maker) -> None:
    """End the nodes in order and complete captures and manifest, as far as the lab still answers."""
    run = record.run_place
    try:
        topology = from_json(read_manifest(run)["topology"])
    except (InputError, KeyError, TypeError):
        emit(Warned(f"{run.manifest} is damaged; the lab is removed all the same"))
        return
    try:
        _stop_in_order(
            make(record.backend, place, record.run_place, topology, emit), record, topology, emit
        )
    except ControlError:
        emit(Note("the lab had died before; its captures end where it died"))
        update_manifest(run, status="died")
    except (TestbedError, OSError) as error:
        emit(Warned(f"the lab did not end in order ({error}); it is removed all the same"))


def _stop_in_order(backend: Backend, record: LabRecord, topology: Topology, emit: Emit) -> None:
    run = record.run_place
    if not backend.inspect().prepared:
        raise ControlError("the keeper is gone")
    Journal(run.journal).write(step="stop", targets=[node.name for node in topology.nodes])
    emit(StageStarted(STAGE, len(topology.nodes)))
    for kind in WITH_THE_STREAM:
        nodes = topology.of_kind(kind)
        backend.stop(nodes, lambda node: emit(StageAdvanced(STAGE, detail=node)))
    emit(StageEnded(STAGE))
    details = backend.details()
    captured, trouble = backend.captured()
    manifest = read_manifest(run)
    troubles = [f"the capture is not complete: {trouble}"] if trouble else []
    update_manifest(
        run,
        status="down",
        capture=captured,
        details={**manifest.get("details", {}), **details},
        warnings=[*manifest.get("warnings", []), *troubles],
    )
    for text in troubles:
        emit(Warned(text))
    if dropped := sum(link["dropped"] for link in captured.values()):
        emit(Warned(f"the captures lost {dropped} packets; the report says where"))
