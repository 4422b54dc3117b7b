"""Play a scenario: every publisher gets its part of the timeline and a common start time, and plays it by itself."""

import json
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from testbed.backends.registry import Maker, make_backend
from testbed.errors import InputError, TestbedError, few
from testbed.keeper.client import Keeper
from testbed.lab.actions import Actions, hand_out
from testbed.lab.external_nodes import stopped_external_nodes
from testbed.lab.journal import Journal
from testbed.lab.preparation import may_start
from testbed.lab.run_record import (
    clock_offsets,
    deliveries_in,
    injected_since,
    record_hazard,
    record_publications,
    record_under_way,
)
from testbed.lab.status import NodeStatus, how_to_repair, node_statuses, problems, refuse_dead_lab
from testbed.places import LabPlace, RunPlace
from testbed.progress import (
    Emit,
    Incomplete,
    Note,
    StageAdvanced,
    StageEnded,
    StageStarted,
    Warned,
    ignore,
)
from testbed.recording.deliveries import UnderWay, may_come, missing_text
from testbed.recording.lateness import Lateness
from testbed.recording.script import Script, compiled
from testbed.records import LabRecord, extend_manifest, locked, read_manifest, update_manifest
from testbed.scenario import (
    Downtimes,
    Publication,
    TimedAction,
    expected_deliveries,
    expected_with_downtimes,
    unreachable_at_the_end,
    without_downtimes,
)
from testbed.scenario.schedule import Schedule
from testbed.topology import load_text
from testbed.topology.addresses import keep_numbers
from testbed.topology.model import NodeKind, Topology, from_json, to_json

