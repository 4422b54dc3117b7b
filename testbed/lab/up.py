"""Brings a lab up: makes the missing parts, and leaves existing parts unchanged."""

import platform
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from testbed.backends.common.base import Backend, ExternalState
from testbed.backends.field.boards import at_their_addresses
from testbed.backends.field.deployment import Deployment
from testbed.backends.registry import Choice, Maker, choose_backend, known_backend, make_backend
from testbed.control import ControlError, request
from testbed.errors import A_FEW, InputError, NodeFailure, TestbedError, few
from testbed.keeper.children import UNKNOWN
from testbed.keeper.client import Keeper
from testbed.lab.apply import apply
from testbed.lab.external_nodes import external_states, save_outputs
from testbed.lab.journal import Journal
from testbed.lab.links import note_changed_links, record_remade_links
from testbed.lab.start.calibration import calibrated
from testbed.lab.start.disk import warn_of_a_full_disk
from testbed.lab.start.preconditions import (
    note_board_nodes_here,
    note_unenforced_limits,
    refuse_another_lab,
    refuse_dead_lab_with_boards,
    refuse_external_nodes_without_containers,
    refuse_foreign_platforms,
    refuse_missing_congestion_control,
    refuse_other_boards,
)
from testbed.lab.start.provenance import tcp_of_lab
from testbed.lab.start.run_folder import Sources, begin_run
from testbed.places import LabPlace, RunPlace
from testbed.plan import Actual, Step, StepKind, plan_up
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
    extend_manifest,
    load_lab,
    locked,
    new_run,
    read_manifest,
    remove_lab_folder,
    save_lab,
    update_manifest,
)
from testbed.topology import find_likely_mistakes
from testbed.topology.addresses import keep_numbers, numbers_of
from testbed.topology.model import Node, NodeKind, Topology, from_json, to_json

# Waiting until every node is connected.


PATIENCE_S = 60.0
STAGE = "connecting nodes"
_LOOK_EVERY_S = 1.0  # how often to check whether the nodes still live
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_BUSY = 4  # asking takes processor time from nodes that connect: pause so many times as long


def wait_until_ready(
    place: LabPlace,
    topology: Topology,
    emit: Emit,
    patience_s: float = PATIENCE_S,
    without: Collection[str] = (),
) -> None:
    """Ask all nodes (`without`: but these) until each is ready; NodeFailure names those that never were.

    A node that has ended is not waited for.
    """
    waiting = [
        node
        for node in topology.nodes
        if node.kind is not NodeKind.ROUTER and node.name not in without
    ]
    ended: dict[str, str] = {}
    emit(StageStarted(STAGE, len(waiting)))
    deadline = time.monotonic() + patience_s
    look_at = time.monotonic() + _LOOK_EVERY_S
    while waiting:
        if time.monotonic() > look_at:
            look_at = time.monotonic() + _LOOK_EVERY_S
            dead = _dead(place)
            ended |= {node.name: dead[node.name] for node in waiting if node.name in dead}
        externals = (
            external_states(place, topology) if any(node.external for node in waiting) else {}
        )
        ended |= {
            n.name: externals[n.name].status_text for n in waiting if _has_ended(n, externals)
        }
        waiting = [node for node in waiting if node.name not in ended]
        still, asked_at = [], time.monotonic()
        for node in waiting:
            ready = externals[node.name].ready if node.external else is_ready(place, node.name)
            if ready:
                emit(StageAdvanced(STAGE, detail=node.name))
            else:
                still.append(node)
        waiting = still
        if waiting and time.monotonic() > deadline:
            break
        if waiting:
            asking_s = time.monotonic() - asked_at
            time.sleep(min(_LONGEST_PAUSE_S, max(_PAUSE_S, _BUSY * asking_s)))
    if waiting or ended:
        raise _failure(place, [node.name for node in waiting], ended, patience_s)
    emit(StageEnded(STAGE))


def _has_ended(node: Node, externals: Mapping[str, ExternalState]) -> bool:
    return bool(node.external) and not externals[node.name].running


