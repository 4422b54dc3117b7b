"""Replays a run: exactly its publications and faults, from its folder alone, on any backend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.backends.common.names import SIMULATED
from testbed.errors import InputError, NameTaken
from testbed.lab.down import bring_down
from testbed.lab.play import play
from testbed.lab.run_record import began_ns, publications_in
from testbed.lab.simulate import SERVICE_S, simulate
from testbed.lab.up import bring_up
from testbed.places import RunPlace
from testbed.progress import Emit
from testbed.recording.actions import actions_of, link_actions, recorded
from testbed.recording.difference import Difference, difference
from testbed.recording.publications import read_planned_publications
from testbed.recording.script import (
    Script,
    as_happened,
    compiled,
    lengthened,
    refuse_unknown_nodes,
    with_actions,
)
from testbed.records import lab_names, read_manifest, update_manifest
from testbed.scenario import Publication, without_downtimes
from testbed.topology import load_text
from testbed.topology.addresses import keep_numbers
from testbed.topology.model import CongestionControl, Topology, from_json
from testbed.topology.names import MAX_LAB_NAME, name_problem
from testbed.topology.parse.files import text_of
from testbed.topology.parse.overrides import parse_override

RECORD = "replay"  # of the manifest
WAITING = "scenario.settle"  # the only setting of the scenario that a replay may change


@dataclass(frozen=True, slots=True)
class Replay:
    """A script, the topology on which it is played, and their origin."""

    topology: Topology
    script: Script
    source: Path  # the topology file
    scenario: Path | None  # and that of the scenario, if it had one
    about: dict[str, Any]  # for the manifest
    service_s: float = SERVICE_S  # of simulated nodes
    tcp: CongestionControl | None = None  # of simulated nodes, where the topology names none
    origin: str | None = (
        None  # the file that was the first source: files that it names lie beside it
    )

    @property
    def recorded(self) -> dict[str, Any]:
        """The entries of the new run's manifest on the replay."""
        return {RECORD: self.about, **({"source": self.origin} if self.origin else {})}


def replay_of(
    run: RunPlace, overrides: Sequence[str] = (), *, planned: bool = False, name: str | None = None
) -> Replay:
    """The run's publications and faults as they happened, or as they were planned, on its own topology.

    With `overrides` (PATH=VALUE), read the topology from its file, with these values beside those of the run.
    """
    if name is not None and (problem := name_problem(name, MAX_LAB_NAME)):
        raise InputError(f"--name: {problem[0]}", problem[1])
    manifest = read_manifest(run)
    topology = _topology(run, manifest, overrides)
    topology = replace(topology, name=name or topology.name)
    script = _as_planned(run, manifest) if planned else _as_happened(run, manifest)
    refuse_unknown_nodes(script, topology)
    about = {"of": run.run, "as": "planned" if planned else "happened"}
    return Replay(
        topology,
        script,
        run.topology,
        run.scenario if run.scenario.exists() else None,
        about,
        manifest["details"].get("service_s", SERVICE_S),
        _tcp(manifest),
        manifest["source"],
    )


def play_again(replay: Replay, backend: str | None, emit: Emit) -> RunPlace:
    """Bring the lab up, play and take it down, or simulate it; return the new run's folder."""
    topology = replay.topology
    if backend == SIMULATED:
        topology = replace(topology, tcp=topology.tcp or replay.tcp)
        run = simulate(
            topology, replay.source, emit, replay.service_s, replay.scenario, replay.script
        )
        update_manifest(run, **replay.recorded)
        return run
    if topology.name in lab_names():
        raise NameTaken(
            f"a lab named {topology.name!r} is up already; `replay` starts a lab of its own",
            f"`testbed down {topology.name}`, or --name",
        )
    try:
        record = bring_up(topology, replay.source, backend, emit, scenario=replay.scenario)
        update_manifest(record.run_place, **replay.recorded)
        play(record, emit, script=replay.script)
    finally:
        if topology.name in lab_names():
            bring_down(topology.name, emit)
    return record.run_place


