"""Up, play, inject, status, down, on the fake backend: what the lab layer promises whatever the place."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.backends.choice import Choice
from testbed.backends.fake import FakeBackend
from testbed.backends.fake_nodes import FakeNodes
from testbed.errors import (
    InputError,
    MissingCapability,
    NameTaken,
    NodeFailure,
    NoSuchLab,
    TestbedError,
)
from testbed.events import Note, StageAdvanced, StageEnded, StageStarted, Warned, ignore
from testbed.lab import bring_down, bring_up, inject, lab_status, play
from testbed.lab import up as up_module
from testbed.lab.down import bring_all_down
from testbed.places import LabPlace
from testbed.records import lab_names, locked, read_manifest, the_lab, update_manifest
from testbed.topology.model import External, Node, NodeKind, Profile, Publish, Scenario, Topology

BROKER = Node("broker", 1, NodeKind.BROKER, "lan", address="10.77.0.1")
SENSOR = Node("sensor", 2, NodeKind.SENSOR, "lan", address="10.77.0.2")
SIREN = Node("siren", 3, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.3")
LANDSLIDE = Publish(0.0, ("sensor",), "alerts", 5, 100, period_s=0.05, count=3)
LAB = Topology(
    "valley",
    7,
    (Profile("lan"),),
    (BROKER, SENSOR, SIREN),
    scenario=Scenario(0.2, 1.0, (LANDSLIDE,)),
)


class FakePlace:
    """Keeps one FakeBackend per lab between commands, as the kernel would."""

    def __init__(self) -> None:
        self.backends: dict[str, FakeBackend] = {}
        self.failing: frozenset[str] = frozenset()
        self.deaf: frozenset[str] = frozenset()

    def __call__(self, name, lab, run, topology, emit):
        if lab.name not in self.backends:
            nodes = FakeNodes(lab, topology, self.deaf)
            self.backends[lab.name] = FakeBackend(topology, self.failing, nodes)
        self.backends[lab.name].topology = topology
        return self.backends[lab.name]


@pytest.fixture
def place(places):
    fake = FakePlace()
    yield fake
    for backend in fake.backends.values():
        backend.destroy()


@pytest.fixture
def file(places) -> Path:
    path = places / "valley.yaml"
    path.write_text("name: valley\n")
    return path


def up(topology, file, place, emit=ignore):
    return bring_up(topology, file, None, emit, place, lambda asked: Choice("fake", "a test"))


def test_up_makes_a_run_folder_with_manifest_journal_and_the_file(place, file):
    record = up(LAB, file, place)
    manifest = read_manifest(record.run_place)
    assert manifest["status"] == "up"
    assert manifest["backend"] == {"name": "fake", "reason": "a test"}
    assert record.run_place.topology.read_text() == "name: valley\n"
    steps = [json.loads(line)["step"] for line in record.run_place.journal.read_text().splitlines()]
    assert steps == ["prepare", "create", "wire", "shape", "capture", "start"]


def test_up_twice_does_nothing_the_second_time(place, file):
    first = up(LAB, file, place)
    calls = len(place.backends["valley"].calls)
    said = []
    assert up(LAB, file, place, said.append) == first
    assert len(place.backends["valley"].calls) == calls
    assert said[-1] == Note("lab valley is up already; nothing to do")


def test_up_after_an_edit_of_the_scenario_plays_the_new_one(place, file):
    up(LAB, file, place)
    file.write_text("name: valley # edited\n")
    fewer = replace(LAB, scenario=replace(LAB.scenario, publish=(replace(LANDSLIDE, count=1),)))
    record = up(fewer, file, place)
    assert play(record, ignore).published == 1
    assert "edited" in record.run_place.topology.read_text()


def test_up_completes_a_lab_whose_first_up_was_killed_while_connecting(place, file):
    record = up(LAB, file, place)
    update_manifest(record.run_place, status="starting", emulator=None)
    up(LAB, file, place)
    manifest = read_manifest(record.run_place)
    assert manifest["status"] == "up"
    assert manifest["emulator"]["name"] == "none"


def test_a_node_of_a_forgotten_version_of_the_file_is_removed_too(place, file):
    up(LAB, file, place)
    town = Node("town", 4, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.4")
    place.backends["valley"].create([town], lambda _: None)
    up(LAB, file, place)
    assert "town" not in place.backends["valley"].inspect().created


def test_somebody_elses_program_cannot_join_a_lab_without_containers(place, file):
    up(LAB, file, place)
    calls = len(place.backends["valley"].calls)
    guest = Node("mosquitto", 4, NodeKind.EXTERNAL, "lan", external=External("mosquitto:2"))
    with pytest.raises(MissingCapability, match="mosquitto: external nodes are containers"):
        up(replace(LAB, nodes=(*LAB.nodes, guest)), file, place)
    assert len(place.backends["valley"].calls) == calls


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


def test_an_interrupted_play_is_on_record(place, file):
    record = up(LAB, file, place)

    def interrupt(event):
        if event == StageStarted("playing the scenario", 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(record, interrupt)
    assert "was interrupted" in read_manifest(record.run_place)["warnings"][0]


def test_a_lab_that_is_up_keeps_its_backend(place, file):
    up(LAB, file, place)
    with pytest.raises(InputError, match="is up on the fake backend"):
        bring_up(LAB, file, "docker", ignore, place)
    with pytest.raises(InputError, match="no backend 'nonsense'"):
        bring_up(LAB, file, "nonsense", ignore, place)


def test_up_after_an_edit_changes_only_what_differs(place, file):
    up(LAB, file, place)
    calls = len(place.backends["valley"].calls)
    town = Node("town", 4, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.4")
    up(replace(LAB, nodes=(*LAB.nodes, town)), file, place)
    assert {targets for _, targets in place.backends["valley"].calls[calls:]} == {("town",)}


def test_a_name_taken_by_another_file_is_refused(place, file, places):
    up(LAB, file, place)
    other = places / "other.yaml"
    other.write_text("name: valley\n")
    with pytest.raises(NameTaken, match="is up already"):
        up(LAB, other, place)


def test_a_failing_node_is_named_the_rest_stays_and_up_again_completes(place, file):
    place.failing = frozenset({"siren"})
    with pytest.raises(NodeFailure, match="siren"):
        up(LAB, file, place)
    assert place.backends["valley"].inspect().created == {"broker", "sensor"}
    assert lab_status("valley").emulator == "none", "who serves the others' links is on record"
    place.backends["valley"]._failing = frozenset()
    up(LAB, file, place)
    assert lab_status("valley").state == "up"


def test_an_interrupt_takes_back_everything_this_up_made(place, file, places):
    def interrupt(event):
        if event == StageStarted("shaping links", 3):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        up(LAB, file, place, interrupt)
    assert place.backends["valley"].inspect().created == frozenset()
    assert lab_names() == []
    assert list((places / "c").iterdir()) == []


def test_an_interrupt_of_a_second_up_leaves_the_first_ones_nodes(place, file):
    up(LAB, file, place)
    town = Node("town", 4, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.4")

    def interrupt(event):
        if event == StageStarted("starting captures", 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        up(replace(LAB, nodes=(*LAB.nodes, town)), file, place, interrupt)
    assert place.backends["valley"].inspect().created == {"broker", "sensor", "siren"}


def test_a_failing_node_does_not_keep_the_others_from_starting(place, file):
    place.failing = frozenset({"siren"})
    with pytest.raises(NodeFailure) as caught:
        up(LAB, file, place)
    assert caught.value.nodes == ("siren",)
    actual = place.backends["valley"].inspect()
    for stage in ("created", "wired", "shaped", "captured", "started"):
        assert getattr(actual, stage) == {"broker", "sensor"}, stage


def subscriber(name: str) -> Node:
    return Node(name, 4, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.4")


def test_a_node_that_fails_in_a_running_lab_is_known_with_the_others_and_keeps_its_number(
    place, file
):
    record = up(LAB, file, place)
    place.backends["valley"]._failing = frozenset({"town"})
    with pytest.raises(NodeFailure, match="town"):
        up(replace(LAB, nodes=(*LAB.nodes, subscriber("town"))), file, place)
    status = lab_status("valley")
    assert {node.name: node.state for node in status.nodes}["town"] == "silent"
    assert read_manifest(record.run_place)["status"] == "starting"
    place.backends["valley"]._failing = frozenset()
    up(replace(LAB, nodes=(*LAB.nodes, subscriber("village"))), file, place)
    manifest = read_manifest(record.run_place)
    assert (manifest["numbers"]["town"], manifest["numbers"]["village"]) == (4, 5)
    assert manifest["status"] == "up"
    assert manifest["warnings"] == [], "nothing had died"


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


def test_nobody_waits_for_nodes_whose_broker_failed(place, file, monkeypatch):
    monkeypatch.setattr(up_module, "wait_until_ready", lambda *_, **__: pytest.fail("it waited"))
    place.failing = frozenset({"broker"})
    with pytest.raises(NodeFailure, match="could not create broker"):
        up(LAB, file, place)


def test_a_lab_that_died_is_cleared_and_started_anew_where_it_was(place, file):
    first = up(LAB, file, place)
    place.backends["valley"].destroy()
    place.backends.clear()
    asked = []

    def choose(backend):
        asked.append(backend)
        return Choice(backend or "the best", "a test")

    second = bring_up(LAB, file, None, ignore, place, choose)
    assert second.run != first.run
    assert asked == ["fake"], "the backend it had"
    assert read_manifest(first.run_place)["status"] == "died"


def test_what_up_repairs_is_said_and_recorded(place, file):
    record = up(LAB, file, place)
    place.backends["valley"].stop([SIREN], ignore)
    seen = []
    up(LAB, file, place, seen.append)
    (warning,) = read_manifest(record.run_place)["warnings"]
    assert "had died and were repaired" in warning
    assert "(made anew: siren)" in warning
    assert Note(warning) in seen


def test_an_edit_of_the_file_is_no_repair(place, file):
    record = up(LAB, file, place)
    town = Node("town", 4, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.4")
    up(replace(LAB, nodes=(*LAB.nodes, town)), file, place)
    up(replace(LAB, nodes=(*LAB.nodes, replace(town, topics=("news",)))), file, place)
    assert read_manifest(record.run_place)["warnings"] == []


def test_of_many_labs_one_that_fails_does_not_stop_the_others(place, file):
    up(LAB, file, place)
    up(replace(LAB, name="hill"), file, place)
    with locked("hill"):
        hill, valley = bring_all_down(lab_names(), ignore, place)
    assert "another command is changing" in hill.error
    assert (valley.lab, valley.error) == ("valley", "")
    assert lab_names() == ["hill"]


def test_play_hands_out_the_timeline_and_waits_for_every_delivery(place, file):
    record = up(LAB, file, place)
    seen = []
    played = play(record, seen.append)
    assert (played.published, played.expected, played.received, played.settled) == (3, 3, 3, True)
    manifest = read_manifest(record.run_place)
    assert manifest["play"]["settled"] is True
    assert len(record.run_place.actions.read_text().splitlines()) == 3
    assert {type(event) for event in seen} <= {StageStarted, StageAdvanced, StageEnded}


def test_play_warns_about_deliveries_that_never_came(place, file):
    place.deaf = frozenset({"siren"})
    record = up(replace(LAB, scenario=replace(LAB.scenario, settle_s=0.2)), file, place)
    seen = []
    assert not play(record, seen.append).settled
    (warned,) = [event for event in seen if isinstance(event, Warned)]
    assert "3 of 3 deliveries" in warned.text


def test_inject_publishes_at_once_and_names_the_message(place, file):
    record = up(LAB, file, place)
    assert inject(record, "sensor", "alerts", 5, 200) == f"{2 << 32 | 1:016x}"
    seen = []
    inject(record, "sensor", "alert", 5, 200, seen.append)
    assert seen == [Warned("nobody subscribes to 'alert'; did you mean 'alerts'?")]
    with pytest.raises(InputError, match="no sensor named 'sensr'") as caught:
        inject(record, "sensr", "alerts", 5, 200)
    assert "did you mean 'sensor'" in caught.value.hint
    with pytest.raises(InputError, match="a message has at most 8MB"):
        inject(record, "sensor", "alerts", 5, 8_000_001)


def test_inject_of_a_sensor_that_has_died_says_what_repairs_it(place, file):
    record = up(LAB, file, place)
    place.backends["valley"].stop([LAB.node("sensor")], ignore)
    with pytest.raises(TestbedError, match="no answer from sensor") as caught:
        inject(record, "sensor", "alerts", 5, 200)
    assert "`testbed up`" in caught.value.hint


def test_down_completes_the_manifest_and_forgets_the_lab(place, file):
    record = up(LAB, file, place)
    bring_down("valley", ignore, place)
    manifest = read_manifest(record.run_place)
    assert manifest["status"] == "down"
    assert set(manifest["capture"]) == {"broker", "sensor", "siren"}
    assert lab_names() == []
    assert not LabPlace.of("valley").folder.exists()


def test_down_of_a_dead_lab_works_and_says_so(place, file):
    record = up(LAB, file, place)
    place.backends["valley"].destroy()
    seen = []
    bring_down("valley", seen.append, place)
    assert read_manifest(record.run_place)["status"] == "died"
    assert seen == [Note("the lab had died before; its captures end where it died")]


def test_down_works_with_a_damaged_manifest(place, file):
    record = up(LAB, file, place)
    record.run_place.manifest.write_text("{ not json")
    bring_down("valley", ignore, place)
    assert lab_names() == []


@pytest.mark.parametrize("content", ["{}", "[]", "{ not json", '{"name": "valley", "extra": 1}'])
def test_down_and_status_work_with_a_damaged_record(place, file, content):
    up(LAB, file, place)
    LabPlace.of("valley").record.write_text(content)
    assert lab_status("valley").state == "damaged"
    with pytest.raises(NoSuchLab, match="is damaged"):
        the_lab("valley")
    bring_down("valley", ignore, place)
    assert lab_names() == []


def test_status_tells_of_a_lab_whose_run_folder_was_deleted(place, file):
    record = up(LAB, file, place)
    shutil.rmtree(record.run_folder)
    assert lab_status("valley").state == "damaged"


def test_down_of_a_lab_that_had_only_begun_leaves_no_run_folder(place, file, places):
    record = up(LAB, file, place)
    record.run_place.manifest.unlink()
    bring_down("valley", ignore, place)
    assert list((places / "c").iterdir()) == []


def test_down_says_what_went_wrong_with_the_capture(place, file, monkeypatch):
    record = up(LAB, file, place)
    backend = place.backends["valley"]
    backend.captured = lambda: ({}, "the capture process had died")
    seen = []
    bring_down("valley", seen.append, place)
    assert Warned("the measurement is not complete: the capture process had died") in seen
    assert "had died" in read_manifest(record.run_place)["warnings"][0]


@pytest.mark.parametrize("name", ["", ".", "..", "../victim", "/tmp/victim", "a/b", "-x", "x" * 31])
def test_a_labs_name_is_never_a_path(places, name):
    victim = places / "victim"
    victim.mkdir()
    with pytest.raises(InputError, match="cannot be a lab's name"):
        bring_down(name, ignore)
    assert victim.exists()


def test_a_state_folder_that_others_can_write_to_is_refused(places):
    (places / "s").mkdir()
    (places / "s").chmod(0o777)
    with pytest.raises(TestbedError, match="only you can write to"), locked("valley"):
        pass


def test_a_lab_that_vanishes_while_it_plays_is_noticed(place, file):
    record = up(LAB, file, place)

    def vanish(event):
        if event == StageEnded("playing the scenario"):
            place.backends["valley"].destroy()

    with pytest.raises(TestbedError, match="siren fell silent"):
        play(record, vanish)
    assert read_manifest(record.run_place)["status"] == "up"


def test_down_takes_the_lock_of_a_killed_play_away(place, file, places):
    up(LAB, file, place)
    (places / "s" / ".valley.playing").touch()
    bring_down("valley", ignore, place)
    assert list((places / "s").iterdir()) == []


def test_the_death_of_one_receiver_is_told_and_the_others_are_waited_for(place, file):
    town = Node("town", 4, NodeKind.SUBSCRIBER, "lan", topics=("alerts",), address="10.77.0.4")
    record = up(replace(LAB, nodes=(*LAB.nodes, town)), file, place)
    seen = []

    def die(event):
        seen.append(event)
        if event == StageStarted("waiting for messages under way", 6):
            place.backends["valley"].stop([SIREN], ignore)

    played = play(record, die)
    assert (played.expected, played.received, played.settled) == (6, 3, False)
    told = "while the scenario was played: no answer from siren"
    assert Warned(told) in seen
    assert read_manifest(record.run_place)["warnings"] == [told]


def test_two_plays_at_once_are_refused(place, file):
    record = up(LAB, file, place)
    with locked("valley", "playing"), pytest.raises(InputError, match="is playing lab"):
        play(record, ignore)


def test_down_of_nothing_says_that_there_is_nothing(places):
    seen = []
    assert bring_down("valley", seen.append) is None
    assert "nothing of a lab named 'valley'" in seen[0].text


def test_two_commands_do_not_change_a_lab_at_once(places):
    with locked("valley"):
        with pytest.raises(InputError, match="another command is changing"), locked("valley"):
            pass
        with locked("other"):
            pass
    with locked("valley"):
        pass
    assert list((places / "s").iterdir()) == []


def test_an_unknown_lab_is_named_with_the_nearest_known_one(place, file):
    up(LAB, file, place)
    with pytest.raises(NoSuchLab) as caught:
        the_lab("vally")
    assert caught.value.hint == "did you mean 'valley'?"
