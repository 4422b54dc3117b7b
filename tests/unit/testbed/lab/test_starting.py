"""Nodes are prepared beside the scenario and started in time: only events that concern them wait."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from support.labs.fake_labs import LAB, SIREN, FakePlace, up
from testbed.errors import InputError, TestbedError
from testbed.lab.journal import Journal
from testbed.lab.preparation import NodeStarts, SharedLock, Start, may_start, prepare_start
from testbed.progress import ignore
from testbed.recording.script import compiled
from testbed.records import LabRecord, locked
from testbed.scenario import TimedAction
from testbed.topology import load_text
from testbed.topology.model import ActionKind

ONE = TimedAction(0, ActionKind.START, ("sensor",))
OTHER = TimedAction(0, ActionKind.START, ("siren",))
WAIT_S = 60


def test_a_starting_node_is_waited_for_only_if_an_event_concerns_it():
    go = threading.Event()

    @contextmanager
    def prepare(action: TimedAction) -> Iterator[Start]:
        yield lambda: ["late"] if go.wait(WAIT_S) else []

    starts = NodeStarts(prepare)
    starts.begin(ONE, 0)
    starts.begin(OTHER, 0)
    assert starts.nodes == {"sensor", "siren"}
    assert starts.finished({"broker"}) == []
    go.set()
    (first,) = starts.finished({"sensor"})[:1]
    assert (first.action, first.warnings, first.more) == (ONE, ["late"], {})
    starts.finished(over=True)
    assert not starts.nodes


def test_nodes_are_prepared_in_parallel_and_started_on_time():
    both_ready = threading.Barrier(2)
    started: list[str] = []

    @contextmanager
    def prepare(action: TimedAction) -> Iterator[Start]:
        both_ready.wait(WAIT_S)
        assert not started
        yield lambda: started.extend(action.nodes) or []

    starts = NodeStarts(prepare)
    due_ns = time.time_ns() + 50_000_000
    starts.begin(ONE, due_ns)
    starts.begin(OTHER, due_ns)
    done = starts.finished(over=True)
    assert sorted(started) == ["sensor", "siren"]
    assert all(each.t_ns >= due_ns for each in done)


@pytest.mark.parametrize("early", [True, False])
def test_a_failed_start_is_recorded_at_its_time(early: bool):
    def fail() -> list[str]:
        raise TestbedError("no space")

    @contextmanager
    def prepare(action: TimedAction) -> Iterator[Start]:
        if early:
            fail()
        yield fail

    starts = NodeStarts(prepare)
    due_ns = time.time_ns() + 20_000_000
    starts.begin(ONE, due_ns)
    (done,) = starts.finished(over=True)
    assert done.more == {"failed": "no space"}
    assert done.t_ns >= due_ns


def prepared_start(record: LabRecord, place: FakePlace, *names: str) -> Start:
    return prepare_start(names, place.backend, LAB, Journal(record.run_place.journal))


def test_a_prepared_node_waits_at_its_gate_and_is_in_the_journal(file, place: FakePlace):
    record = up(LAB, file, place)
    place.backend.stop([SIREN], ignore)
    place.backend.calls.clear()
    start = prepared_start(record, place, "siren")
    assert place.backend.calls == [("created", ("siren",))]
    lines = record.run_place.journal.read_text().splitlines()[-2:]
    assert [json.loads(line)["step"] for line in lines] == ["create", "start"]
    assert start() == []
    assert place.backend.calls[1:] == [("started", ("siren",))]
    assert len(record.run_place.journal.read_text().splitlines()[-2:]) == 2


def test_a_link_that_went_with_its_node_comes_up_when_it_is_started(file, place: FakePlace):
    record = up(LAB, file, place)
    place.backend.remove(["siren"], ignore)
    place.backend.calls.clear()
    start = prepared_start(record, place, "siren")
    assert [what for what, _ in place.backend.calls] == ["created", "wired", "shaped"]
    start()
    assert [what for what, _ in place.backend.calls[3:]] == ["captured", "started"]


def test_a_node_that_is_still_stopping_is_ended_first(file, place: FakePlace):
    record = up(LAB, file, place)
    place.backend.calls.clear()
    prepared_start(record, place, "siren")()
    recorded = [
        ("left started created", ("siren",)),
        ("created", ("siren",)),
        ("started", ("siren",)),
    ]
    assert place.backend.calls == recorded


def test_a_node_that_cannot_be_made_is_not_started_and_the_others_are(
    file, place: FakePlace, monkeypatch: pytest.MonkeyPatch
):
    record = up(LAB, file, place)
    place.backend.stop([SIREN, LAB.node("sensor")], ignore)
    monkeypatch.setattr(place.backend, "_failing", frozenset({"sensor"}))
    (recorded,) = prepared_start(record, place, "siren", "sensor")()
    assert "could not create sensor" in recorded
    assert place.backend.inspect().started == {"broker", "siren"}


SCENARIO = """
name: valley
nodes:
  hub: {kind: broker}
  gauge: {kind: sensor}
  siren: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 60s
  events:
    - {at: 1s, crash: {nodes: gauge}}
"""
NEVER = "{when: {received: {nodes: siren, topic: alerts}}, stop: {nodes: siren}}"


@pytest.mark.parametrize(
    ("event", "may"),
    [
        ("{at: 2s, cut: {nodes: siren}}", False),
        ("{at: 2s, start: {nodes: gauge}}", True),
        ("{at: 2s, for: 1s, stop: {nodes: siren}}", True),
        ("{at: 2s, for: 50s, churn: {nodes: gauge, leave: 60/min, join: 60/min}}", True),
        (NEVER, False),
        (f"{NEVER}\n    - {{at: 2s, start: {{nodes: siren}}}}", True),
        (NEVER.replace("stop", "for: 1s, stop"), True),
        (NEVER.replace("stop: {nodes: siren}", "start: {nodes: gauge}"), True),
    ],
)
def test_whether_nodes_may_be_started_is_known_beforehand(event: str, may: bool):
    topology = load_text(f"{SCENARIO}    - {event}\n", "valley.yaml")
    assert may_start(compiled(topology), topology) is may


def test_a_recorded_start_means_that_nodes_may_be_started():
    topology = load_text(SCENARIO, "valley.yaml")
    script = replace(compiled(topology), actions=(ONE,))
    assert may_start(script, topology)


def test_parts_of_one_command_hold_a_lab_together_and_others_do_not(file, place: FakePlace):
    record = up(LAB, file, place)
    lock = SharedLock(record.name)
    with lock.shared():
        with lock.shared():
            pass
        with pytest.raises(InputError), locked(record.name):
            pass
    with locked(record.name):
        pass