def _dead(place: LabPlace) -> dict[str, str]:
    """Nodes whose processes have ended, and how; none without a keeper."""
    keeper = Keeper.connect(place)
    if keeper is None:
        return {}
    nodes = keeper.status()["nodes"].items()
    return {name: _exit_text(node["exit_code"]) for name, node in nodes if not node["running"]}


def _exit_text(exit_code: int | None) -> str:
    known = exit_code not in (None, UNKNOWN)
    return f"exit code {exit_code}" if known else "its process is gone"


def _failure(
    place: LabPlace, silent: list[str], ended: Mapping[str, str], patience_s: float
) -> NodeFailure:
    phrases = [
        f"{name} has ended ({status_text})" for name, status_text in islice(ended.items(), A_FEW)
    ]
    if len(ended) > A_FEW:
        phrases.append(f"{len(ended) - A_FEW} more have ended")
    if silent:
        phrases.append(f"not connected after {patience_s:.0f} s: {few(silent)}")
    names = [*ended, *silent]
    hint = f"see `testbed logs {place.name} {names[0]}`; `testbed up` again retries"
    return NodeFailure("; ".join(phrases), hint, names)


def is_ready(place: LabPlace, node: str) -> bool:
    """Whether the node answers and is connected."""
    try:
        return bool(request(place.node_control(node), {"do": "status"})["ready"])
    except ControlError:
        return False


# Repairs: dead parts that an `up` makes anew. The measurement then has a gap, and the manifest says so.


def repairs(steps: Sequence[Step], manifest: Mapping[str, Any]) -> str:
    """A sentence on dead parts of a lab that was up; empty if there were none. Edits of the file are no repairs."""
    if manifest["status"] not in ("up", "played"):
        return ""
    had = {node["name"] for node in manifest["topology"]["nodes"]}
    edited = {step.target for step in steps if step.kind is StepKind.REMOVE}
    died = {
        kind: [s.target for s in steps if s.kind is kind and s.target in had - edited]
        for kind in (StepKind.CREATE, StepKind.WIRE, StepKind.CAPTURE, StepKind.START)
    }
    phrases = []
    if died[StepKind.CREATE]:
        phrases.append(f"made anew: {few(died[StepKind.CREATE])}")
    elif died[StepKind.WIRE]:
        phrases.append(f"new links: {few(died[StepKind.WIRE])}")
    elif died[StepKind.CAPTURE]:
        phrases.append(f"captured anew: {few(died[StepKind.CAPTURE])}")
    if ended := [name for name in died[StepKind.START] if name not in died[StepKind.CREATE]]:
        phrases.append(f"started anew: {few(ended)}")
    if not phrases:
        return ""
    when = time.strftime("%H:%M:%S")
    return f"parts of the lab had died and were repaired at {when} ({'; '.join(phrases)})"


HUBS = (NodeKind.BROKER, NodeKind.ROUTER, NodeKind.EXTERNAL)  # others cannot connect without them
Chooser = Callable[[str | None], Choice]


@dataclass(frozen=True, slots=True)
class UpRequest:
    """The request of one `up`: the topology, its files, the lab's place, and the receiver of progress events."""

    topology: Topology
    sources: Sources
    place: LabPlace
    emit: Emit
    make: Maker
    thorough_s: float | None = None  # of TCP in a thorough calibration; None: a quick one
    deployment: Deployment | None = None  # of the nodes on boards
    left_out: frozenset[str] = frozenset()  # nodes that this `up` skips

    def backend(self, name: str, run: RunPlace) -> Backend:
        return self.make(name, self.place, run, self.topology, self.emit)

    def for_running_lab(self, known: LabRecord) -> "UpRequest":
        """The same request for a running lab, with the numbers of its nodes."""
        return replace(self, topology=self.placed(as_numbered(self.topology, known)))

    def placed(self, topology: Topology) -> Topology:
        """The topology with the addresses of boards, if nodes go there."""
        boards = self.deployment.boards if self.deployment else ()
        return at_their_addresses(topology, boards)


