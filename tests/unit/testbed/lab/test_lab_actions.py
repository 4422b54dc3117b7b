"""The faults of a scenario, on the fake backend: performed when due, reported and recorded."""

import time
from dataclasses import replace

import pytest

from support.labs.fake_labs import LAB, SIREN, FakePlace, up
from testbed.errors import TestbedError
from testbed.lab.actions import Actions
from testbed.progress import Incomplete, Warned, ignore
from testbed.records import read_manifest
from testbed.scenario import Publication, TimedAction
from testbed.scenario.schedule import Schedule
from testbed.topology.model import ActionKind

SECOND = 1_000_000_000
SENSOR = LAB.node("sensor")


def timeline(*moments_s: float) -> tuple[Publication, ...]:
    return tuple(Publication(round(at * SECOND), "sensor", "alerts", 5, 100) for at in moments_s)


def began_ago(seconds: float) -> int:
    return time.time_ns() - round(seconds * SECOND)


def test_links_are_cut_and_healed_on_time_and_both_actions_are_recorded(file, place: FakePlace):
    record = up(LAB, file, place)
    timed_actions = (
        TimedAction(100 * SECOND, ActionKind.CUT, ("siren",)),
        TimedAction(300 * SECOND, ActionKind.RESTORE, ("siren",)),
    )
    actions = Actions(record, LAB, (), Schedule(LAB, timed_actions), ignore, place)
    actions.perform_due(began_ago(50))
    assert not place.backend.links()["siren"].up.cut
    actions.perform_due(began_ago(150))
    link = place.backend.links()["siren"]
    assert link.up.cut
    assert link.down.cut
    assert 0 < actions.wait_s(150) <= 150
    actions.perform_due(began_ago(350))
    assert not place.backend.links()["siren"].up.cut
    manifest = read_manifest(record.run_place)
    recorded = [(each["action"], each["targets"]) for each in manifest["actions"]]
    assert recorded == [("cut", ["siren"]), ("restore", ["siren"])]
    assert [each["due_ns"] <= each["t_ns"] for each in manifest["actions"]] == [True, True]
    assert [change["action"] for change in manifest["link_changes"]] == ["cut", "reset"]


def test_a_node_is_started_again_alone_and_goes_on_with_what_it_is_still_to_publish(
    file, place: FakePlace
):
    record = up(LAB, file, place)
    place.backend.stop([SENSOR, SIREN], ignore)
    every = timeline(0.5, 2.5, 900.0)
    action = TimedAction(2 * SECOND, ActionKind.START, ("sensor",))
    actions = Actions(record, LAB, every, Schedule(LAB, (action,)), ignore, place)
    actions.perform_due(began_ago(4))
    actions.end(began_ago(4))
    actual = place.backend.inspect()
    assert "sensor" in actual.started
    assert "siren" not in actual.created
    assert actions.skipped == {every[1]}  # due while it was being started
    assert read_manifest(record.run_place)["actions"][0]["targets"] == ["sensor"]


def test_a_node_to_be_started_is_made_before_and_others_do_not_wait_for_it(file, place: FakePlace):
    record = up(LAB, file, place)
    place.backend.stop([SENSOR], ignore)
    place.backend.calls.clear()
    timed_actions = (
        TimedAction(1 * SECOND, ActionKind.START, ("sensor",)),
        TimedAction(1 * SECOND + 20_000_000, ActionKind.CUT, ("siren",)),
        TimedAction(1 * SECOND + 20_000_000, ActionKind.CUT, ("sensor",)),
    )
    actions = Actions(record, LAB, (), Schedule(LAB, timed_actions), ignore, place)
    start_ns = began_ago(0.8)
    actions.perform_due(start_ns)
    actions.end(start_ns)
    assert [what for what, _ in place.backend.calls[:2]] == ["created", "started"]
    entries = read_manifest(record.run_place)["actions"]
    assert sorted((each["action"], *each["targets"]) for each in entries) == [
        ("cut", "sensor"),
        ("cut", "siren"),
        ("start", "sensor"),
    ]
    assert all(each["t_ns"] >= each["due_ns"] for each in entries)


def test_a_node_that_crashes_and_is_started_at_once_is_started_after_its_crash(
    file, place: FakePlace, monkeypatch
):
    record = up(LAB, file, place)
    monkeypatch.setattr(place.backend, "signal", lambda *_: place.backend.stop([SENSOR], ignore))
    timed_actions = (
        TimedAction(1 * SECOND, ActionKind.CRASH, ("sensor",)),
        TimedAction(1 * SECOND + 1, ActionKind.START, ("sensor",)),
        TimedAction(1 * SECOND + 2, ActionKind.CRASH, ("sensor",)),
    )
    actions = Actions(record, LAB, (), Schedule(LAB, timed_actions), ignore, place)
    actions.perform_due(began_ago(1))
    actions.end(began_ago(1))
    recorded = [each["action"] for each in read_manifest(record.run_place)["actions"]]
    assert recorded == ["crash", "start", "crash"]
    assert "sensor" not in place.backend.inspect().created


