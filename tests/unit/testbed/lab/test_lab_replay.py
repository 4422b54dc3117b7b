"""A run is played again from its folder alone: the same publications at the same times, also with other methods."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from testbed.cli.commands import events as commands_events
from testbed.errors import InputError
from testbed.lab.journal import Journal
from testbed.lab.replay import play_again, replay_difference, replay_of
from testbed.lab.run_record import publications_in, record_publications
from testbed.lab.simulate import simulate
from testbed.places import RunPlace
from testbed.progress import ignore
from testbed.records import read_manifest, update_manifest
from testbed.topology import TopologyErrors, load
from testbed.topology.model import from_json

ROOT = Path(__file__).parents[4]
VALLEY = """
name: valley
seed: 7
groups:
  sensors: {kind: sensor, count: 3, link: mvno-128k}
nodes:
  broker: {kind: broker, link: lan}
  siren: {kind: subscriber, link: 3g-384k, topics: [alerts]}
scenario:
  duration: 3s
  events:
    - {at: 0s, publish: {from: "sensors[*]", topic: alerts, priority: 2, size: 300B, period: 500ms, spread: 500ms}}
    - {at: 1s, crash: {nodes: "sensors[0]"}}
    - {at: 2s, start: {nodes: "sensors[0]"}}
"""
TRACES = ("links.parquet", "messages.parquet", "link_utilization.parquet")


@pytest.fixture
def run(places: Path) -> RunPlace:
    """A simulated run whose file is gone."""
    source = places / "valley.yaml"
    source.write_text(VALLEY)
    made = simulate(load(source), source, ignore)
    source.unlink()
    return made


def test_a_simulated_run_played_again_is_the_same_byte_by_byte(run):
    what = replay_of(run)
    again = play_again(what, "simulated", ignore)
    assert replay_difference(what, again, within_ns=0).empty
    for name in TRACES:
        assert (again.trace / name).read_bytes() == (run.trace / name).read_bytes()
    recorded = read_manifest(again)["replay"]
    assert recorded["of"] == run.run
    assert recorded["as"] == "happened"
    assert recorded["difference"]["empty"] is True


def test_as_planned_and_as_happened_are_the_same_where_nothing_is_late(run):
    planned, real = replay_of(run, planned=True).script, replay_of(run).script
    assert planned.publications == real.publications
    assert planned.actions == real.actions


def test_effects_of_triggers_are_replayed_and_the_triggers_do_not_fire_again(places):
    source = places / "valley.yaml"
    waiting = (
        "    - {when: {received: {nodes: siren}}, "
        "publish: {from: sensors-1, topic: alerts, priority: 5, size: 100B, count: 2, period: 100ms}}\n"
        "    - {when: {received: {nodes: siren}}, cut: {nodes: sensors-2}}\n"
    )
    source.write_text(VALLEY + waiting)
    run = simulate(load(source), source, ignore)
    assert "cut" in [each["action"] for each in read_manifest(run)["actions"]]
    for planned in (False, True):
        what = replay_of(run, planned=planned)
        assert sum(publication.priority == 5 for publication in what.script.publications) == 2
        again = play_again(what, "simulated", ignore)
        assert replay_difference(what, again, within_ns=0).empty
        for name in TRACES:
            assert (again.trace / name).read_bytes() == (run.trace / name).read_bytes()


def test_a_replay_can_be_replayed(run):
    second = play_again(replay_of(run), "simulated", ignore)
    what = replay_of(second)
    third = play_again(what, "simulated", ignore)
    assert replay_difference(what, third, within_ns=0).empty
    assert [row.publication for row in publications_in(third)] == [
        row.publication for row in publications_in(run)
    ]


def test_a_replay_of_a_replay_looks_for_files_beside_the_first_source(run):
    second = play_again(replay_of(run), "simulated", ignore)
    assert read_manifest(second)["source"] == read_manifest(run)["source"]


def test_set_holds_for_the_replay_and_leaves_the_rest_as_it_was(run):
    known = from_json(read_manifest(run)["topology"])
    update_manifest(run, topology={**read_manifest(run)["topology"], "seed": 99})
    what = replay_of(run, ["delivery.method=preemptive", "scenario.settle=3s"])
    assert what.topology.delivery.method == "preemptive"
    assert what.topology.seed == 99
    assert what.topology.scenario == replace(known.scenario, settle_s=3.0)
    again = play_again(what, "simulated", ignore)
    assert replay_difference(what, again, within_ns=0).empty
    further = replay_of(again, ["links.emulator=relay"])
    assert further.topology.delivery.method == "preemptive"


def test_another_scenario_and_a_lab_without_the_publishers_are_refused(run):
    with pytest.raises(InputError, match="what happens in a replay is on record") as caught:
        replay_of(run, ["scenario.duration=1s"])
    assert "scenario.settle" in caught.value.hint
    with pytest.raises(InputError, match="needs sensors-2"):
        replay_of(run, ["groups.sensors.count=2"])


def test_messages_injected_after_the_end_are_replayed_too(run):
    log = run.log("sensors-1")
    lines = log.read_text().splitlines()
    last = next(json.loads(line) for line in reversed(lines) if '"publish"' in line)
    start_ns = read_manifest(run)["play"]["start_ns"]
    late = {**last, "t": start_ns + 5_000_000_000, "id": "00000000000000ff"}
    log.write_text("\n".join([*lines, json.dumps(late)]) + "\n")
    run.published.unlink()
    what = replay_of(run)
    assert what.script.lasts_s > 5
    again = play_again(what, "simulated", ignore)
    assert publications_in(again)[-1].at_ns == 5_000_000_000
    assert replay_difference(what, again, within_ns=0).empty


def test_a_difference_is_found_and_reported(run):
    what = replay_of(run)
    again = play_again(what, "simulated", ignore)
    rows = again.published.read_text().splitlines()
    again.published.write_text("\n".join(rows[1:]) + "\n")
    recorded = replay_difference(what, again, within_ns=0)
    assert recorded.missing == (what.script.publications[0],)
    assert read_manifest(again)["replay"]["difference"]["missing"] == 1


def test_a_run_in_which_nothing_happened_cannot_be_replayed(run):
    update_manifest(run, play=None)
    shutil.rmtree(run.logs)
    run.published.write_text("")
    with pytest.raises(InputError, match="nothing was published"):
        replay_of(run)
    run.planned.unlink()
    with pytest.raises(InputError, match="no scenario was played"):
        replay_of(run, planned=True)


def test_a_name_that_no_lab_can_have_is_refused(run):
    with pytest.raises(InputError, match="--name"):
        replay_of(run, name="../Valley")


def test_the_end_of_a_command_is_no_mark_that_is_played_again(run):
    manifest = read_manifest(run)
    entry = {**manifest["actions"][0], "action": "mark", "targets": []}
    marks = [{**entry, "details": {"name": "a"}}, {**entry, "details": {"exit_code": 0}}]
    update_manifest(run, actions=marks)
    assert [each.details for each in replay_of(run).script.actions] == [{"name": "a"}]


def test_to_start_a_node_takes_a_while_which_is_no_lateness(run):
    actions = read_manifest(run)["actions"]
    slow = [
        {**each, "t_ns": each["t_ns"] + 10**9} if each["action"] == "start" else each
        for each in actions
    ]
    update_manifest(run, actions=slow)
    record_publications(run)
    assert read_manifest(run)["play"]["action_lateness"]["max_s"] < 1


def test_lost_messages_are_reported_last_also_when_the_end_is_seen_by_itself(run, monkeypatch):
    """All lines were read in an earlier look than the one that found the lab down."""
    for log in run.logs.glob("siren*"):
        log.write_text("")
    update_manifest(run, play=None)
    looks = iter([True, False])
    monkeypatch.setattr(commands_events, "is_run_unfinished", lambda _: next(looks))
    recorded = [*commands_events.read_events(run, follow=True)]
    lost = [event["t"] for event in recorded if event["event"] == "lost"]
    assert lost
    assert min(lost) >= max(event["t"] for event in recorded if event["event"] != "lost")


def interrupted(run: RunPlace) -> int:
    """Make the run look as if its command was killed while it played. Return when the scenario began."""
    start_ns = read_manifest(run)["play"]["start_ns"]
    Journal(run.journal).write(step="play", start_ns=start_ns - 10**12)  # an earlier one
    Journal(run.journal).write(step="play", start_ns=start_ns)
    update_manifest(run, play=None)
    run.published.unlink()
    return int(start_ns)


def test_an_interrupted_run_counts_from_the_start_of_its_scenario_and_keeps_its_early_faults(
    places,
):
    source = places / "valley.yaml"
    late = VALLEY.replace("at: 0s, publish", "at: 1500ms, publish")
    source.write_text(late.replace("at: 1s, crash", "at: 100ms, crash"))
    run = simulate(load(source), source, ignore)
    whole = replay_of(run).script
    interrupted(run)
    script = replay_of(run).script
    assert script.publications == whole.publications
    assert script.actions == whole.actions
    assert script.actions[0].at_ns == 100_000_000


def test_triggers_of_an_interrupted_run_wait_again_and_publish_once(places):
    source = places / "valley.yaml"
    waiting = (
        "    - {when: {received: {nodes: siren}}, "
        "publish: {from: sensors-1, topic: alerts, priority: 5, size: 100B}}\n"
    )
    source.write_text(VALLEY + waiting)
    run = simulate(load(source), source, ignore)
    interrupted(run)
    what = replay_of(run, planned=True)
    again = play_again(what, "simulated", ignore)
    recorded = replay_difference(what, again, within_ns=0)
    assert not recorded.missing
    assert [publication.priority for publication in recorded.extra] == [5]
    interrupted(again)  # a replay in which no trigger waits
    assert not replay_of(again, planned=True).script.awaits


def test_two_processes_with_other_hashes_leave_the_same_bytes(places):
    """Sets and dicts of strings are in another order in each of them."""
    source = places / "valley.yaml"
    several = "\noverlay: {method: sg-tbps}\nnodes:\n  far: {kind: broker, link: 3g-384k}\n"
    source.write_text(VALLEY.replace("\nnodes:\n", several))
    program = (
        "import sys; from pathlib import Path; from testbed.lab.simulate import simulate\n"
        "from testbed.topology import load\n"
        "from testbed.progress import ignore\n"
        "print(simulate(load(Path(sys.argv[1])), Path(sys.argv[1]), ignore).folder)"
    )
    traces = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        argv = [sys.executable, "-c", program, str(source)]
        output = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
        folder = Path(output.strip()) / "trace"
        traces.append([(folder / name).read_bytes() for name in TRACES])
    assert traces[0] == traces[1]


NODES = ("sensors-0", "sensors-1", "sensors-2", "siren", "broker")
moments = st.integers(0, 28).map(lambda tenth: f"{tenth * 100}ms")
events = st.one_of(
    st.tuples(
        moments,
        st.sampled_from(["crash", "stop", "cut"]),
        st.sampled_from(NODES),
    ).map(lambda one: f"    - {{at: {one[0]}, for: 700ms, {one[1]}: {{nodes: {one[2]}}}}}"),
    st.tuples(moments, st.integers(1, 5), st.sampled_from(NODES[:3])).map(
        lambda one: (
            f"    - {{at: {one[0]}, publish: {{from: {one[2]}, topic: alerts, priority: {one[1]}, "
            "size: 500B, count: 3, period: 300ms}}"
        )
    ),
    st.tuples(moments, st.sampled_from(NODES[:4])).map(
        lambda one: f"    - {{at: {one[0]}, link: {{nodes: {one[1]}, rate: 64kbit/s, loss: 5%}}}}"
    ),
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(events=st.lists(events, max_size=6), seed=st.integers(0, 99))
def test_any_scenario_is_replayed_with_the_same_actions_and_trace(places, events, seed):
    source = places / "any.yaml"
    head, _, _ = VALLEY.partition("  events:")
    body = "\n".join(["  events:", *events]) if events else ""
    source.write_text(
        head.replace("seed: 7", f"seed: {seed}").replace(
            "  duration: 3s", "  duration: 3s\n  settle: 1s"
        )
        + body
        + "\n"
    )
    try:
        topology = load(source)
    except TopologyErrors:
        reject()
    run = simulate(topology, source, ignore)
    what = replay_of(run)
    if not what.script.publications and not what.script.actions:
        return
    again = play_again(what, "simulated", ignore)
    assert replay_difference(what, again, within_ns=0).empty
    for name in TRACES:
        assert (again.trace / name).read_bytes() == (run.trace / name).read_bytes()
    first, second = (
        [
            (each["action"], each["targets"], each["due_ns"])
            for each in read_manifest(one)["actions"]
        ]
        for one in (run, again)
    )
    assert first == second
