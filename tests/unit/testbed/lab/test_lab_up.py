"""`up` on any backend: what it makes, and what an edit of the file changes."""

import json
from dataclasses import replace
from functools import partial

import pytest

from support.labs.fake_labs import LAB, LANDSLIDE, another_siren, up
from testbed.errors import InputError, MissingCapability, NameTaken
from testbed.lab.play import play
from testbed.lab.start.preconditions import refuse_missing_congestion_control
from testbed.lab.start.provenance import offered_congestion_controls
from testbed.lab.up import bring_up
from testbed.places import captures_root
from testbed.progress import Note, ignore
from testbed.records import read_manifest
from testbed.topology.model import CongestionControl, External, Node, NodeKind


def test_up_makes_a_run_folder_with_manifest_journal_and_the_file(place, file):
    record = up(LAB, file, place)
    manifest = read_manifest(record.run_place)
    assert manifest["status"] == "up"
    assert manifest["backend"] == {"name": "fake", "reason": "a test"}
    assert record.run_place.topology.read_text() == "name: valley\n"
    steps = [json.loads(line)["step"] for line in record.run_place.journal.read_text().splitlines()]
    assert steps == ["prepare", "create", "wire", "shape", "capture", "start"]


def test_the_manifest_names_the_congestion_control(place, file):
    asked = replace(LAB, tcp=CongestionControl(offered_congestion_controls()[0]))
    manifest = read_manifest(up(asked, file, place).run_place)
    assert manifest["tcp"] == {"name": asked.tcp, "reason": "as the file says"}
    # An edit of the file makes the links anew, with the machine's own.
    manifest = read_manifest(up(LAB, file, place).run_place)
    assert manifest["tcp"]["name"] == manifest["machine"]["tcp_congestion_control"]
    assert manifest["tcp"]["reason"] == "the default of this machine's kernel"
    assert {"wired", "shaped"} <= {step for step, _ in place.backend.calls[6:]}


def test_a_congestion_control_that_the_kernel_lacks_is_refused_before_anything_starts(
    place, file, monkeypatch
):
    asked = replace(LAB, tcp=CongestionControl.BBR)
    check = partial(refuse_missing_congestion_control, offered=lambda: ("reno", "cubic"))
    monkeypatch.setattr("testbed.lab.up.refuse_missing_congestion_control", check)
    with pytest.raises(MissingCapability) as caught:
        up(asked, file, place)
    assert str(caught.value.message) == "`tcp: bbr`: this machine's kernel offers only reno, cubic"
    assert "`sudo modprobe tcp_bbr`" in caught.value.hint
    assert not place.backends
    assert not captures_root().exists() or not any(captures_root().iterdir())


def test_up_twice_does_nothing_the_second_time(place, file):
    first = up(LAB, file, place)
    calls = len(place.backend.calls)
    emitted = []
    assert up(LAB, file, place, emitted.append) == first
    assert len(place.backend.calls) == calls
    assert emitted[-1] == Note("lab valley is up already; nothing to do")


def test_up_after_an_edit_of_the_scenario_plays_the_new_one(place, file):
    up(LAB, file, place)
    file.write_text("name: valley # edited\n")
    fewer = replace(LAB, scenario=replace(LAB.scenario, publish=(replace(LANDSLIDE, count=1),)))
    record = up(fewer, file, place)
    assert play(record, ignore).published == 1
    assert "edited" in record.run_place.topology.read_text()


def test_up_after_an_edit_changes_only_what_differs(place, file):
    up(LAB, file, place)
    calls = len(place.backend.calls)
    town = another_siren("town")
    up(replace(LAB, nodes=(*LAB.nodes, town)), file, place)
    assert {targets for _, targets in place.backend.calls[calls:]} == {("town",)}


def test_an_edit_of_the_file_is_no_repair(place, file):
    record = up(LAB, file, place)
    town = another_siren("town")
    up(replace(LAB, nodes=(*LAB.nodes, town)), file, place)
    up(replace(LAB, nodes=(*LAB.nodes, replace(town, topics=("news",)))), file, place)
    assert read_manifest(record.run_place)["warnings"] == []


def test_nodes_keep_their_numbers_when_the_file_is_edited(place, file):
    record = up(LAB, file, place)
    first = Node("a-first", 1, NodeKind.SENSOR, "lan", address="10.77.0.1")
    moved = [replace(n, number=n.number + 1, address=f"10.77.0.{n.number + 1}") for n in LAB.nodes]
    up(replace(LAB, nodes=(first, *moved)), file, place)
    manifest = read_manifest(record.run_place)
    numbers = {"broker": 1, "sensor": 2, "siren": 3, "a-first": 4}
    assert manifest["numbers"] == numbers
    assert {n["name"]: n["address"] for n in manifest["topology"]["nodes"]} == {
        name: f"10.77.0.{number}" for name, number in numbers.items()
    }
    assert manifest["measured_from_ns"] > manifest["created_ns"]

    up(replace(LAB, nodes=LAB.nodes[:2]), file, place)
    up(LAB, file, place)
    assert read_manifest(record.run_place)["numbers"] == numbers


def test_a_node_of_a_forgotten_version_of_the_file_is_removed_too(place, file):
    up(LAB, file, place)
    town = another_siren("town")
    place.backend.create([town], lambda _: None)
    up(LAB, file, place)
    assert "town" not in place.backend.inspect().created


def test_an_external_node_cannot_join_a_lab_without_containers(place, file):
    up(LAB, file, place)
    calls = len(place.backend.calls)
    external = Node("mosquitto", 4, NodeKind.EXTERNAL, "lan", external=External("mosquitto:2"))
    with pytest.raises(MissingCapability, match="mosquitto: external nodes are containers"):
        up(replace(LAB, nodes=(*LAB.nodes, external)), file, place)
    assert len(place.backend.calls) == calls


def test_a_lab_that_is_up_keeps_its_backend(place, file):
    up(LAB, file, place)
    with pytest.raises(InputError, match="is up on the fake backend"):
        bring_up(LAB, file, "docker", ignore, place)
    with pytest.raises(InputError, match="no backend 'nonsense'") as refused:
        bring_up(LAB, file, "nonsense", ignore, place)
    assert refused.value.hint == "there is: docker, netns; for `testbed run` also simulated"


def test_a_name_taken_by_another_file_is_refused(place, file, places):
    up(LAB, file, place)
    other = places / "other.yaml"
    other.write_text("name: valley\n")
    with pytest.raises(NameTaken) as refused:
        up(LAB, other, place)
    assert refused.value.message == (
        f"a lab named 'valley' is up already, from {file.resolve()}; "
        "`up` brings a lab in line with its own file only"
    )
    assert refused.value.hint == (
        "`testbed down valley` ends it; --name starts this lab under another name"
    )
    other.unlink()
    other.symlink_to(file)  # the same file by another path
    assert up(LAB, other, place).source == str(file.resolve())
