"""A lab that is up plays another scenario than the one it was made with, if its nodes need not change for it."""

import json

import pytest

from support.labs.fake_labs import FakePlace, up
from testbed.errors import InputError
from testbed.lab.play import play, replace_scenario
from testbed.progress import ignore
from testbed.records import read_manifest
from testbed.topology import TopologyErrors, load

LAB = """\
name: valley
nodes:
  broker: {kind: broker}
  sensor: {kind: sensor, at: [33.7, 133.6]}
  siren: {kind: subscriber, topics: [alerts]}
"""
LATER = """\
duration: 200ms
events:
  - at: 50ms
    publish: {from: sensor, topic: alerts, priority: 5, size: 10B, period: 50ms, count: 2}
"""


@pytest.fixture
def lab(place: FakePlace, file):
    file.write_text(LAB)
    return up(load(file), file, place)


def test_the_scenario_of_the_file_is_played_and_stored(lab, places):
    scenario = places / "later.yaml"
    scenario.write_text(LATER)
    replace_scenario(lab, scenario)
    assert play(lab, ignore).published == 2
    manifest = read_manifest(lab.run_place)
    assert manifest["scenario_source"] == str(scenario)
    assert lab.run_place.scenario.read_text() == LATER
    first = json.loads(lab.run_place.planned.read_text().splitlines()[0])
    assert (first["at_ns"], first["topic"]) == (50_000_000, "alerts")


def test_a_scenario_that_names_nothing_existing_is_refused_and_nothing_changes(lab, places):
    before = read_manifest(lab.run_place)
    scenario = places / "wrong.yaml"
    scenario.write_text(LATER.replace("from: sensor", "from: sensors"))
    with pytest.raises(TopologyErrors) as caught:
        replace_scenario(lab, scenario)
    assert caught.value.problems[0].hint == "did you mean 'sensor'?"
    assert read_manifest(lab.run_place) == before


def test_a_scenario_that_needs_other_subscriptions_is_refused(place, file, places):
    file.write_text(
        LAB.replace("topics: [alerts]", "subscribe: {min_priority: 4}")
        + "scenario:\n"
        + "".join(f"  {line}\n" for line in LATER.splitlines())
    )
    lab = up(load(file), file, place)
    scenario = places / "warnings.yaml"
    scenario.write_text(LATER.replace("topic: alerts", "topic: warnings"))
    with pytest.raises(InputError, match="with this scenario siren would not be as the lab") as why:
        replace_scenario(lab, scenario)
    assert f"--scenario {scenario}" in why.value.hint


def test_links_get_built_in_profiles_that_only_the_new_scenario_names(place, file, places):
    file.write_text(LAB)
    settings = ["nodes.siren.link=3g-384k", "links.profiles.3g-384k.up.rate=1Mbit/s"]
    lab = up(load(file, overrides=settings), file, place)
    filed = place.backend.links()["siren"]
    scenario = places / "later.yaml"
    scenario.write_text(LATER + "  - {at: 50ms, for: 50ms, link: {nodes: siren, profile: wifi}}\n")
    replace_scenario(lab, scenario)
    play(lab, ignore, make=place)
    changes = read_manifest(lab.run_place)["link_changes"]
    assert len(changes) == 2
    assert place.backend.links()["siren"] == filed  # as it was set, not as built in


def test_up_again_without_the_file_gives_the_lab_its_own_scenario_back(lab, places, place, file):
    scenario = places / "later.yaml"
    scenario.write_text(LATER)
    replace_scenario(lab, scenario)
    up(load(file), file, place)
    assert read_manifest(lab.run_place)["scenario_source"] is None
    assert not lab.run_place.scenario.exists()


def test_overrides_of_the_lab_still_hold(place, file, places):
    file.write_text(LAB)
    lab = up(load(file, overrides=["nodes.siren.link=3g-384k"]), file, place)
    scenario = places / "later.yaml"
    scenario.write_text(LATER)
    replace_scenario(lab, scenario)
    assert play(lab, ignore).published == 2
    (siren,) = [
        n for n in read_manifest(lab.run_place)["topology"]["nodes"] if n["name"] == "siren"
    ]
    assert siren["profile"] == "3g-384k"