def bring_up(
    topology: Topology,
    source: Path,
    asked: str | None,
    emit: Emit,
    make: Maker = make_backend,
    choose: Chooser = choose_backend,
    thorough_s: float | None = None,
    scenario: Path | None = None,
    deployment: Deployment | None = None,
    left_out: frozenset[str] = frozenset(),
) -> LabRecord:
    """Make all that the topology asks for; all nodes are connected and ready when this returns.

    A lab that is up from the same file is changed to match it. An interrupt or an error undoes what this call made;
    if single nodes fail, the others stay, so that another `up` can complete the lab.
    New links are calibrated quickly; with `thorough_s`, all of them, with so many seconds of TCP in each direction.
    `scenario`: the scenario's own file, if it has one. With a `deployment`, nodes go to boards.
    """
    known_backend(asked)
    with locked(topology.name):
        place = LabPlace.of(topology.name)
        sources = Sources(source, scenario)
        up_request = UpRequest(
            topology, sources, place, emit, make, thorough_s, deployment, left_out
        )
        up_request = replace(up_request, topology=up_request.placed(topology))
        known = load_lab(place)
        if known is not None:
            refuse_another_lab(known, source, asked, deploying=deployment is not None)
            if deployment is not None:
                refuse_other_boards(known, deployment, topology)
                deployment.save(place)
            backend = up_request.backend(known.backend, known.run_place)
            if backend.inspect().prepared:
                _update_lab(up_request.for_running_lab(known), known)
                return known
            refuse_dead_lab_with_boards(known)
            emit(Note(f"lab {topology.name} had died; its remains are cleared away"))
            save_outputs(known)
            backend.destroy()
            _mark_died(known)
        remove_lab_folder(place)
        if known is None:
            return _start_new(up_request, choose(asked))
        return _start_new(up_request, replace(choose(known.backend), reason="as before"))


def _mark_died(known: LabRecord) -> None:
    """Set the status of a dead lab's run to `died`."""
    with suppress(InputError):
        if read_manifest(known.run_place)["status"] in UNFINISHED:
            update_manifest(known.run_place, status="died")


def as_numbered(topology: Topology, known: LabRecord) -> Topology:
    """The topology with the node numbers of the running lab."""
    return keep_numbers(topology, read_manifest(known.run_place)["numbers"])


def _start_new(up_request: UpRequest, choice: Choice) -> LabRecord:
    topology, emit = up_request.topology, up_request.emit
    refuse_external_nodes_without_containers(topology, choice.name, choice.reason)
    refuse_foreign_platforms(topology, choice.name)
    refuse_missing_congestion_control(topology)
    emit(Note(f"backend {choice.name}: {choice.reason}"))
    note_unenforced_limits(topology, choice, emit)
    note_board_nodes_here(topology, choice, emit)
    for mistake in find_likely_mistakes(topology):
        emit(Warned(mistake))
    warn_of_a_full_disk(topology, emit)
    run = new_run(topology.name)
    record = LabRecord(
        name=topology.name,
        run=run.run,
        run_folder=str(run.folder),
        backend=choice.name,
        source=str(up_request.sources.topology.resolve()),
    )
    try:
        up_request.place.folder.mkdir(parents=True)
        save_lab(up_request.place, record)  # first: `down` must find the run folder
        if up_request.deployment is not None:
            up_request.deployment.save(up_request.place)
        begin_run(topology, up_request.sources, run, choice)
        backend = up_request.backend(choice.name, run)
        _apply_and_wait(up_request, run, backend, plan_up(topology, Actual()))
    except NodeFailure:
        raise
    except BaseException:
        _undo_start(up_request, up_request.backend(choice.name, run), run)
        raise
    return record


def _undo_start(up_request: UpRequest, backend: Backend, run: RunPlace) -> None:
    """Remove all that a failed start has made. If that fails, keep the record, so that `down` can remove it."""
    try:
        backend.destroy()
    except TestbedError as error:
        up_request.emit(Incomplete(f"{error.message}; {error.hint}"))
        return
    remove_lab_folder(up_request.place)
    shutil.rmtree(run.folder, ignore_errors=True)