def test_the_amount_of_background_traffic_is_recorded(file, place: FakePlace):
    record = up(LAB, file, place)
    details = {"number": 1, "to": "siren", "rate_bps": 1e6, "size": 100}
    timed_actions = (
        TimedAction(0, ActionKind.LOAD, ("sensor",), details),
        TimedAction(1, ActionKind.UNLOAD, ("sensor",), {"number": 1}),
    )
    actions = Actions(record, LAB, (), Schedule(LAB, timed_actions), ignore, place)
    actions.perform_due(began_ago(1))
    _, ended = read_manifest(record.run_place)["actions"]
    assert ended["details"] == {"number": 1, "sent": 3, "unsent": 1}


def _keeper_gone(*_: object) -> None:
    raise TestbedError("the keeper is gone")


@pytest.mark.parametrize("kind", [ActionKind.CRASH, ActionKind.STOP])
def test_an_action_that_fails_makes_the_run_incomplete_and_is_recorded_with_its_reason(
    file, place: FakePlace, kind, monkeypatch: pytest.MonkeyPatch
):
    record = up(replace(LAB), file, place)
    monkeypatch.setattr(place.backend, "signal", _keeper_gone)
    seen = []
    schedule = Schedule(LAB, (TimedAction(0, kind, ("siren",)),))
    actions = Actions(record, LAB, (), schedule, seen.append, place)
    actions.perform_due(began_ago(1))
    (missing,) = seen
    assert isinstance(missing, Incomplete)
    assert "the keeper is gone" in missing.text
    (entry,) = read_manifest(record.run_place)["actions"]
    assert "the keeper is gone" in entry["details"]["failed"]


def test_a_node_that_is_down_until_the_end_is_started_when_the_scenario_is_over(
    file, place: FakePlace
):
    record = up(LAB, file, place)
    place.backend.stop([SIREN], ignore)
    late = TimedAction(5 * SECOND, ActionKind.START, ("siren",))  # on record after the end
    actions = Actions(record, LAB, (), Schedule(LAB, (late,)), ignore, place)
    actions.end(began_ago(1))
    assert "siren" in place.backend.inspect().started
    (entry,) = read_manifest(record.run_place)["actions"]
    assert (entry["action"], entry["targets"]) == ("start", ["siren"])


def test_a_node_that_does_not_start_makes_the_run_incomplete_and_its_publications_are_not_expected(
    file, place: FakePlace, monkeypatch
):
    record = up(LAB, file, place)
    place.backend.stop([SENSOR], ignore)
    monkeypatch.setattr(place.backend, "_failing", frozenset({"sensor"}))
    every = timeline(0.5, 9.0)
    seen = []
    schedule = Schedule(LAB, (TimedAction(1 * SECOND, ActionKind.START, ("sensor",)),))
    actions = Actions(record, LAB, every, schedule, seen.append, place)
    actions.perform_due(began_ago(2))
    actions.end(began_ago(2))
    assert actions.skipped == {every[1]}
    texts = [event.text for event in seen if isinstance(event, Incomplete)]
    assert any("could not create sensor" in text for text in texts)
    assert any("remaining publications of sensor" in text for text in texts)


def test_commands_with_unknown_exit_codes_make_the_run_incomplete(
    file, place: FakePlace, monkeypatch
):
    record = up(LAB, file, place)

    def gone() -> int | None:
        raise TestbedError("no answer from the keeper")

    monkeypatch.setattr(place.backend, "execute", lambda *_: gone)
    seen = []
    timed_actions = (
        TimedAction(0, ActionKind.PARTITION, (), {"number": 1, "sides": (("siren",), ("broker",))}),
        TimedAction(0, ActionKind.EXEC, ("siren",), {"command": ("true",)}),
    )
    actions = Actions(record, LAB, (), Schedule(LAB, timed_actions), seen.append, place)
    for _ in range(3):
        actions.perform_due(began_ago(1))
    assert [event.text for event in seen if isinstance(event, Incomplete)] == [
        "how commands inside nodes ended: no answer from the keeper"
    ]


class Fired(Schedule):
    """A schedule with one trigger that has fired, and one that never does."""

    def on_receptions(self, *_: object) -> tuple[Publication, ...]:
        return timeline(1.0)

    def give_up(self, *_: object, over: bool = False) -> list[str]:
        return ["did not fire: siren has received level 5"] if over else []


def test_a_trigger_that_never_fires_is_a_warning(file, place: FakePlace):
    record = up(LAB, file, place)
    seen = []
    actions = Actions(record, LAB, (), Fired(LAB, ()), seen.append, place)
    actions.end(began_ago(1))
    assert seen == [Warned("did not fire: siren has received level 5")]


def test_a_triggered_publication_that_fails_makes_the_run_incomplete(
    file, place: FakePlace, monkeypatch
):
    record = up(LAB, file, place)
    monkeypatch.setattr("testbed.lab.actions.hand_out", _keeper_gone)
    seen = []
    actions = Actions(record, LAB, (), Fired(LAB, ()), seen.append, place)
    actions._check_triggers(began_ago(1))
    assert seen == [Incomplete("a triggered publication: the keeper is gone")]
