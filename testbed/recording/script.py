"""A script: publications and actions at their times, compiled from a topology or taken from a recorded run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from testbed.errors import InputError, few
from testbed.recording.actions import actions_of
from testbed.recording.publications import RecordedPublication
from testbed.scenario import (
    Publication,
    TimedAction,
    compile_actions,
    compile_timeline,
    without_downtimes,
)
from testbed.scenario.schedule import Schedule, waiting_events
from testbed.topology.model import NodeKind, Topology

TAIL_S = 0.1  # after the last publication, if it is later than the scenario's end


@dataclass(frozen=True, slots=True)
class Script:
    """Publications and actions in the order of time; `lasts_s`: the duration.

    `awaits`: events of the topology's scenario wait for triggers, and add more.
    """

    publications: tuple[Publication, ...]
    actions: tuple[TimedAction, ...]
    lasts_s: float
    awaits: bool = False

    def schedule(self, topology: Topology) -> Schedule:
        """The schedule of the actions, and of publications that triggers add."""
        return Schedule(topology, None if self.awaits else self.actions)


def compiled(topology: Topology) -> Script:
    """The topology's own scenario.

    Downtimes are known only if no event waits for a trigger, which may start or stop a sensor.
    """
    actions, timeline = compile_actions(topology), compile_timeline(topology)
    awaits = bool(waiting_events(topology))
    if not awaits:
        timeline = without_downtimes(timeline, actions)
    return Script(timeline, actions, topology.scenario.lasts_s, awaits)


def as_happened(
    rows: Sequence[RecordedPublication],
    entries: Iterable[Mapping[str, Any]],
    start_ns: int,
    lasts_s: float,
) -> Script:
    """Publications and actions (entries of a manifest) at their recorded times."""
    actions = actions_of(entries, start_ns)
    return lengthened(Script(tuple(row.publication for row in rows), actions, lasts_s))


def with_actions(script: Script, more: Iterable[TimedAction]) -> Script:
    """Add these actions, in the order of time."""
    both = sorted([*script.actions, *more], key=lambda one: one.at_ns)
    return replace(script, actions=tuple(both))


def lengthened(script: Script) -> Script:
    """Extend the script to its last publication, which may have been injected after the scenario's end."""
    last_s = max((publication.at_ns for publication in script.publications), default=0) / 1e9
    lasts_s = script.lasts_s if last_s < script.lasts_s else last_s + TAIL_S
    return replace(script, lasts_s=lasts_s)


def refuse_unknown_nodes(script: Script, topology: Topology) -> None:
    """InputError if a publisher or a node of an action is not in the topology."""
    sensors = {node.name for node in topology.of_kind(NodeKind.SENSOR)}
    nodes = {node.name for node in topology.nodes}
    publishers = dict.fromkeys(publication.node for publication in script.publications)
    affected = dict.fromkeys(name for each in script.actions for name in each.nodes)
    missing = [name for name in publishers if name not in sensors]
    missing += [name for name in affected if name not in nodes and name not in missing]
    if missing:
        raise InputError(
            f"the script needs {few(missing)}, but the lab has no such sensors or nodes",
            "leave out the --set that takes them away",
        )
