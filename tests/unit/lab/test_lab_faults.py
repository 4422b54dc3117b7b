"""What fails on purpose while a scenario is played, on the fake backend: done when due, told and put on record."""

import time
from dataclasses import replace

import pytest

from fake_labs import LAB, SIREN, FakePlace, up
from testbed.events import Warned, ignore
from testbed.lab.faults import Faults
from testbed.records import read_manifest
from testbed.scenario import Action, Incident
from testbed.topology.model import FaultKind

SECOND = 1_000_000_000
SENSOR = LAB.node("sensor")


def timeline(*moments_s: float) -> tuple[Action, ...]:
    return tuple(Action(round(at * SECOND), "sensor", "alerts", 5, 100) for at in moments_s)


def began_ago(seconds: float) -> int:
    return time.time_ns() - round(seconds * SECOND)


def test_links_are_cut_and_healed_when_it_is_time_and_that_is_on_record(file, place: FakePlace):
    record = up(LAB, file, place)
    incidents = (
        Incident(1 * SECOND, FaultKind.CUT, ("siren",)),
        Incident(3 * SECOND, FaultKind.HEAL, ("siren",)),
    )
    faults = Faults(record, LAB, (), incidents, ignore, place)
    faults.strike(began_ago(0.5))
    assert not place.backend.links()["siren"].up.cut
    faults.strike(began_ago(1.5))
    link = place.backend.links()["siren"]
    assert link.up.cut
    assert link.down.cut
    assert 0 < faults.wait_s(1.5) <= 1.5
    faults.strike(began_ago(3.5))
    assert not place.backend.links()["siren"].up.cut
    manifest = read_manifest(record.run_place)
    told = [(fault["action"], fault["nodes"]) for fault in manifest["faults"]]
    assert told == [("cut", ["siren"]), ("heal", ["siren"])]
    assert [change["action"] for change in manifest["link_changes"]] == ["cut", "restore"]


def test_a_node_is_started_again_alone_and_goes_on_with_what_it_is_still_to_publish(
    file, place: FakePlace
):
    record = up(LAB, file, place)
    place.backend.stop([SENSOR, SIREN], ignore)
    every = timeline(0.5, 2.5, 9.0)
    incident = Incident(2 * SECOND, FaultKind.RESTART, ("sensor",))
    faults = Faults(record, LAB, every, (incident,), ignore, place)
    faults.strike(began_ago(4))
    actual = place.backend.inspect()
    assert "sensor" in actual.started
    assert "siren" not in actual.created
    assert faults.skipped == {every[1]}  # due while it was being started
    assert read_manifest(record.run_place)["faults"][0]["nodes"] == ["sensor"]


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.STOP])
def test_what_cannot_be_done_is_a_warning_and_not_on_record(file, place: FakePlace, kind):
    record = up(replace(LAB), file, place)
    seen = []
    faults = Faults(record, LAB, (), (Incident(0, kind, ("siren",)),), seen.append, place)
    faults.strike(began_ago(1))
    (warned,) = seen
    assert isinstance(warned, Warned)
    assert "its keeper has died" in warned.text
    assert read_manifest(record.run_place)["faults"] == []
