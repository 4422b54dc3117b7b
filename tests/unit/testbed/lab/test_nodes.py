"""`testbed node`: crash, stop and start by hand."""

import pytest

from support.labs.fake_labs import LAB, FakePlace, up
from testbed.errors import InputError, NodeFailure
from testbed.lab.nodes import order_nodes
from testbed.progress import ignore
from testbed.records import read_manifest
from testbed.topology.model import ActionKind


def test_actions_by_hand_are_recorded(file, place: FakePlace):
    record = up(LAB, file, place)
    assert order_nodes(record, ["siren"], ActionKind.CRASH, ignore, place) == ["siren"]
    assert ("signal 9", ("siren",)) in place.backend.calls
    (entry,) = read_manifest(record.run_place)["actions"]
    assert (entry["action"], entry["targets"], entry["details"]) == (
        "crash",
        ["siren"],
        {"by": "hand"},
    )
    assert entry["t_ns"] >= entry["due_ns"]


def test_a_running_node_is_not_started(file, place: FakePlace):
    record = up(LAB, file, place)
    assert order_nodes(record, ["siren"], ActionKind.START, ignore, place) == []
    assert read_manifest(record.run_place)["actions"] == []


def test_an_action_that_fails_for_one_node_is_recorded_for_the_others(
    file, place: FakePlace, monkeypatch: pytest.MonkeyPatch
):
    record = up(LAB, file, place)

    def half(*_: object) -> None:
        raise NodeFailure("siren did not end", "", ["siren"])

    monkeypatch.setattr(place.backend, "stop", half)
    with pytest.raises(NodeFailure):
        order_nodes(record, ["siren", "sensor"], ActionKind.STOP, ignore, place)
    (entry,) = read_manifest(record.run_place)["actions"]
    assert entry["targets"] == ["sensor"]


def test_a_name_without_a_node_is_refused(file, place: FakePlace):
    record = up(LAB, file, place)
    with pytest.raises(InputError):
        order_nodes(record, ["nobody"], ActionKind.CRASH, ignore, place)