def replay_difference(replay: Replay, run: RunPlace, within_ns: int) -> Difference:
    """Compare the publications of the new run with the script, and record the difference in its manifest."""
    wanted = replay.script.publications
    if replay.script.awaits:  # only now it is known which nodes were down when
        manifest = read_manifest(run)
        start_ns = began_ns(run, manifest) or 0
        wanted = without_downtimes(wanted, actions_of(recorded(manifest), start_ns, as_due=True))
    found = difference(wanted, [row.publication for row in publications_in(run)], within_ns)
    counts = {
        name: len(value) if isinstance(value, list) else value
        for name, value in found.as_json().items()
    }
    update_manifest(run, **{RECORD: {**replay.about, "difference": counts}})
    return found


def _tcp(manifest: dict[str, Any]) -> CongestionControl | None:
    """The congestion control of a run's connections; None if it is not on record or not simulated.

    Earlier versions recorded only what the machine uses, and simulated BBR.
    """
    if "tcp" in manifest:
        name = manifest["tcp"]["name"]
    elif manifest["backend"]["name"] == SIMULATED:
        name = CongestionControl.BBR
    else:
        name = manifest.get("machine", {}).get("tcp_congestion_control")
    return CongestionControl(name) if name in tuple(CongestionControl) else None


def _topology(run: RunPlace, manifest: dict[str, Any], overrides: Sequence[str]) -> Topology:
    """The topology of the manifest; with overrides, that of the file, with the same numbers and seed."""
    known = from_json(manifest["topology"])
    if not overrides:
        return known
    for one in map(parse_override, overrides):
        if one.path.split(".")[0] == "scenario" and one.path != WAITING:
            raise InputError(
                f"--set {one.path}: what happens in a replay is on record",
                f"only {WAITING} can be set; `testbed run` plays another scenario",
            )
    before = {path: f"{path}={value}" for path, value in known.overrides}
    now = {parse_override(text).path: text for text in overrides}
    topology = load_text(
        text_of(run.topology),
        str(run.topology),
        name=known.name,
        folder=Path(manifest["source"]).parent,
        scenario=run.scenario if run.scenario.exists() else None,
        overrides=[*(before | now).values()],
    )
    scenario = replace(known.scenario, settle_s=topology.scenario.settle_s)
    numbered = keep_numbers(topology, manifest["numbers"])
    return replace(numbered, seed=known.seed, scenario=scenario)


def _as_happened(run: RunPlace, manifest: dict[str, Any]) -> Script:
    rows, topology = publications_in(run), from_json(manifest["topology"])
    start_ns = began_ns(run, manifest)
    if not rows and start_ns is None:
        raise InputError(
            f"nothing was published in run {run.run}", "`testbed play` or `testbed inject` publish"
        )
    if start_ns is None:
        start_ns = rows[0].t_ns - rows[0].at_ns
    actions = recorded(manifest)
    over = bool(manifest.get("play"))
    lasts_s = topology.scenario.lasts_s if over else _last_s(actions, start_ns)
    by_hand = link_actions(manifest.get("link_changes", []), actions, start_ns)
    return with_actions(as_happened(rows, actions, start_ns, lasts_s), by_hand)


def _last_s(actions: Sequence[Mapping[str, Any]], start_ns: int) -> float:
    """Time of the last action, for a lab whose scenario was interrupted, or that had none."""
    return float(max([0, *(each["t_ns"] - start_ns for each in actions)]) / 1e9)


def _as_planned(run: RunPlace, manifest: dict[str, Any]) -> Script:
    if not run.planned.exists():
        raise InputError(
            f"no scenario was played in run {run.run}", "leave --as-planned out, or run it again"
        )
    topology, play_of = from_json(manifest["topology"]), manifest.get("play")
    written = read_planned_publications(run.planned.read_text().splitlines())
    publications = tuple(
        sorted(written, key=lambda publication: publication.at_ns)
    )  # triggers added at the end
    if play_of is None:
        return lengthened(_interrupted(topology, publications, again=RECORD in manifest))
    actions = actions_of(recorded(manifest), play_of["start_ns"], as_due=True)
    timeline = without_downtimes(publications, actions)
    return lengthened(Script(timeline, actions, topology.scenario.lasts_s))


def _interrupted(topology: Topology, written: tuple[Publication, ...], *, again: bool) -> Script:
    """The script of an interrupted run. Triggers wait again and publish again, so leave out what they had published.

    `again`: the run was a replay, in which no trigger waits.
    """
    script = compiled(topology)
    if script.awaits and not again:
        return script
    return replace(script, publications=written, awaits=False)
