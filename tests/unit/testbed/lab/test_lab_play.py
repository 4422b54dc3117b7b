"""A scenario is played and messages are injected, on any backend; errors meanwhile are reported."""

from dataclasses import replace

import pytest

from nodes.protocol.interests import Interest
from nodes.protocol.space import Dimension, Space
from support.labs.fake_labs import LAB, SIREN, another_siren, up
from testbed.control import request
from testbed.errors import InputError, TestbedError
from testbed.lab.inject import inject
from testbed.lab.play import play
from testbed.places import LabPlace
from testbed.progress import Incomplete, StageAdvanced, StageEnded, StageStarted, Warned, ignore
from testbed.records import locked, read_manifest
from testbed.topology.model import ActionEvent, ActionKind, Scenario

TILT = Dimension("tilt", 0, 45)


def test_play_hands_out_the_timeline_and_waits_for_every_delivery(place, file):
    record = up(LAB, file, place)
    seen = []
    played = play(record, seen.append)
    assert (played.published, played.expected, played.received, played.settled) == (3, 3, 3, True)
    manifest = read_manifest(record.run_place)
    assert manifest["play"]["settled"] is True
    assert len(record.run_place.planned.read_text().splitlines()) == 3
    assert {type(event) for event in seen} <= {StageStarted, StageAdvanced, StageEnded}


def test_play_warns_about_deliveries_that_never_came(place, file):
    place.unreachable = frozenset({"siren"})
    record = up(replace(LAB, scenario=replace(LAB.scenario, settle_s=0.2)), file, place)
    seen = []
    assert not play(record, seen.append).settled
    (warned,) = [event for event in seen if isinstance(event, Warned)]
    assert "3 of 3 deliveries" in warned.text


def test_the_death_of_one_receiver_is_reported_and_the_others_are_waited_for(place, file):
    town = another_siren("town")
    record = up(replace(LAB, nodes=(*LAB.nodes, town)), file, place)
    seen = []

    def die(event):
        seen.append(event)
        if event == StageStarted("waiting for messages under way", 6):
            place.backend.stop([SIREN], ignore)

    played = play(record, die)
    assert (played.expected, played.received, played.settled) == (6, 3, False)
    sentence = "while the scenario was played: no answer from siren"
    assert Incomplete(sentence) in seen
    assert read_manifest(record.run_place)["warnings"] == [sentence]


def test_a_lab_that_vanishes_while_it_plays_is_noticed(place, file):
    record = up(LAB, file, place)

    def vanish(event):
        if event == StageEnded("playing the scenario"):
            place.backend.destroy()

    with pytest.raises(TestbedError, match="siren fell silent"):
        play(record, vanish)
    assert read_manifest(record.run_place)["status"] == "up"


def test_an_interrupted_play_is_on_record(place, file):
    record = up(LAB, file, place)

    def interrupt(event):
        if event == StageStarted("playing the scenario", 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(record, interrupt)
    assert "was interrupted" in read_manifest(record.run_place)["warnings"][0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, TestbedError("the disk is full"), ValueError])
def test_running_actions_end_when_a_scenario_is_broken_off(place, file, error):
    apart = ActionEvent(
        0.0,
        ActionKind.PARTITION,
        ("siren", "sensor"),
        details=(("sides", (("siren",), ("sensor",))),),
    )
    lab = replace(LAB, scenario=Scenario(5.0, 1.0, (), (apart,)))
    record = up(lab, file, place)

    def fail(event):
        if isinstance(event, StageAdvanced):
            assert place.backend.going_on
            raise error

    with pytest.raises(error if isinstance(error, type) else TestbedError):
        play(record, fail, make=place)
    assert not place.backend.going_on
    assert "while it was played" in read_manifest(record.run_place)["warnings"][0]


@pytest.mark.parametrize("for_s", [None, 0.05])
def test_a_lab_gets_ready_for_nodes_that_are_started_again_and_only_then(place, file, for_s):
    falls = ActionEvent(0.0, ActionKind.STOP, ("siren",), for_s=for_s)
    lab = replace(LAB, scenario=Scenario(0.2, 1.0, (), (falls,)))
    record = up(lab, file, place)
    play(record, ignore, make=place)
    assert (("expect starts", ()) in place.backend.calls) is (for_s is not None)


def test_two_plays_at_once_are_refused(place, file):
    record = up(LAB, file, place)
    with locked("valley", "playing"), pytest.raises(InputError, match="is playing lab"):
        play(record, ignore)


def test_inject_publishes_at_once_and_names_the_message(place, file):
    record = up(LAB, file, place)
    assert inject(record, "sensor", "alerts", 5, 200) == f"{2 << 32 | 1:016x}"
    seen = []
    inject(record, "sensor", "alert", 5, 200, seen.append)
    assert seen == [Warned("no node subscribes to 'alert'; did you mean 'alerts'?")]
    with pytest.raises(InputError, match="no sensor named 'sensr'") as caught:
        inject(record, "sensr", "alerts", 5, 200)
    assert "did you mean 'sensor'" in caught.value.hint
    with pytest.raises(InputError, match="a message has at most 8MB"):
        inject(record, "sensor", "alerts", 5, 8_000_001)


def test_inject_publishes_at_the_place_of_the_sensor(place, file):
    space = (Dimension("latitude", 33, 34), Dimension("longitude", 133, 134), TILT)
    steep = Interest("alerts", Space(space).box({"latitude": (33.4, 33.6), "tilt": (30, 45)}))
    nodes = (
        LAB.node("broker"),
        replace(LAB.node("sensor"), at=(33.5, 133.5)),
        replace(SIREN, topics=(steep.text,)),
    )
    record = up(replace(LAB, nodes=nodes, space=space), file, place)
    siren, seen = LabPlace.of(record.name).node_control("siren"), []
    inject(record, "sensor", "alerts", 5, 200, seen.append, {"tilt": 40.0})
    assert seen == []
    assert request(siren, {"do": "status"})["received"] == 1
    inject(record, "sensor", "alerts", 5, 200, seen.append)
    assert seen == [Warned("nobody wants 'alerts' of level 5 from where sensor is")]
    assert request(siren, {"do": "status"})["received"] == 1
    with pytest.raises(InputError, match="tilt goes from 0 to 45, not 60"):
        inject(record, "sensor", "alerts", 5, 200, values={"tilt": 60.0})
    with pytest.raises(InputError, match="the lab has no dimension 'title'") as caught:
        inject(record, "sensor", "alerts", 5, 200, values={"title": 1.0})
    assert caught.value.hint == "did you mean 'tilt'?"
    with pytest.raises(InputError, match="no topic begins with"):
        inject(record, "sensor", "{4}alerts", 5, 200)


def test_inject_at_a_dead_sensor_names_the_repair(place, file):
    record = up(LAB, file, place)
    place.backend.stop([LAB.node("sensor")], ignore)
    with pytest.raises(TestbedError, match="no answer from sensor") as caught:
        inject(record, "sensor", "alerts", 5, 200)
    assert "`testbed up`" in caught.value.hint
