"""Links seen and changed while the lab runs, on the fake backend: what is done, recorded, refused and reported."""

import json
import threading
import time
from dataclasses import replace

import pytest

from support.labs.fake_labs import up
from testbed.control import ControlError
from testbed.errors import InputError, NodeFailure, NoSuchLab, TestbedError
from testbed.lab.down import bring_down
from testbed.lab.links import change_links, known_profile, view_links
from testbed.lab.play import play
from testbed.links.changes import UP, Action, DirectionState, LinkOrder, LinkState
from testbed.progress import Note, StageStarted, ignore
from testbed.records import locked, read_manifest
from testbed.topology.model import Node, NodeKind, Profile, PublishEvent, Scenario, Shape, Topology

SLOW = Profile("slow", Shape(1e6, 0.1), Shape(2e6, 0.1))
WIDE = Profile("wide", Shape(5e6), Shape(5e6), mtu=9000)
LAB = Topology(
    "valley",
    7,
    (Profile("lan"), SLOW, WIDE),
    (
        Node("broker", 1, NodeKind.BROKER, "lan", address="10.77.0.1"),
        Node("s-0", 2, NodeKind.SENSOR, "slow", "s", 0, address="10.77.0.2"),
        Node("s-1", 3, NodeKind.SENSOR, "slow", "s", 1, address="10.77.0.3"),
        Node("siren", 4, NodeKind.SUBSCRIBER, "lan", topics=("t",), address="10.77.0.4"),
    ),
    scenario=Scenario(0.2, 1.0, (PublishEvent(0.0, ("s-0",), "t", 5, 9),)),
)
CUT_UP = LinkOrder(Action.CUT, (UP,))


def changes(record):
    return read_manifest(record.run_place)["link_changes"]


def test_a_lab_begins_with_its_links_as_the_file_says(file, place):
    record = up(LAB, file, place)
    assert changes(record) == []
    for view in view_links(record, [], place):
        assert view.now == view.configured
    assert [view.name for view in view_links(record, ["s[*]"], place)] == ["s-0", "s-1"]


def test_a_change_is_done_journalled_and_put_on_record(file, place):
    record = up(LAB, file, place)
    before = time.time_ns()
    order = LinkOrder(Action.SET, (UP,), values={"rate_bps": 5e5})
    entry = change_links(record, ["s[*]"], order, ignore, place)
    assert changes(record) == [entry]
    assert before <= entry.pop("t_ns") <= time.time_ns()
    assert entry == {
        "action": "set",
        "links": ["s-0", "s-1"],
        "directions": ["up"],
        "shapes": {"up": {"rate_bps": 5e5}},
    }
    last = json.loads(record.run_place.journal.read_text().splitlines()[-1])
    assert last["step"] == "link"
    assert last["links"] == ["s-0", "s-1"]
    (view,) = view_links(record, ["s-1"], place)
    assert view.now == LinkState(
        DirectionState(replace(SLOW.up, rate_bps=5e5)), DirectionState(SLOW.down)
    )


def test_the_queue_that_counts_follows_the_rate_if_none_is_asked_for(file, place):
    record = up(LAB, file, place)
    place.backend.emulator = "relay"
    order = LinkOrder(Action.SET, (UP,), values={"rate_bps": 5e5})
    change_links(record, ["s-1"], order, ignore, place)
    one, other, lan = view_links(record, ["s-0", "s-1", "siren"], place)
    assert one.queue_limits == {"up": 125_000, "down": 250_000}
    assert other.queue_limits == {"up": 62_500, "down": 250_000}
    assert lan.queue_limits == {"up": None, "down": None}


def test_changes_add_up_and_reset_ends_them_all(file, place):
    record = up(LAB, file, place)
    change_links(record, ["s-0"], CUT_UP, ignore, place)
    profile = known_profile(record, "mvno-128k")
    change_links(record, ["s-0"], LinkOrder(Action.SET, profile=profile), ignore, place)
    (view,) = view_links(record, ["s-0"], place)
    assert view.now == LinkState(DirectionState(profile.up, cut=True), DirectionState(profile.down))
    change_links(record, ["all"], LinkOrder(Action.RESET), ignore, place)
    assert [view.now == view.configured for view in view_links(record, [], place)] == [True] * 4
    recorded = [(entry["action"], entry["links"]) for entry in changes(record)]
    assert recorded == [("cut", ["s-0"]), ("set", ["s-0"]), ("reset", ["s-0"])]
    assert changes(record)[1]["profile"] == "mvno-128k"


def test_changes_without_effect_are_neither_made_nor_recorded(file, place):
    record = up(LAB, file, place)
    assert change_links(record, ["all"], LinkOrder(Action.RESTORE), ignore, place) is None
    change_links(record, ["s-0"], CUT_UP, ignore, place)
    entry = change_links(record, ["s[*]"], CUT_UP, ignore, place)
    assert entry["links"] == ["s-1"]
    assert len(changes(record)) == 2


def test_one_wrong_link_leaves_all_links_unchanged(file, place):
    record = up(LAB, file, place)
    jitter = LinkOrder(Action.SET, values={"jitter_s": 0.05})
    with pytest.raises(InputError, match="broker up: a jitter of 50ms is larger"):
        change_links(record, ["s[*]", "broker"], jitter, ignore, place)
    with pytest.raises(InputError, match="there is no node 's-7'"):
        change_links(record, ["s-0", "s-7"], CUT_UP, ignore, place)
    assert changes(record) == []
    assert [view.now == view.configured for view in view_links(record, [], place)] == [True] * 4


