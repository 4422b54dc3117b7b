"""A run played again: exactly its publications and faults, from its folder alone, wherever one likes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.backends.choice import SIMULATED
from testbed.errors import InputError, NameTaken
from testbed.events import Emit
from testbed.lab.down import bring_down
from testbed.lab.happened import happened_in
from testbed.lab.play import play
from testbed.lab.simulate import SERVICE_S, simulate
from testbed.lab.up import bring_up
from testbed.places import RunPlace
from testbed.recording.actions import incidents_of, recorded
from testbed.recording.by_hand import link_incidents
from testbed.recording.difference import Difference, difference
from testbed.recording.publications import read_actions
from testbed.recording.script import (
    Script,
    as_happened,
    compiled,
    lengthened,
    refuse_strangers,
    with_incidents,
)
from testbed.records import lab_names, read_manifest, update_manifest
from testbed.scenario import without_the_fallen
from testbed.topology import load_text
from testbed.topology.files import text_of
from testbed.topology.model import Topology, from_json
from testbed.topology.numbering import keep_numbers
from testbed.topology.overrides import parse_override

RECORD = "replay"  # of the manifest
WAITING = "scenario.settle"  # all of the scenario that a replay may have otherwise


@dataclass(frozen=True, slots=True)
class Replay:
    """What is played, on which lab, and where it is from."""

    topology: Topology
    script: Script
    source: Path  # the topology file
    scenario: Path | None  # and that of the scenario, if it had one
    about: dict[str, Any]  # for the manifest
    service_s: float = SERVICE_S  # of simulated nodes


def replay_of(
    run: RunPlace, overrides: Sequence[str] = (), *, planned: bool = False, name: str | None = None
) -> Replay:
    """The run's publications and faults as they happened, or as they were planned, on its own topology.

    With `overrides` (PATH=VALUE) that of its file, with these values besides those that the run had already.
    """
    manifest = read_manifest(run)
    topology = _topology(run, manifest, overrides)
    topology = replace(topology, name=name or topology.name)
    script = _as_planned(run, manifest) if planned else _as_happened(run, manifest)
    refuse_strangers(script, topology)
    about = {"of": run.run, "as": "planned" if planned else "happened"}
    return Replay(
        topology,
        script,
        run.topology,
        run.scenario if run.scenario.exists() else None,
        about,
        manifest["details"].get("service_s", SERVICE_S),
    )


def play_again(replay: Replay, backend: str | None, emit: Emit) -> RunPlace:
    """All of it: up, play, down; or simulated. The new run's folder."""
    topology = replay.topology
    if backend == SIMULATED:
        run = simulate(
            topology, replay.source, emit, replay.service_s, replay.scenario, replay.script
        )
        update_manifest(run, **{RECORD: replay.about})
        return run
    if topology.name in lab_names():
        raise NameTaken(
            f"a lab named {topology.name!r} is up already; `replay` starts a lab of its own",
            f"`testbed down {topology.name}`, or --name",
        )
    try:
        record = bring_up(topology, replay.source, backend, emit, scenario=replay.scenario)
        update_manifest(record.run_place, **{RECORD: replay.about})
        play(record, emit, script=replay.script)
    finally:
        if topology.name in lab_names():
            bring_down(topology.name, emit)
    return record.run_place


def played_otherwise(replay: Replay, run: RunPlace, within_ns: int) -> Difference:
    """How what the new run published differs from what it was to publish; also on record there."""
    told = difference(replay.script.actions, [row.action for row in happened_in(run)], within_ns)
    counts = {
        name: len(value) if isinstance(value, list) else value
        for name, value in told.as_json().items()
    }
    update_manifest(run, **{RECORD: {**replay.about, "difference": counts}})
    return told


def _topology(run: RunPlace, manifest: dict[str, Any], overrides: Sequence[str]) -> Topology:
    """That of the manifest; or of the file, with further values, and numbers and seed as they were."""
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
    rows, topology = happened_in(run), from_json(manifest["topology"])
    play_of = manifest.get("play")
    if not rows and not play_of:
        raise InputError(
            f"nothing was published in run {run.run}", "`testbed play` or `testbed inject` publish"
        )
    start_ns = play_of["start_ns"] if play_of else rows[0].t_ns - rows[0].at_ns
    lasts_s = topology.scenario.lasts_s if play_of else 0.0
    actions = recorded(manifest)
    by_hand = link_incidents(manifest.get("link_changes", []), actions, start_ns)
    return with_incidents(as_happened(rows, actions, start_ns, lasts_s), by_hand)


def _as_planned(run: RunPlace, manifest: dict[str, Any]) -> Script:
    if not run.actions.exists():
        raise InputError(
            f"no scenario was played in run {run.run}", "leave --as-planned out, or run it again"
        )
    topology, play_of = from_json(manifest["topology"]), manifest.get("play")
    written = read_actions(run.actions.read_text().splitlines())
    actions = tuple(sorted(written, key=lambda action: action.at_ns))  # triggers added at the end
    if play_of is None:  # it was interrupted: what would have happened is known, but for triggers
        return lengthened(replace(compiled(topology), actions=actions))
    incidents = incidents_of(recorded(manifest), play_of["start_ns"], as_due=True)
    timeline = without_the_fallen(actions, incidents)
    return lengthened(Script(timeline, incidents, topology.scenario.lasts_s))
