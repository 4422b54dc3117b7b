"""Simulates a whole scenario in virtual time: no lab is up, but the run folder is like any other."""

import json
import math
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.backends.common.names import SIMULATED
from testbed.backends.registry import Choice
from testbed.errors import MissingCapability, few
from testbed.lab.run_record import (
    deliveries_in,
    record_hazard,
    record_publications,
    record_under_way,
)
from testbed.lab.start.disk import warn_of_a_full_disk
from testbed.lab.start.provenance import TcpChoice, tcp_of_simulation
from testbed.lab.start.run_folder import Sources, begin_run
from testbed.places import RunPlace
from testbed.progress import (
    Emit,
    Incomplete,
    Note,
    StageAdvanced,
    StageEnded,
    StageStarted,
    Warned,
)
from testbed.recording.actions import FAILED
from testbed.recording.deliveries import may_come, missing_text
from testbed.recording.script import Script, compiled
from testbed.records import new_run, update_manifest, writing
from testbed.scenario import expected_deliveries
from testbed.topology import find_likely_mistakes
from testbed.topology.model import ActionKind, CongestionControl, Emulator, NodeKind, Topology

if TYPE_CHECKING:
    from testbed.backends.simulated.play import PlayResult

STAGE = "simulating"
SHOWN_AFTER_S = 2.0  # a shorter simulation shows no progress bar
# Processor time of a node for a message; measured, docs/explanation/simulation.md
SERVICE_S = 0.001


def simulate(
    topology: Topology,
    source: Path,
    emit: Emit,
    service_s: float = SERVICE_S,
    scenario: Path | None = None,
    script: Script | None = None,
) -> RunPlace:
    """Play the topology's scenario; return the run's folder, which has a trace instead of captures.

    `scenario`: the scenario's own file, if it has one; `script`: a script to play instead.
    """
    _refuse_external_nodes(topology)
    _refuse_commands(topology)
    _note_differences(topology, emit)
    for mistake in find_likely_mistakes(topology):
        emit(Warned(mistake))
    warn_of_a_full_disk(topology, emit, simulated=True)
    tcp = tcp_of_simulation(topology)
    # In the run's manifest, so that the run can be repeated on another machine.
    topology = replace(topology, tcp=CongestionControl(tcp.name))
    run = new_run(topology.name)
    try:
        played = script or compiled(topology)
        _simulate(topology, Sources(source, scenario), run, emit, service_s, played, tcp)
    except BaseException:
        shutil.rmtree(run.folder, ignore_errors=True)
        raise
    return run


def _refuse_external_nodes(topology: Topology) -> None:
    if externals := [node.name for node in topology.of_kind(NodeKind.EXTERNAL)]:
        raise MissingCapability(
            f"{few(externals)}: external nodes are programs in containers, which cannot be simulated",
            "use --backend docker, or leave them out",
        )


def _refuse_commands(topology: Topology) -> None:
    if any(each.kind is ActionKind.EXEC for each in topology.scenario.actions):
        raise MissingCapability(
            "the scenario runs commands inside nodes (`exec`), and simulated nodes have no inside",
            "use --backend netns or docker, or leave the event out",
        )


def _note_differences(topology: Topology, emit: Emit) -> None:
    if any(node.platform or node.board for node in topology.nodes):
        emit(Note("platform and class are recorded only: all simulated nodes are equally fast"))
    if topology.emulator is Emulator.TBF:
        emit(
            Note("simulated links store no credit, as tbf does: a lone packet takes its full time")
        )


def _simulate(
    topology: Topology,
    sources: Sources,
    run: RunPlace,
    emit: Emit,
    service_s: float,
    script: Script,
    tcp: TcpChoice,
) -> None:
    begin_run(topology, sources, run, Choice(SIMULATED, "asked for"), tcp)
    with writing(run):
        _compute(topology, run, emit, service_s, script)


def _compute(
    topology: Topology, run: RunPlace, emit: Emit, service_s: float, script: Script
) -> None:
    # Imported here: Parquet is slow to load, and most commands do not need it.
    from testbed.backends.simulated.lab import SimulatedLab
    from testbed.backends.simulated.loop import SECOND
    from testbed.backends.simulated.node import EPOCH_NS
    from testbed.backends.simulated.play import play
    from testbed.backends.simulated.trace import write_trace

    run.pcaps.rmdir()
    began = time.monotonic()
    lab = SimulatedLab(topology, run, round(service_s * SECOND))
    bar = Bar(math.ceil(script.lasts_s), emit)
    played = play(lab, bar.on_virtual_seconds, script)
    bar.end()
    counts = write_trace(lab, run.trace)
    for name, node in lab.nodes.items():
        run.log(name).write_text("".join(f"{line}\n" for line in node.log.lines))
    with run.planned.open("w") as file:
        file.writelines(json.dumps(asdict(publication)) + "\n" for publication in played.timeline)
    record_hazard(run, topology)
    update_manifest(
        run,
        status="down",
        emulator={"name": SIMULATED, "reason": "all time is virtual"},
        capture=counts,
        play={
            "start_ns": EPOCH_NS + played.start,
            "end_ns": EPOCH_NS + played.end,
            "settled": played.settled,
            "overloaded": False,
        },
        details={
            "events": lab.loop.happened,
            "service_s": service_s,
            "simulated_in_s": time.monotonic() - began,
            "python": platform.python_version(),
        },
        actions=[*played.actions],
        machine={},
    )
    record_publications(run)
    for sentence in played.missed:
        emit(Warned(sentence))
    for each in played.actions:
        if reason := each["details"].get(FAILED):
            emit(Incomplete(f"{each['action']} of {few(each['targets'])}: {reason}"))
    if played.received < expected_deliveries(topology, played.timeline).total():
        _explain_missing(run, topology, played, emit)


def _explain_missing(run: RunPlace, topology: Topology, played: "PlayResult", emit: Emit) -> None:
    """Say which deliveries are missing, as the report counts them."""
    found = deliveries_in(run, topology, since_ns=0)
    if found is not None and found.missing:
        coming = may_come(found, played.under_way, played.gone)
        record_under_way(run, coming)
        text = missing_text(found, coming, topology.scenario.settle_s)
        emit(Note(text) if played.settled else Warned(text))


class Bar:
    """The progress bar of a simulation that takes long."""

    def __init__(
        self, total_s: int, emit: Emit, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._total_s, self._emit, self._clock = total_s, emit, clock
        self._began = clock()
        self._shown: int | None = None

    def on_virtual_seconds(self, over_s: float) -> None:
        """Show that so many seconds of the scenario are over."""
        if self._shown is None:
            if self._clock() - self._began < SHOWN_AFTER_S:
                return
            self._shown = 0
            self._emit(StageStarted(STAGE, self._total_s))
        self._emit(StageAdvanced(STAGE, int(over_s) - self._shown, "virtual seconds"))
        self._shown = int(over_s)

    def end(self) -> None:
        """End the bar."""
        if self._shown is not None:
            self._emit(StageEnded(STAGE))
