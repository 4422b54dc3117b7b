"""An `up` that fails, is interrupted or finds a lab half dead: the rest stays, and the next `up` completes it."""

from contextlib import contextmanager
from dataclasses import replace

import pytest

from support.labs.fake_labs import LAB, SIREN, another_siren, up
from testbed.backends.fake import FakeBackend
from testbed.backends.registry import Choice
from testbed.errors import NodeFailure, TestbedError
from testbed.lab import up as up_module
from testbed.lab.status import lab_status
from testbed.lab.up import bring_up
from testbed.progress import Incomplete, Note, StageStarted, ignore
from testbed.records import lab_names, read_manifest, update_manifest


def test_a_failing_node_is_named_the_rest_stays_and_up_again_completes(place, file):
    place.failing = frozenset({"siren"})
    with pytest.raises(NodeFailure, match="siren"):
        up(LAB, file, place)
    assert place.backend.inspect().created == {"broker", "sensor"}
    assert lab_status("valley").emulator == "none", "the emulator of the other links is recorded"
    place.backend._failing = frozenset()
    up(LAB, file, place)
    assert lab_status("valley").state == "up"


def test_a_failing_node_does_not_keep_the_others_from_starting(place, file):
    place.failing = frozenset({"siren"})
    with pytest.raises(NodeFailure) as caught:
        up(LAB, file, place)
    assert caught.value.nodes == ("siren",)
    actual = place.backend.inspect()
    for stage in ("created", "wired", "shaped", "captured", "started"):
        assert getattr(actual, stage) == {"broker", "sensor"}, stage


def test_a_node_that_fails_in_a_running_lab_is_known_with_the_others_and_keeps_its_number(
    place, file
):
    record = up(LAB, file, place)
    place.backend._failing = frozenset({"town"})
    with pytest.raises(NodeFailure, match="town"):
        up(replace(LAB, nodes=(*LAB.nodes, another_siren("town"))), file, place)
    status = lab_status("valley")
    assert {node.name: node.state for node in status.nodes}["town"] == "silent"
    assert read_manifest(record.run_place)["status"] == "starting"
    place.backend._failing = frozenset()
    up(replace(LAB, nodes=(*LAB.nodes, another_siren("village"))), file, place)
    manifest = read_manifest(record.run_place)
    assert (manifest["numbers"]["town"], manifest["numbers"]["village"]) == (4, 5)
    assert manifest["status"] == "up"
    assert manifest["warnings"] == [], "nothing had died"


def test_nodes_whose_broker_failed_are_not_waited_for(place, file, monkeypatch):
    monkeypatch.setattr(up_module, "wait_until_ready", lambda *_, **__: pytest.fail("it waited"))
    place.failing = frozenset({"broker"})
    with pytest.raises(NodeFailure, match="could not create broker"):
        up(LAB, file, place)


def test_links_that_a_failed_up_left_unmeasured_are_measured_by_the_next(place, file, monkeypatch):
    measured = []

    @contextmanager
    def calibrated(place, run, *_):
        yield
        measured.append(run)
        update_manifest(run, calibration=[{"ok": True}])

    def fail(*_, **__):
        raise NodeFailure("not connected", "", ["siren"])

    monkeypatch.setattr(up_module, "calibrated", calibrated)
    with monkeypatch.context() as patch:
        patch.setattr(up_module, "wait_until_ready", fail)
        with pytest.raises(NodeFailure):
            up(LAB, file, place)
    assert len(measured) == 0
    up(LAB, file, place)
    assert len(measured) == 1
    up(LAB, file, place)
    assert len(measured) == 1, "nothing is new"


def test_up_completes_a_lab_whose_first_up_was_killed_while_connecting(place, file):
    record = up(LAB, file, place)
    update_manifest(record.run_place, status="starting", emulator=None)
    up(LAB, file, place)
    manifest = read_manifest(record.run_place)
    assert manifest["status"] == "up"
    assert manifest["emulator"]["name"] == "none"


def test_an_interrupt_takes_back_everything_this_up_made(place, file, places):
    def interrupt(event):
        if event == StageStarted("shaping links", 3):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        up(LAB, file, place, interrupt)
    assert place.backend.inspect().created == frozenset()
    assert lab_names() == []
    assert list((places / "c").iterdir()) == []


def test_an_interrupt_of_a_second_up_leaves_the_first_ones_nodes(place, file):
    up(LAB, file, place)
    town = another_siren("town")

    def interrupt(event):
        if event == StageStarted("starting captures", 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        up(replace(LAB, nodes=(*LAB.nodes, town)), file, place, interrupt)
    assert place.backend.inspect().created == {"broker", "sensor", "siren"}


def test_what_a_failed_up_cannot_take_back_is_reported_as_incomplete(place, file, monkeypatch):
    def engine_gone(*_):
        raise TestbedError("no answer from the engine", "start it")

    seen = []

    def interrupt(event):
        seen.append(event)
        if isinstance(event, StageStarted) and event.stage == "starting captures":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FakeBackend, "destroy", engine_gone)
        with pytest.raises(KeyboardInterrupt):
            up(LAB, file, place, interrupt)
    assert seen.pop() == Incomplete("no answer from the engine; start it")
    up(LAB, file, place)
    more = replace(LAB, nodes=(*LAB.nodes, another_siren("town")))
    with monkeypatch.context() as patch:
        patch.setattr(FakeBackend, "remove", engine_gone)
        with pytest.raises(KeyboardInterrupt):
            up(more, file, place, interrupt)
    assert seen.pop() == Incomplete("town could not be removed: no answer from the engine")


def test_a_lab_that_died_is_cleared_and_started_anew_where_it_was(place, file):
    first = up(LAB, file, place)
    place.backend.destroy()
    place.backends.clear()
    asked = []

    def choose(backend):
        asked.append(backend)
        return Choice(backend or "the best", "a test")

    second = bring_up(LAB, file, None, ignore, place, choose)
    assert second.run != first.run
    assert asked == ["fake"], "the backend it had"
    assert read_manifest(first.run_place)["status"] == "died"


def test_repairs_by_up_are_reported_and_recorded(place, file):
    record = up(LAB, file, place)
    place.backend.stop([SIREN], ignore)
    seen = []
    up(LAB, file, place, seen.append)
    (warning,) = read_manifest(record.run_place)["warnings"]
    assert "had died and were repaired" in warning
    assert "(made anew: siren)" in warning
    assert Note(warning) in seen