PLAYING = "playing the scenario"
SETTLING = "waiting for messages under way"
HEAD_START_S = 0.5  # for handing out the timeline ...
HEAD_START_PER_NODE_S = 0.005  # ... to so many nodes
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a scenario: how many messages were published, expected and received."""

    published: int
    expected: int
    received: int
    settled: bool
    lateness: Lateness | None = None  # of publications


def play(
    record: LabRecord,
    emit: Emit,
    *,
    overloaded: bool = False,
    script: Script | None = None,
    make: Maker = make_backend,
) -> Played:
    """Play the whole scenario, then wait at most `settle` seconds for messages that are still under way.

    `overloaded`: links get more than they can carry on purpose, so missing messages cause no warning.
    `script`: a script to play instead of the topology's own scenario.
    """
    with locked(record.name, "playing"):
        refuse_dead_lab(record)
        topology = from_json(read_manifest(record.run_place)["topology"])
        script = script or compiled(topology)
        schedule = script.schedule(topology)
        actions = Actions(record, topology, script.publications, schedule, emit, make)
        played = _play(record, topology, script, actions, emit, overloaded)
        _warn_of_failures(record, schedule, emit)
        return played


def _warn_of_failures(record: LabRecord, schedule: Schedule, emit: Emit) -> None:
    """Warn the user, and record in the manifest, that the measured lab was not complete."""
    manifest = read_manifest(record.run_place)
    place, topology = LabPlace.of(record.name), from_json(manifest["topology"])
    on_purpose = Downtimes(schedule.performed).down_at_the_end
    found = _silent(node_statuses(place, topology.ours))
    silent = [name for name in found if name not in on_purpose]
    sentences = [
        *([f"no answer from {few(silent)}"] if silent else []),
        *stopped_external_nodes(place, topology),
        *problems(record),
    ]
    texts = [f"while the scenario was played: {sentence}" for sentence in sentences]
    for text in texts:
        emit(Incomplete(text))
    if texts:
        extend_manifest(record.run_place, warnings=texts)


def _play(
    record: LabRecord,
    topology: Topology,
    script: Script,
    actions: Actions,
    emit: Emit,
    overloaded: bool,
) -> Played:
    run, place = record.run_place, LabPlace.of(record.name)
    with run.planned.open("w") as file:
        file.writelines(
            json.dumps(asdict(publication)) + "\n" for publication in script.publications
        )
    record_hazard(run, topology)

    before = _ask(record, topology)
    asked_ns = time.time_ns()
    if sum(status.playing for status in before.values()):
        raise InputError(
            f"lab {record.name} still plays an earlier, interrupted `play`",
            "wait until `testbed status` shows no more publications, or take the lab down",
        )
    if (keeper := Keeper.connect(place)) is not None:
        keeper.end_scenario()  # an earlier scenario may have been interrupted
        keeper.counters(restart=True)  # lateness while nodes started does not count
    if may_start(script, topology):
        actions.expect_starts()
    start_ns = _begin(place, script.publications, clock_offsets(run))
    Journal(run.journal).write(step="play", start_ns=start_ns)
    try:
        _perform_until_end(script.lasts_s, start_ns, actions, emit)
    except BaseException as error:
        actions.end(start_ns)
        how = "was interrupted" if isinstance(error, KeyboardInterrupt) else "broke off"
        extend_manifest(run, warnings=[f"the scenario {how} while it was played"])
        raise
    actions.end(start_ns)
    performed = tuple(actions.schedule.performed)
    timeline = tuple(
        publication
        for publication in without_downtimes(actions.timeline, performed)
        if publication not in actions.skipped
    )
    counts = _Counts(run, asked_ns, before, Downtimes(performed).affected_nodes)
    planned = expected_with_downtimes(topology, timeline, performed)

    def expect() -> Counter[str]:
        """Also messages that are injected by hand, until the last moment."""
        by_hand = injected_since(run, asked_ns, start_ns)
        return planned + expected_with_downtimes(topology, by_hand, performed)

    received, settled = _settle(place, topology, counts, expect, emit)
    update_manifest(
        run,
        status="played",
        play={
            "start_ns": start_ns,
            "end_ns": time.time_ns(),
            "settled": settled,
            "overloaded": overloaded,
        },
    )
    late = record_publications(run)
    by_hand = injected_since(run, asked_ns, start_ns)
    total = expected_deliveries(topology, (*timeline, *by_hand)).total()
    if received < total:  # perhaps only because receivers were down on purpose
        tell: Emit = ignore if overloaded else emit
        total, received = _explain_missing(
            record, topology, asked_ns, performed, (total, received), settled, tell
        )
    return Played(len(timeline) + len(by_hand), total, received, settled, late)


def _explain_missing(
    record: LabRecord,
    topology: Topology,
    since_ns: int,
    performed: Sequence[TimedAction],
    counted: tuple[int, int],
    settled: bool,
    emit: Emit,
) -> tuple[int, int]:
    """Say which deliveries are missing; return how many were expected and made, as the report counts them.

    `counted`: the same by the timeline and the nodes' counts, if their logs are not here. `settled`: all that could
    come has come.
    """
    expected, received = counted
    found = deliveries_in(record.run_place, topology, since_ns)
    say = Note if settled else Warned
    if found is None:
        emit(say(f"{expected - received} of {expected} deliveries are missing"))
        return counted
    if (never := expected - found.expected) > 0 and not settled:
        emit(
            Warned(
                f"{never} more deliveries were expected, of messages that were never published; "
                f"`testbed events {record.name}` shows what the sensors did"
            )
        )
    gone = unreachable_at_the_end(performed)
    coming = may_come(found, _under_way(LabPlace.of(record.name), topology, gone), gone)
    record_under_way(record.run_place, coming)
    if text := missing_text(found, coming, topology.scenario.settle_s):
        emit(say(text))
    return found.expected, found.received


def _under_way(place: LabPlace, topology: Topology, without: Collection[str]) -> UnderWay:
    """What all other nodes still have to send."""
    asked = [node for node in topology.ours if node.name not in without]
    statuses = node_statuses(place, asked).values()
    return UnderWay(
        sum(status.queued for status in statuses),
        max((status.under_way for status in statuses), default=0),
    )


def _ask(record: LabRecord, topology: Topology) -> dict[str, NodeStatus]:
    answers = node_statuses(LabPlace.of(record.name), topology.ours)
    if silent := _silent(answers):
        raise TestbedError(f"no answer from {few(silent)}", how_to_repair(record))
    return answers


def _silent(statuses: dict[str, NodeStatus]) -> list[str]:
    return [name for name, status in statuses.items() if status.state == "silent"]


def _begin(place: LabPlace, timeline: tuple[Publication, ...], ahead: Mapping[str, int]) -> int:
    """Hand out the timeline; return the start time of the scenario."""
    publishers = len({publication.node for publication in timeline})
    head_start_s = HEAD_START_S + HEAD_START_PER_NODE_S * publishers
    start_ns = time.time_ns() + round(head_start_s * 1e9)
    hand_out(place, timeline, start_ns, ahead)
    return start_ns


def _perform_until_end(duration_s: float, start_ns: int, actions: Actions, emit: Emit) -> None:
    emit(StageStarted(PLAYING, math.ceil(duration_s)))
    shown = 0
    while (elapsed_s := (time.time_ns() - start_ns) / 1e9) < duration_s:
        due = max(0, int(elapsed_s))
        if due > shown:
            emit(StageAdvanced(PLAYING, due - shown, "seconds"))
            shown = due
        actions.perform_due(start_ns)
        pause_s = min(POLL_S, duration_s - elapsed_s, actions.wait_s(elapsed_s))
        time.sleep(max(0.0, pause_s))
    emit(StageEnded(PLAYING))


def _settle(
    place: LabPlace,
    topology: Topology,
    counts: "_Counts",
    expect: Callable[[], Counter[str]],
    emit: Emit,
) -> tuple[int, bool]:
    """Wait until every live receiver has its messages; return how many arrived, and whether all did."""
    emit(StageStarted(SETTLING, expect().total()))
    receivers = topology.of_kind(NodeKind.SUBSCRIBER)
    deadline = time.monotonic() + topology.scenario.settle_s
    had: Counter[str] = Counter()
    shown = 0
    while True:
        expected = expect()
        statuses = node_statuses(place, receivers)
        silent = _silent(statuses)
        for name in statuses.keys() - set(silent):
            had[name] = max(had[name], min(expected[name], counts.received(statuses[name])))
        if receivers and len(silent) == len(receivers):
            raise TestbedError(
                f"{few(silent)} fell silent while the scenario was played",
                f"`testbed status {place.name}` shows what is left of the lab",
            )
        arrived = had.total()
        emit(StageAdvanced(SETTLING, max(0, arrived - shown)))
        shown = max(arrived, shown)
        awaited = sum(expected[name] - had[name] for name in expected if name not in silent)
        if not awaited or time.monotonic() > deadline:
            emit(StageEnded(SETTLING))
            return arrived, arrived >= expected.total()
        time.sleep(POLL_S)


class _Counts:
    """Messages that a receiver got in this scenario. A restarted node counts from 0 again, so its log is read."""

    def __init__(
        self, run: RunPlace, since_ns: int, before: dict[str, NodeStatus], restarted: frozenset[str]
    ) -> None:
        self._run = run
        self._since_ns = since_ns
        self._before = before
        self._restarted = restarted

    def received(self, status: NodeStatus) -> int:
        """The number of messages until now."""
        if status.name not in self._restarted:
            return status.received - self._before[status.name].received
        if not self._run.log(status.name).exists():
            return 0
        with self._run.log(status.name).open() as lines:
            events = (json.loads(line) for line in lines if '"receive"' in line)
            return sum(
                event["event"] == "receive" and event["published_ns"] >= self._since_ns
                for event in events
            )


# Another scenario, or another speed, for a lab that is up.


PATIENCE_S = 5.0  # for another command that changes the lab at the same moment


def replace_scenario(record: LabRecord, file: Path) -> None:
    """Replace the scenario that `play` plays; refuse one that does not fit the lab as it is."""
    with locked(record.name, patience_s=PATIENCE_S):
        run = record.run_place
        manifest = read_manifest(run)
        lab = from_json(manifest["topology"])
        asked = keep_numbers(_read_again(record, file, lab), manifest["numbers"])
        _refuse_other_nodes(record, file, lab, asked)
        topology = replace(lab, scenario=asked.scenario, profiles=asked.profiles)
        shutil.copyfile(file, run.scenario)
        update_manifest(run, topology=to_json(topology), scenario_source=str(file.resolve()))


def _read_again(record: LabRecord, scenario: Path, lab: Topology) -> Topology:
    """The topology file as it was when the lab was made, with this scenario; drop overrides of the old scenario."""
    source = Path(record.source)
    text = record.run_place.topology.read_text(encoding="utf-8-sig")
    settings = [f"{path}={value}" for path, value in lab.overrides if not _of_scenario(path)]
    return load_text(
        text,
        str(source),
        name=record.name,
        folder=source.parent,
        scenario=scenario,
        overrides=settings,
    )


def _of_scenario(path: str) -> bool:
    return path == "scenario" or path.startswith("scenario.")


def _refuse_other_nodes(record: LabRecord, file: Path, lab: Topology, asked: Topology) -> None:
    """Refuse a scenario that changes nodes: interests may follow from it, and subscribers have already subscribed."""
    now = {node.name: node for node in lab.nodes}
    wanted = {node.name: node for node in asked.nodes}
    others = [name for name in {**now, **wanted} if now.get(name) != wanted.get(name)]
    if others:
        raise InputError(
            f"with this scenario {few(others)} would not be as the lab has made them",
            f"`testbed up {record.source} --scenario {file}` brings the lab in line with it",
        )


def set_speed(record: LabRecord, speed: float) -> None:
    """Set how many times as fast as written `play` plays the scenario."""
    with locked(record.name, patience_s=PATIENCE_S):
        topology = from_json(read_manifest(record.run_place)["topology"])
        if not topology.scenario.duration_s:
            raise InputError(f"lab {record.name} has no scenario to play faster", "add --scenario")
        paced = replace(topology, scenario=replace(topology.scenario, speed=speed))
        update_manifest(record.run_place, topology=to_json(paced))