def _update_lab(up_request: UpRequest, known: LabRecord) -> None:
    """Make the missing parts of a running lab. Update the manifest afterwards, so that it only lists what exists.

    Only node numbers are written first: they never change. If single nodes fail, the others exist all the same, and
    the manifest lists them, as after a first `up`.
    """
    topology, run = up_request.topology, known.run_place
    backend = up_request.backend(known.backend, run)
    refuse_external_nodes_without_containers(topology, known.backend, "on which the lab is up")
    refuse_foreign_platforms(topology, known.backend)
    refuse_missing_congestion_control(topology)
    actual = backend.inspect()
    steps = plan_up(topology, actual)
    manifest = read_manifest(run)
    anew = frozenset(step.target for step in steps if step.kind is StepKind.SHAPE)
    note_changed_links(backend, topology, anew, up_request.emit)
    if repaired := repairs(steps, manifest):
        up_request.emit(Note(repaired))
        extend_manifest(run, warnings=[repaired])
    update_manifest(run, numbers={**manifest["numbers"], **numbers_of(topology)})
    try:
        _apply_and_wait(up_request, run, backend, steps)
    except NodeFailure:
        _record_topology(up_request, run, steps)
        update_manifest(run, status="starting")
        raise
    except BaseException:
        made = [node.name for node in topology.nodes if node.name not in actual.created]
        try:
            backend.remove(made, lambda _: None)
        except TestbedError as error:
            up_request.emit(Incomplete(f"{few(made)} could not be removed: {error.message}"))
        raise
    finally:
        with suppress(TestbedError):
            record_remade_links(known, backend, topology, anew)
    changed = _record_topology(up_request, run, steps)
    if not steps:
        what = "its scenario is now the file's" if changed else "nothing to do"
        up_request.emit(Note(f"lab {topology.name} is up already; {what}"))


def _record_topology(up_request: UpRequest, run: RunPlace, steps: tuple[Step, ...]) -> bool:
    """Write the request's topology to the manifest; return whether it differs from the previous one."""
    if from_json(read_manifest(run)["topology"]) == up_request.topology:
        return False
    up_request.sources.copy_to(run)
    update_manifest(
        run,
        topology=to_json(up_request.topology),
        tcp=asdict(tcp_of_lab(up_request.topology)),
        **up_request.sources.resolved(),
    )
    if steps:  # messages published before belong to other nodes: do not measure them
        update_manifest(run, measured_from_ns=time.time_ns())
    return True


def _apply_and_wait(
    up_request: UpRequest, run: RunPlace, backend: Backend, steps: tuple[Step, ...]
) -> None:
    topology, emit = up_request.topology, up_request.emit
    steps = tuple(step for step in steps if step.target not in up_request.left_out)
    failures = apply(steps, backend, topology, Journal(run.journal), emit)
    _record_emulator(run, backend)
    failed = {name for failure in failures for name in failure.nodes} | up_request.left_out
    if failed.isdisjoint(node.name for node in topology.nodes if node.kind in HUBS):
        try:
            with _calibration(up_request, run, backend, steps):
                wait_until_ready(up_request.place, topology, emit, without=failed)
        except NodeFailure as failure:
            failures.append(failure)
    if failures:
        raise NodeFailure.of(failures)
    manifest = read_manifest(run)
    if steps or manifest["status"] == "starting":
        update_manifest(
            run,
            status="up",
            details={**backend.details(), "python": platform.python_version()},
        )


def _record_emulator(run: RunPlace, backend: Backend) -> None:
    """Record the emulator before waiting for nodes: an incomplete lab has links, too. Keep the first reason."""
    known = read_manifest(run)["emulator"]
    if known is None or known["name"] != backend.emulator:
        chosen = {"name": backend.emulator, "reason": backend.emulator_reason}
        update_manifest(run, emulator=chosen)


def _calibration(
    up_request: UpRequest, run: RunPlace, backend: Backend, steps: tuple[Step, ...]
) -> AbstractContextManager[None]:
    """Measure new links and links of a failed `up`; all links if that was requested."""
    measured = read_manifest(run).get("calibration")
    new = any(step.kind is StepKind.SHAPE for step in steps)
    if up_request.thorough_s is None and measured and not new:
        return nullcontext()
    return calibrated(
        up_request.place,
        run,
        up_request.topology,
        backend.emulator,
        up_request.emit,
        up_request.thorough_s,
    )