def test_a_node_without_a_link_is_named(file, place):
    record = up(LAB, file, place)
    place.backend.remove(["s-1"], lambda _: None)
    with pytest.raises(TestbedError, match="no link at present: s-1"):
        change_links(record, ["s[*]"], CUT_UP, ignore, place)
    assert [view.now is None for view in view_links(record, ["s[*]"], place)] == [False, True]


def test_a_profile_of_the_file_goes_before_a_built_in_one_and_an_unknown_one_is_refused(
    file, place
):
    record = up(LAB, file, place)
    assert known_profile(record, "lan") == Profile("lan")
    assert known_profile(record, "nb-iot").mtu == 1500
    with pytest.raises(InputError, match="no link profile 'slaw'") as refused:
        known_profile(record, "slaw")
    assert refused.value.hint == "did you mean 'slow'?"


def test_a_note_says_that_the_mtu_stays(file, place):
    record = up(LAB, file, place)
    emitted: list[object] = []
    change_links(record, ["s-0"], LinkOrder(Action.SET, profile=WIDE), emitted.append, place)
    assert emitted == [
        Note("the mtu stays as it is (1500 bytes): it cannot change while the lab runs")
    ]


def test_up_again_leaves_changed_links_alone_and_says_so(file, place):
    record = up(LAB, file, place)
    change_links(record, ["s-0"], CUT_UP, ignore, place)
    emitted: list[object] = []
    up(LAB, file, place, emitted.append)
    assert emitted[0] == Note(
        "1 link is not as the file says: s-0 cut; `testbed link reset valley all` would undo that"
    )
    assert view_links(record, ["s-0"], place)[0].now.up.cut


def test_a_node_made_anew_has_the_files_link_and_that_is_on_record(file, place):
    record = up(LAB, file, place)
    change_links(record, ["s[*]"], CUT_UP, ignore, place)
    faster = replace(
        LAB,
        nodes=tuple(
            replace(node, profile="lan") if node.name == "s-0" else node for node in LAB.nodes
        ),
    )
    emitted: list[object] = []
    up(faster, file, place, emitted.append)
    noted = [event.text for event in emitted if isinstance(event, Note)]
    assert any(text.startswith("1 link is not as the file says: s-1 cut") for text in noted)
    assert [view.now.up.cut for view in view_links(record, ["s[*]"], place)] == [False, True]
    last = changes(record)[-1]
    assert (last["action"], last["links"], last["directions"]) == ("reset", ["s-0"], ["up", "down"])
    up(faster, file, place)
    assert len(changes(record)) == 2


def test_links_made_anew_are_on_record_even_if_another_node_fails(file, place, monkeypatch):
    record = up(LAB, file, place)
    change_links(record, ["s[*]", "siren"], CUT_UP, ignore, place)
    place.backend.remove(["s-0", "siren"], lambda _: None)
    monkeypatch.setattr(place.backend, "_failing", frozenset({"siren"}))
    with pytest.raises(NodeFailure, match="siren"):
        up(LAB, file, place)
    last = changes(record)[-1]
    assert (last["action"], last["links"]) == ("reset", ["s-0"])


def test_links_made_anew_are_on_record_even_if_up_is_interrupted(file, place):
    record = up(LAB, file, place)
    change_links(record, ["s-0"], CUT_UP, ignore, place)
    edited = replace(LAB, seed=8)

    def interrupt(event):
        if event == StageStarted("starting captures", 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        up(edited, file, place, interrupt)
    assert [entry["action"] for entry in changes(record)] == ["cut", "reset"]


def test_links_can_be_changed_while_the_scenario_is_played(file, place):
    record = up(LAB, file, place)

    def meanwhile(event):
        if not changes(record):
            change_links(record, ["s-0"], CUT_UP, ignore, place)

    play(record, meanwhile)
    manifest = read_manifest(record.run_place)
    assert manifest["status"] == "played"
    assert [entry["action"] for entry in manifest["link_changes"]] == ["cut"]


def test_commands_that_change_links_at_once_wait_for_each_other(file, place, monkeypatch):
    monkeypatch.setattr("testbed.lab.links.PATIENCE_S", 60.0)
    record = up(LAB, file, place)
    orders = [LinkOrder(Action.SET, values={"queue_bytes": size}) for size in range(1000, 1006)]
    at_once = [
        threading.Thread(target=change_links, args=(record, ["s-0"], order, ignore, place))
        for order in orders
    ]
    for thread in at_once:
        thread.start()
    for thread in at_once:
        thread.join()
    sizes = {entry["shapes"]["up"]["queue_bytes"] for entry in changes(record)}
    assert sizes == set(range(1000, 1006))
    times = [entry["t_ns"] for entry in changes(record)]
    assert times == sorted(times)


def test_a_lab_that_is_being_changed_for_long_is_not_waited_for_for_ever(file, place, monkeypatch):
    monkeypatch.setattr("testbed.lab.links.PATIENCE_S", 0.1)
    record = up(LAB, file, place)
    with locked("valley"), pytest.raises(InputError, match="another command is changing"):
        change_links(record, ["s-0"], CUT_UP, ignore, place)


def test_a_lab_that_went_down_meanwhile_is_not_changed(file, place):
    record = up(LAB, file, place)
    bring_down("valley", ignore, place)
    with pytest.raises(NoSuchLab, match="no lab named 'valley' is up"):
        change_links(record, ["s-0"], CUT_UP, ignore, place)


def test_a_change_that_fails_is_in_the_journal_but_not_on_record(file, place, monkeypatch):
    record = up(LAB, file, place)

    def refuse(links, before):
        raise ControlError("keeper: no such interface")

    monkeypatch.setattr(place.backend, "change_links", refuse)
    with pytest.raises(ControlError):
        change_links(record, ["s-0"], CUT_UP, ignore, place)
    assert changes(record) == []
    assert '"link"' in record.run_place.journal.read_text().splitlines()[-1]
